"""Programs that are kept: read in another process they are the same, and anything unreadable is made anew."""

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
from bonas.study import programs as module
from bonas.study import states
from bonas.study.programs import programs, trial

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0), n=bonas.Int(1, 9, when={"a": (">=", 0.5)}))
SEARCH = random(SPACE)
INIT, RUN = states.keys(0)


@pytest.fixture
def folder(tmp_path):
    """A cache of its own, which is where programs are kept."""
    before = jax.config.jax_compilation_cache_dir
    bonas.configure(cache=tmp_path)
    programs.cache_clear()
    yield tmp_path / "programs"
    bonas.configure(cache=before or False)
    programs.cache_clear()


def points(made, steps=6):
    state, found = made.init(INIT), []
    for i in range(steps):
        x, state, info = made.ask(states.ask_key(RUN, jnp.asarray(i)), state)
        state = made.tell(state, trial(x[0], float(x.sum()), 1.0, ok=i % 3 != 2))
        found.append(np.asarray(x[0]))
    assert bool(info.random)
    return np.array(found)


@pytest.mark.slow
def test_kept_programs_are_those_of_the_search(folder):
    made = programs(SEARCH, 8, "a name")
    assert len(list(folder.iterdir())) == 1
    programs.cache_clear()
    read = programs(SEARCH, 8, "a name")
    plain = programs(SEARCH, 8)
    assert (read.batch, read.lasting) == (made.batch, made.lasting) == (plain.batch, plain.lasting)
    np.testing.assert_array_equal(points(read), points(made))
    np.testing.assert_array_equal(points(read), points(plain))


def test_what_was_kept_is_not_traced_again(folder, monkeypatch):
    programs(SEARCH, 8, "a name")
    programs.cache_clear()
    monkeypatch.setattr(module, "_flat", lambda *_: pytest.fail("traced"))
    assert programs(SEARCH, 8, "a name").batch == 1


@pytest.mark.slow
def test_another_name_room_or_code_is_another_program(folder, monkeypatch):
    programs(SEARCH, 8, "a name")
    programs(SEARCH, 8, "another")
    programs(SEARCH, 9, "a name")
    programs.cache_clear()
    monkeypatch.setattr(module, "_sources", lambda: "other code")
    programs(SEARCH, 8, "a name")
    assert len(list(folder.iterdir())) == 4


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["empty", "cut", "changed", "foreign"])
def test_a_broken_file_is_made_anew(folder, harm):
    made = programs(SEARCH, 8, "a name")
    (file,) = folder.iterdir()
    content = file.read_bytes()
    middle = len(content) // 2
    broken = {
        "empty": [b""],
        "cut": [content[:middle], content[:20], content[:-1]],
        "changed": [content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :] for at in (0, 32, middle, middle + 7, -2)],
        "foreign": [b"something else"],
    }
    programs.cache_clear()
    for instead in broken[harm]:
        file.write_bytes(instead)
        assert module._read(file) is None
    np.testing.assert_array_equal(points(programs(SEARCH, 8, "a name")), points(made))
    programs.cache_clear()
    assert module._read(file) is not None


def test_without_a_cache_nothing_is_kept(tmp_path):
    before = jax.config.jax_compilation_cache_dir
    bonas.configure(cache=False)
    programs.cache_clear()
    assert module._file("a name", 8) is None
    assert len(points(programs(SEARCH, 8, "a name"))) == 6
    bonas.configure(cache=before or False)
    programs.cache_clear()


def test_a_folder_that_cannot_be_written_to_costs_no_search(tmp_path):
    before = jax.config.jax_compilation_cache_dir
    (tmp_path / "programs").write_text("a file where the folder should be")
    bonas.configure(cache=tmp_path)
    programs.cache_clear()
    assert len(points(programs(SEARCH, 8, "a name"))) == 6
    bonas.configure(cache=before or False)
    programs.cache_clear()


SCRIPT = """
import json, sys, bonas
bonas.configure()
space = bonas.Space(a=bonas.Float(0.0, 1.0), n=bonas.Int(1, 9, when={"a": (">=", 0.5)}))
with bonas.Study(sys.argv[1], space, seed=3) as study:
    study.optimise(lambda c: (c["a"] - 0.7) ** 2 + 0.01 * c.get("n", 0), 9, progress=False)
    print(json.dumps([list(trial.u) for trial in study.trials]))
"""


@pytest.mark.slow
def test_a_study_asks_for_the_same_points_whether_its_programs_were_kept_or_not(tmp_path):
    """In processes of their own: without a cache, with an empty one, and with what that left."""

    def run(name, **where):
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / name)]
        done = subprocess.run(command, env=os.environ | where, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    cache = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")}
    first, second = run("first.db", **cache), run("second.db", **cache)
    assert len(list((tmp_path / "cache" / "programs").iterdir())) == 1
    assert first == second == run("third.db", JAX_ENABLE_COMPILATION_CACHE="false", JAX_COMPILATION_CACHE_DIR="")
