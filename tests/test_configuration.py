"""What `configure` sets, tested in child processes because settings are global."""

import json
import os
import subprocess
import sys

import pytest

import bonas

BLAS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
SETTINGS = (*BLAS, "NPROC")

# Runs before the code of every child process; `result` is what the test reads.
PREAMBLE = """
import json, os, sys, warnings
from pathlib import Path
import bonas, jax, jax.numpy as jnp, scipy.linalg, threadpoolctl
result = {}
def threads():
    pools = threadpoolctl.threadpool_info()
    return [pool["num_threads"] for pool in pools if pool["user_api"] == "blas"]
def settings():
    config = {name: repr(value) for name, value in sorted(jax.config.values.items())}
    return {"config": config, "threads": threads(), "environment": dict(os.environ)}
def compile_something(number):
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.jit(lambda x: jnp.sin(x) * number)(2.0)
"""


def child(code, folder, **environment):
    """Run the code in a new process in `folder` with only the given settings; return `result`."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in SETTINGS and not name.startswith("JAX_")
    }
    clean |= {"XDG_CACHE_HOME": str(folder / "cache"), **environment}
    script = f"{PREAMBLE}\n{code}\nprint(json.dumps(result))"
    process = subprocess.run(
        [sys.executable, "-c", script],
        env=clean,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@pytest.fixture(scope="module")
def default(tmp_path_factory):
    """Two calls with default settings."""
    folder = tmp_path_factory.mktemp("default")
    code = """
bonas.configure()
result["first"] = settings()
bonas.configure()
result["second"] = settings()
result["precision"] = str(jnp.zeros(1).dtype)
compile_something(3)
result["folder"] = jax.config.jax_compilation_cache_dir
"""
    return {
        **child(code, folder),
        "expected folder": folder / "cache" / "bonas" / "xla",
    }


@pytest.mark.slow
def test_real_numbers_are_float64(default):
    assert default["precision"] == "float64"


def test_blas_has_one_thread(default):
    assert default["first"]["threads"]
    assert set(default["first"]["threads"]) == {1}


def test_child_processes_have_one_thread(default):
    assert [default["first"]["environment"][name] for name in BLAS] == ["1", "1", "1"]


@pytest.mark.skipif(
    sys.platform in ("darwin", "win32"), reason="their cache folders are elsewhere"
)
def test_the_cache_is_in_the_users_cache_folder(default):
    assert default["folder"] == str(default["expected folder"])


@pytest.mark.skipif(
    sys.platform in ("darwin", "win32"), reason="their cache folders are elsewhere"
)
def test_compiled_programs_are_kept(default):
    assert any(default["expected folder"].iterdir())


def test_a_second_call_changes_nothing(default):
    assert default["second"] == default["first"]


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Settings other than the defaults, and those that keep what is set."""
    folder = tmp_path_factory.mktemp("other")
    code = """
before = settings()
bonas.configure(x64=False, threads=None, cache=False)
result["untouched"] = settings() == before
result["precision"] = str(jnp.zeros(1).dtype)
bonas.configure(threads=2, cache=False)
result["two"] = threads()
bonas.configure(threads=None, cache=False)
result["still two"] = threads()
compile_something(3)
result["cache"] = os.path.exists("cache")
"""
    return child(code, folder, JAX_ENABLE_X64="0")


@pytest.mark.slow
def test_every_setting_can_be_kept(other):
    assert other["untouched"]


def test_float32_is_possible(other):
    assert other["precision"] == "float32"


def test_the_number_of_threads_can_be_chosen(other):
    assert set(other["two"]) == {2}


def test_threads_none_keeps_the_number_of_threads(other):
    assert other["still two"] == other["two"]


def test_without_a_cache_no_folder_is_created(other):
    assert not other["cache"]


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """Caches that change after programs have been compiled."""
    folder = tmp_path_factory.mktemp("moved")
    code = """
compile_something(3)
for number, cache in enumerate(["first", Path("second"), False]):
    bonas.configure(cache=cache)
    compile_something(4 + number)
result["folders"] = {name: len(list(Path(name).iterdir())) for name in ("first", "second")}
"""
    return child(code, folder)["folders"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["first", "second"])
def test_the_cache_folder_can_change_after_compiling(moved, name):
    """Each folder has exactly the program compiled while it was set."""
    assert moved[name] == 1


def test_the_environment_variable_sets_the_cache_folder(tmp_path):
    code = "bonas.configure(); result['folder'] = jax.config.jax_compilation_cache_dir"
    assert child(code, tmp_path, JAX_COMPILATION_CACHE_DIR=str(tmp_path / "mine")) == {
        "folder": str(tmp_path / "mine")
    }


@pytest.mark.slow
def test_a_cloud_bucket_is_not_created_as_a_folder(tmp_path):
    code = """
bonas.configure()
result["folder"] = jax.config.jax_compilation_cache_dir
result["made"] = os.listdir(".")
"""
    result = child(code, tmp_path, JAX_COMPILATION_CACHE_DIR="gs://bucket/cache")
    assert result == {"folder": "gs://bucket/cache", "made": []}


def test_a_folder_that_cannot_be_created_is_a_warning(tmp_path):
    (tmp_path / "file").touch()
    code = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    bonas.configure(cache="file/below")
result["warnings"] = [str(warning.message) for warning in caught]
result["files"] = [Path(warning.filename).name for warning in caught]
result["folder"] = jax.config.jax_compilation_cache_dir
"""
    result = child(code, tmp_path)
    assert len(result["warnings"]) == 1
    assert "uses no compilation cache" in result["warnings"][0]
    assert result["files"] == ["<string>"]  # the caller, not the library
    assert result["folder"] is None


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"], ids=repr)
def test_bad_numbers_of_threads_are_refused(threads):
    with pytest.raises(
        ValueError,
        match=f"threads must be a whole number of at least 1.*got {threads!r}",
    ):
        bonas.configure(threads=threads)


@pytest.mark.slow
def test_compiler_flags_are_added_once_to_those_already_set(tmp_path):
    code = """
bonas.configure()
bonas.configure()
result["flags"] = os.environ["XLA_FLAGS"]
result["sum"] = float(jnp.arange(3).sum())
"""
    result = child(code, tmp_path, XLA_FLAGS="--xla_force_host_platform_device_count=2")
    assert (
        result["flags"]
        == "--xla_force_host_platform_device_count=2 --xla_cpu_use_fusion_emitters=false"
        " --xla_backend_extra_options=xla_cpu_disable_loop_unrolling"
    )
    set_by_user = (
        "--xla_cpu_use_fusion_emitters=true"
        " --xla_backend_extra_options=xla_cpu_prefer_vector_width=128"
    )
    kept = child(code, tmp_path, XLA_FLAGS=set_by_user)
    assert kept["flags"] == set_by_user
    assert result["sum"] == 3.0


@pytest.mark.slow
def test_batches_of_large_matrices_do_not_deadlock(tmp_path):
    """With one thread per core, XLA of jaxlib 0.10 deadlocks here, and the child times out."""
    code = """
bonas.configure(cache=False)
model = bonas.surrogates.gp(restarts=1)
data = bonas.dataset(jax.random.uniform(jax.random.key(0), (200, 3)), jnp.arange(200.0), 256)
data, _, _ = bonas.standardize(data)
fitted, info = jax.jit(model.fit)(jax.random.key(1), data, model.init(256, 3, 1))
result["finite"] = bool(info.finite)
"""
    assert child(code, tmp_path)["finite"]


@pytest.mark.slow
def test_a_given_number_of_xla_threads_is_kept(tmp_path):
    assert (
        child(
            'bonas.configure(); result["pool"] = os.environ["NPROC"]',
            tmp_path,
            NPROC="3",
        )["pool"]
        == "3"
    )


SEARCH = """
space = bonas.Space(x=bonas.Float(0.0, 1.0))
def find():
    search = bonas.bayes(space, initial=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        history = bonas.run(search, lambda key, u: (u[0] - 0.3) ** 2, jax.random.key(0), 4)
    said = [str(each.message) for each in caught if "float32" in str(each.message)]
    return [str(history.y.dtype), said]
"""


@pytest.fixture(scope="module")
def late(tmp_path_factory):
    """Searches before and after a late call."""
    code = f"""{SEARCH}
result["before"] = [find(), find()]
bonas.configure(cache=False)
result["after"] = find()
"""
    return child(code, tmp_path_factory.mktemp("late"))


@pytest.mark.slow
def test_a_search_in_single_precision_warns_once(late):
    (dtype, first), (_, second) = late["before"]
    assert dtype == "float32"
    assert len(first) == 1
    assert "bonas.configure()" in first[0]
    assert second == []


@pytest.mark.slow
def test_a_late_call_changes_the_precision_of_later_searches(late):
    assert late["after"] == ["float64", []]


@pytest.mark.slow
def test_single_precision_on_purpose_warns_of_nothing(tmp_path):
    code = f"""{SEARCH}
bonas.configure(x64=False, cache=False)
result["found"] = find()
"""
    assert child(code, tmp_path)["found"] == ["float32", []]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Runs and studies of before a late call, used after it."""
    code = """
space = bonas.Space(x=bonas.Float(0.0, 1.0))
search = bonas.bayes(space, initial=2)
key = jax.random.key(0)
def objective(key, u):
    return (u[0] - 0.3) ** 2
def message(function):
    try:
        function()
    except Exception as problem:
        return [type(problem).__name__, str(problem)]
    return None
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    study = bonas.Study("study.db", space)
    study.tell(study.ask(), 1.0)
result["warnings"] = [str(each.message) for each in caught]
result["files"] = [Path(each.filename).name for each in caught]
history = bonas.run(search, objective, key, 4)
bonas.configure(cache=False)
result["study"] = message(study.ask)
result["reopened"] = message(bonas.Study("study.db", space).ask)
result["state"] = message(lambda: bonas.run(search, objective, key, 2, state=history.state))
fitted = bonas.search.posterior(search, history)
mean, std = fitted.predict(history.x)
result["dtype"] = str(mean.dtype)
result["error"] = float(jnp.abs(mean - history.y).max())
bonas.configure(x64=False, cache=False)
result["back"] = message(study.ask)
"""
    return child(code, tmp_path_factory.mktemp("mixed"))


@pytest.mark.slow
def test_a_default_study_in_single_precision_warns_once(mixed):
    assert len(mixed["warnings"]) == 1
    assert "bonas.configure()" in mixed["warnings"][0]
    assert mixed["files"] == ["<string>"]  # the caller, not the library


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [("study", "StudyError"), ("reopened", "StudyError"), ("state", "ValueError")],
)
def test_states_from_before_a_late_call_are_refused(mixed, name, kind):
    found, message = mixed[name]
    assert found == kind
    assert "in float32, but this process computes in float64" in message
    assert "call bonas.configure(x64=False) to continue in float32" in message


@pytest.mark.slow
def test_a_study_continues_in_its_precision(mixed):
    assert mixed["back"] is None


@pytest.mark.slow
def test_runs_from_before_a_late_call_have_a_posterior(mixed):
    assert mixed["dtype"] == "float64"
    assert mixed["error"] < 0.01


@pytest.mark.slow
def test_a_state_in_single_precision_warns(tmp_path):
    code = """
search = bonas.bayes(bonas.Space(x=bonas.Float(0.0, 1.0)))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    jax.jit(search.init, static_argnums=1)(jax.random.key(0), 4)
result["warnings"] = [[str(each.message), Path(each.filename).name] for each in caught]
"""
    ((message, file),) = child(code, tmp_path)["warnings"]
    assert "bonas.configure()" in message
    assert file == "<string>"
