"""What `configure` sets, each time in a process of its own: settings are global, and this suite has its own."""

import json
import os
import subprocess
import sys

import pytest

import bonas

BLAS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
SETTINGS = (*BLAS, "NPROC")

# Precedes the code of every child: `told` is what the test reads.
PREAMBLE = """
import json, os, sys, warnings
from pathlib import Path
import bonas, jax, jax.numpy as jnp, scipy.linalg, threadpoolctl
told = {}
def threads():
    return [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
def settings():
    config = {name: repr(value) for name, value in sorted(jax.config.values.items())}
    return {"config": config, "threads": threads(), "environment": dict(os.environ)}
def compile_something(number):
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.jit(lambda x: jnp.sin(x) * number)(2.0)
"""


def child(code, folder, **environment):
    """What the code tells when run in a fresh process in `folder`, with no settings but those given."""
    clean = {name: value for name, value in os.environ.items() if name not in SETTINGS and not name.startswith("JAX_")}
    clean |= {"XDG_CACHE_HOME": str(folder / "cache"), **environment}
    script = f"{PREAMBLE}\n{code}\nprint(json.dumps(told))"
    done = subprocess.run([sys.executable, "-c", script], env=clean, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """The plain call, twice."""
    folder = tmp_path_factory.mktemp("usual")
    code = """
bonas.configure()
told["first"] = settings()
bonas.configure()
told["second"] = settings()
told["precision"] = str(jnp.zeros(1).dtype)
compile_something(3)
told["folder"] = jax.config.jax_compilation_cache_dir
"""
    return {**child(code, folder), "expected folder": folder / "cache" / "bonas" / "xla"}


@pytest.mark.slow
def test_real_numbers_are_float64(usual):
    assert usual["precision"] == "float64"


def test_blas_has_one_thread(usual):
    assert usual["first"]["threads"]
    assert set(usual["first"]["threads"]) == {1}


def test_children_of_the_process_have_one_thread(usual):
    assert [usual["first"]["environment"][name] for name in BLAS] == ["1", "1", "1"]


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="their cache folders are elsewhere")
def test_the_cache_is_in_the_cache_folder_of_the_user(usual):
    assert usual["folder"] == str(usual["expected folder"])


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="their cache folders are elsewhere")
def test_compiled_programs_are_kept(usual):
    assert any(usual["expected folder"].iterdir())


def test_a_second_call_changes_nothing(usual):
    assert usual["second"] == usual["first"]


@pytest.fixture(scope="module")
def unusual(tmp_path_factory):
    """Every setting other than the usual one, and those that leave things alone."""
    folder = tmp_path_factory.mktemp("unusual")
    code = """
before = settings()
bonas.configure(x64=False, threads=None, cache=False)
told["untouched"] = settings() == before
told["precision"] = str(jnp.zeros(1).dtype)
bonas.configure(threads=2, cache=False)
told["two"] = threads()
bonas.configure(threads=None, cache=False)
told["still two"] = threads()
compile_something(3)
told["cache"] = os.path.exists("cache")
"""
    return child(code, folder, JAX_ENABLE_X64="0")


@pytest.mark.slow
def test_everything_can_be_left_alone(unusual):
    assert unusual["untouched"]


def test_float32_is_possible(unusual):
    assert unusual["precision"] == "float32"


def test_threads_are_as_many_as_asked_for(unusual):
    assert set(unusual["two"]) == {2}


def test_no_number_of_threads_leaves_them_alone(unusual):
    assert unusual["still two"] == unusual["two"]


def test_no_cache_makes_no_folder(unusual):
    assert not unusual["cache"]


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """Caches that move and go after programs have been compiled."""
    folder = tmp_path_factory.mktemp("moved")
    code = """
compile_something(3)
for number, cache in enumerate(["first", Path("second"), False]):
    bonas.configure(cache=cache)
    compile_something(4 + number)
told["folders"] = {name: len(list(Path(name).iterdir())) for name in ("first", "second")}
"""
    return child(code, folder)["folders"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["first", "second"])
def test_the_cache_goes_where_it_is_told_even_late(moved, name):
    """One program each: those before and after went elsewhere or nowhere."""
    assert moved[name] == 1


def test_the_environment_names_the_cache(tmp_path):
    code = "bonas.configure(); told['folder'] = jax.config.jax_compilation_cache_dir"
    assert child(code, tmp_path, JAX_COMPILATION_CACHE_DIR=str(tmp_path / "mine")) == {"folder": str(tmp_path / "mine")}


@pytest.mark.slow
def test_a_bucket_is_no_folder(tmp_path):
    code = "bonas.configure(); told['folder'] = jax.config.jax_compilation_cache_dir; told['made'] = os.listdir('.')"
    told = child(code, tmp_path, JAX_COMPILATION_CACHE_DIR="gs://bucket/cache")
    assert told == {"folder": "gs://bucket/cache", "made": []}


def test_a_folder_that_cannot_be_made_is_a_warning(tmp_path):
    (tmp_path / "file").touch()
    code = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    bonas.configure(cache="file/below")
told["warnings"] = [str(warning.message) for warning in caught]
told["blames"] = [Path(warning.filename).name for warning in caught]
told["folder"] = jax.config.jax_compilation_cache_dir
"""
    told = child(code, tmp_path)
    assert len(told["warnings"]) == 1
    assert "keeps no compilation cache" in told["warnings"][0]
    assert told["blames"] == ["<string>"]  # the caller, not the library
    assert told["folder"] is None


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"], ids=repr)
def test_bad_numbers_of_threads_are_refused(threads):
    with pytest.raises(ValueError, match=f"threads must be a whole number of at least 1.*got {threads!r}"):
        bonas.configure(threads=threads)


@pytest.mark.slow
def test_flags_for_the_compiler_are_added_to_those_there_are_and_only_once(tmp_path):
    code = """
bonas.configure()
bonas.configure()
told["flags"] = os.environ["XLA_FLAGS"]
told["sum"] = float(jnp.arange(3).sum())
"""
    told = child(code, tmp_path, XLA_FLAGS="--xla_force_host_platform_device_count=2")
    assert told["flags"] == "--xla_force_host_platform_device_count=2 --xla_cpu_use_fusion_emitters=false"
    kept = child(code, tmp_path, XLA_FLAGS="--xla_cpu_use_fusion_emitters=true")
    assert kept["flags"] == "--xla_cpu_use_fusion_emitters=true"
    assert told["sum"] == 3.0


@pytest.mark.slow
def test_batches_of_large_matrices_do_not_wait_for_each_other(tmp_path):
    """With a thread a core, XLA of jaxlib 0.10 does not come back from this where cores are few: the child then times out."""
    code = """
bonas.configure(cache=False)
model = bonas.surrogates.gp(restarts=1)
data = bonas.dataset(jax.random.uniform(jax.random.key(0), (200, 3)), jnp.arange(200.0), 256)
fitted, info = jax.jit(model.fit)(jax.random.key(1), bonas.standardise(data)[0], model.init(256, 3, 1))
told["finite"] = bool(info.finite)
"""
    assert child(code, tmp_path)["finite"]


@pytest.mark.slow
def test_a_number_of_xla_s_threads_that_is_given_stays(tmp_path):
    assert child('bonas.configure(); told["pool"] = os.environ["NPROC"]', tmp_path, NPROC="3")["pool"] == "3"
