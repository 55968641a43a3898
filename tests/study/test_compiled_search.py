"""Stored programs run the same in other processes, and unreadable files are replaced."""

import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas.search import random
from bonas.study import compiled_search
from bonas.study.compiled_search import compile_search, make_observation
from bonas.study.stepper import ask_key, run_keys

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0), n=bonas.Int(1, 9, when={"a": (">=", 0.5)}))
SEARCH = random(SPACE)
INIT, RUN = run_keys(0)


@pytest.fixture
def folder(tmp_path):
    """A new compilation cache; yields its folder of programs."""
    before = jax.config.jax_compilation_cache_dir
    bonas.configure(cache=tmp_path)
    yield tmp_path / "programs"
    bonas.configure(cache=before or False)


def points(made, steps=6):
    state, found = made.init(INIT), []
    for i in range(steps):
        x, state, info = made.ask(ask_key(RUN, jnp.asarray(i)), state)
        state = made.tell(
            state, make_observation(x[0], float(x.sum()), 1.0, ok=i % 3 != 2)
        )
        found.append(np.asarray(x[0]))
    assert bool(info.random)
    return np.array(found)


@pytest.mark.slow
def test_stored_programs_ask_for_the_same_points(folder):
    made = compile_search(SEARCH, 8, "a name")
    assert len(list(folder.iterdir())) == 1
    read = compile_search(SEARCH, 8, "a name")
    plain = compile_search(SEARCH, 8)
    assert (
        (read.batch_size, read.persistent)
        == (made.batch_size, made.persistent)
        == (plain.batch_size, plain.persistent)
    )
    np.testing.assert_array_equal(points(read), points(made))
    np.testing.assert_array_equal(points(read), points(plain))


def test_stored_programs_are_not_traced_again(folder, monkeypatch):
    compile_search(SEARCH, 8, "a name")
    monkeypatch.setattr(
        compiled_search, "_flat_functions", lambda *_: pytest.fail("traced")
    )
    assert compile_search(SEARCH, 8, "a name").batch_size == 1


@pytest.mark.slow
def test_another_name_capacity_or_code_is_another_program(folder, monkeypatch):
    compile_search(SEARCH, 8, "a name")
    compile_search(SEARCH, 8, "another")
    compile_search(SEARCH, 9, "a name")
    monkeypatch.setattr(compiled_search, "_source_digest", lambda: "other code")
    compile_search(SEARCH, 8, "a name")
    assert len(list(folder.iterdir())) == 4


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["empty", "cut", "changed", "foreign"])
def test_a_broken_file_is_replaced(folder, harm):
    made = compile_search(SEARCH, 8, "a name")
    (file,) = folder.iterdir()
    content = file.read_bytes()
    middle = len(content) // 2
    broken = {
        "empty": [b""],
        "cut": [content[:middle], content[:20], content[:-1]],
        "changed": [
            content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :]
            for at in (0, 32, middle, middle + 7, -2)
        ],
        "foreign": [b"something else"],
    }
    for instead in broken[harm]:
        file.write_bytes(instead)
        assert compiled_search.load_programs(file) is None
    np.testing.assert_array_equal(
        points(compile_search(SEARCH, 8, "a name")), points(made)
    )
    assert compiled_search.load_programs(file) is not None


def test_without_a_compilation_cache_nothing_is_stored(tmp_path):
    before = jax.config.jax_compilation_cache_dir
    bonas.configure(cache=False)
    assert compiled_search.program_file("a name", 8) is None
    assert len(points(compile_search(SEARCH, 8, "a name"))) == 6
    bonas.configure(cache=before or False)


def test_an_unwritable_folder_is_ignored(tmp_path):
    before = jax.config.jax_compilation_cache_dir
    (tmp_path / "programs").write_text("a file where the folder should be")
    bonas.configure(cache=tmp_path)
    assert len(points(compile_search(SEARCH, 8, "a name"))) == 6
    bonas.configure(cache=before or False)


SCRIPT = """
import json, sys, bonas
bonas.configure()
space = bonas.Space(a=bonas.Float(0.0, 1.0), n=bonas.Int(1, 9, when={"a": (">=", 0.5)}))
with bonas.Study(sys.argv[1], space, seed=3) as study:
    study.optimize(lambda c: (c["a"] - 0.7) ** 2 + 0.01 * c.get("n", 0), 9, progress=False)
    print(json.dumps([list(trial.u) for trial in study.trials]))
"""


@pytest.mark.slow
def test_a_study_asks_for_the_same_points_with_and_without_stored_programs(tmp_path):
    """Run in other processes: without a cache, with an empty one, and with a filled one."""

    def run(name, **where):
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / name)]
        done = subprocess.run(
            command, env=os.environ | where, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    cache = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")}
    first, second = run("first.db", **cache), run("second.db", **cache)
    assert len(list((tmp_path / "cache" / "programs").iterdir())) == 1
    assert (
        first
        == second
        == run(
            "third.db",
            JAX_ENABLE_COMPILATION_CACHE="false",
            JAX_COMPILATION_CACHE_DIR="",
        )
    )
