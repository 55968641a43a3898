"""Stored programs run the same in other processes, and unreadable files are replaced.

Studies evaluate initial points before the model is compiled, and compile programs early.
"""

import json
import os
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import acquire, gp, surrogates
from bonas.search import random
from bonas.study import StudyError, compiled_search
from bonas.study.compiled_search import (
    SearchPrograms,
    compile_search,
    make_observation,
)
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


# Compiling early

SQUARE = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))


def cheap(initial=3, **settings):
    return bonas.bayes(
        SQUARE,
        surrogate=surrogates.gp(gp.matern52(), steps=2),
        maximizer=acquire.random_candidates(SQUARE, candidates=16),
        initial=initial,
        output="plain",
        **settings,
    )


def loss(config):
    return (config["a"] - 0.3) ** 2 + config["b"]


@pytest.fixture
def compiler(monkeypatch):
    """A compiler that starts when it is told to."""
    start = threading.Event()
    compile_now = compiled_search.in_background

    def wait_and_call(function):
        return compile_now(lambda: start.wait(60.0) and function())

    monkeypatch.setattr(compiled_search, "in_background", wait_and_call)
    yield start
    start.set()


def configs(study):
    return [trial.config for trial in study.trials]


def test_initial_points_need_no_program(tmp_path, monkeypatch):
    monkeypatch.setattr(SearchPrograms, "_trace", lambda *_: pytest.fail("traced"))
    with bonas.Study(tmp_path / "runs.db", SQUARE, search=cheap()) as study:
        study.optimize(loss, trials=3, progress=False)
        assert [trial.info["random"] for trial in study.trials] == [True] * 3


@pytest.mark.slow
def test_points_are_those_of_minimize_however_often_the_study_is_opened(
    tmp_path, compiler
):
    compiler.set()
    expected = bonas.minimize(loss, SQUARE, trials=6, search=cheap(), progress=False)
    for trials in (1, 2, 4, 6):
        with bonas.Study(tmp_path / "runs.db", SQUARE, search=cheap()) as study:
            study.optimize(loss, trials=trials, progress=False)
            found = configs(study)
    assert found == [each.config for each in expected.evaluations]


@pytest.mark.slow
def test_initial_points_are_evaluated_before_the_model_is_compiled(tmp_path, compiler):
    seen = []

    def objective(config):
        seen.append(compiler.is_set())
        if len(seen) == 3:
            compiler.set()
        return loss(config)

    with bonas.Study(tmp_path / "runs.db", SQUARE, search=cheap()) as study:
        study.optimize(objective, trials=4, progress=False)
    assert seen == [False, False, False, True]


@pytest.mark.slow
def test_enqueued_trials_count_as_initial_points(tmp_path):
    """As in `tell` of the search, which knows their values when it chooses the next point."""
    found = []
    for early in (False, True):
        with bonas.Study(tmp_path / f"{early}.db", SQUARE, search=cheap()) as study:
            if early:
                trial = study.ask()
                study.tell(trial, loss(trial.config))
            study.enqueue({"a": 0.5, "b": 0.25})
            study.optimize(loss, trials=4, progress=False)
            found.append([trial.info.get("random") for trial in study.trials])
    # the enqueued trial takes the place of an initial point, the last one is the model's
    assert found == [[None, True, True, False], [True, None, True, False]]


@pytest.mark.slow
def test_another_search_cannot_continue_initial_points(tmp_path):
    with bonas.Study(tmp_path / "runs.db", SQUARE, search=cheap()) as study:
        study.optimize(loss, trials=2, progress=False)
    other = cheap(initial=[[0.1, 0.2], [0.3, 0.4]])
    with (
        bonas.Study(tmp_path / "runs.db", SQUARE, search=other) as study,
        pytest.raises(StudyError, match="created with another search"),
    ):
        study.optimize(loss, trials=4, progress=False)


@pytest.mark.slow
def test_a_larger_capacity_is_compiled_before_it_is_needed(tmp_path, monkeypatch):
    prepared = []
    prepare = SearchPrograms.prepare

    def record(programs, capacity):
        prepared.append((capacity, len(study.trials)))
        prepare(programs, capacity)

    monkeypatch.setattr(SearchPrograms, "prepare", record)
    with bonas.Study(tmp_path / "a.db", SQUARE, search=cheap(), _capacity=8) as study:
        study.optimize(loss, trials=10, progress=False)
    first = dict(reversed(prepared))
    assert first == {8: 1, 16: 5}
