"""Histories and results in files: exact, without pickle, and refused if they do not fit."""

import json
import pickle
import subprocess
import sys
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from cases import brownian

import bonas
from bonas import gp, surrogates
from bonas.search import History, Result, Search, evolution, random
from bonas.search.run_files import FORMAT

SPACE = bonas.Space(
    depth=bonas.Int(1, 3),
    rate=bonas.Float(1e-4, 1.0, log=True),
    kind=bonas.Choice("x", "y"),
    width=bonas.Int(1, 64, when={"depth": (">=", 2)}),
)
SEARCH = random(SPACE)
MODEL = bonas.bayes(SPACE, initial=3)
KEY = jax.random.key(0)


def objective(key, u):
    return jnp.where(u[2] < 0.5, jnp.nan, u[1]), 2.0 + u[0]


def level(params, data, x):
    return params["level"]


def same(first, second):
    equal = jax.tree.map(
        lambda a, b: np.array_equal(a, b, equal_nan=True), first, second
    )
    types = jax.tree.map(lambda a, b: a.dtype == b.dtype, first, second)
    assert jax.tree.structure(first) == jax.tree.structure(second)
    return jax.tree.all(equal) and jax.tree.all(types)


@pytest.fixture(scope="module")
def history():
    return bonas.run(SEARCH, objective, KEY, 7, direction="maximize")


@pytest.fixture
def saved(history, tmp_path):
    path = tmp_path / "run.npz"
    history.save(path)
    return path


def test_a_saved_history_is_read_as_it_was(history, saved):
    assert same(History.load(saved, SEARCH), history)
    assert [each.name for each in saved.parent.iterdir()] == ["run.npz"]


def test_many_runs_are_read_as_they_were(tmp_path):
    keys = jax.random.split(KEY, 3)
    many = bonas.run_many(SEARCH, objective, keys, 5)
    many.save(tmp_path / "no suffix")
    assert same(History.load(tmp_path / "no suffix", SEARCH), many)


def test_the_state_of_a_model_is_read_as_it_was(tmp_path):
    """Of any capacity: the state tells it."""
    state = jax.jit(MODEL.init, static_argnums=1)(KEY, 40)
    x = SPACE.sample(KEY, 2)
    given = History(x=x, y=jnp.zeros(2), best=jnp.zeros(2), info=None, state=state)
    given.save(tmp_path / "run")
    assert same(History.load(tmp_path / "run", MODEL), given)


@dataclass(frozen=True)
class Keeper(Search):
    """A search with a random key in its state."""

    space: bonas.Space

    def init(self, key, capacity):
        return key, jnp.zeros((capacity, 2))


def test_a_random_key_in_a_state_is_kept(history, tmp_path):
    search = Keeper(SPACE)
    given = history._replace(state=search.init(jax.random.key(7), 3))
    given.save(tmp_path / "run")
    key, array = History.load(tmp_path / "run", search).state
    assert jax.random.uniform(key) == jax.random.uniform(jax.random.key(7))
    assert array.shape == (3, 2)


def test_without_a_search_there_is_no_state(history, saved):
    found = History.load(saved)
    assert found.state is None
    assert same(found, history._replace(state=None))


def test_records_of_arrays_in_containers_are_kept(history, tmp_path):
    record = {"a": (jnp.ones(7), [jnp.arange(7)]), "b": None}
    given = history._replace(record=record, cost=None, sign=None)
    given.save(tmp_path / "run")
    assert same(History.load(tmp_path / "run", SEARCH), given)

    class Own(NamedTuple):
        a: jax.Array

    with pytest.raises(ValueError, match="it has a Own"):
        history._replace(record=Own(jnp.ones(7))).save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("kind", ["History", "Result", "search"])
def test_pickle_keeps_runs(kind, history):
    if kind == "search":  # a RunPosterior has its search, whose kernel may be a user's
        kernel = gp.Kernel(prior={"scale": dist.HalfNormal(1.0)}, value=brownian)
        mean = gp.Mean(level, prior={"level": dist.Normal(0.0, 1.0)})
        model = surrogates.gp(kernel, mean=mean)
        found = pickle.loads(pickle.dumps(bonas.bayes(SPACE, surrogate=model)))
        assert found.surrogate.kernel.value is brownian
        assert found.surrogate.kernel.prior(3)["scale"].scale == 1.0
        assert found.surrogate.mean.prior(3)["level"].loc == 0.0
        return
    if kind == "History":
        assert same(pickle.loads(pickle.dumps(history)), history)
        return
    result = bonas.minimize(
        lambda config: config["rate"], SPACE, trials=4, search=SEARCH, progress=False
    )
    found = pickle.loads(pickle.dumps(result))
    assert found[:2] == result[:2]
    assert same(found.state, result.state)


def test_pickled_searches_and_spaces_are_equal_in_another_process(tmp_path):
    """Hashes of strings differ between processes."""
    path = tmp_path / "search"
    path.write_bytes(pickle.dumps((SPACE, MODEL)))
    code = f"""
import pickle, bonas
space = bonas.Space(
    depth=bonas.Int(1, 3),
    rate=bonas.Float(1e-4, 1.0, log=True),
    kind=bonas.Choice("x", "y"),
    width=bonas.Int(1, 64, when={{"depth": (">=", 2)}}),
)
unpickled = pickle.load(open({str(path)!r}, "rb"))
for made, found in zip((space, bonas.bayes(space, initial=3)), unpickled):
    assert made == found and hash(made) == hash(found), made
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_a_saved_result_is_read_as_it_was(tmp_path):
    def fails(config):
        if config["kind"] == "x":
            raise MemoryError("too large")
        return config["rate"], 9.0

    settings = {"search": SEARCH, "catch": (MemoryError,), "progress": False}
    result = bonas.minimize(fails, SPACE, trials=8, direction="maximize", **settings)
    assert any(each.error for each in result.evaluations)
    result.save(tmp_path / "result")
    found = Result.load(tmp_path / "result", SEARCH)
    assert (found.config, found.value) == (result.config, result.value)
    assert found.direction == "maximize"
    assert same(found.state, result.state)
    for one, other in zip(found.evaluations, result.evaluations, strict=True):
        assert (one.config, one.error, one.seconds, one.cost) == (
            other.config,
            other.error,
            other.seconds,
            other.cost,
        )
        assert np.array_equal(one.value, other.value, equal_nan=True)
        assert same(one.info, other.info)
    assert Result.load(tmp_path / "result").config == result.config


class Layer:
    """An option that JSON cannot hold."""


def test_options_that_json_cannot_hold_come_from_the_space(tmp_path):
    space = bonas.Space(layer=bonas.Choice(Layer, int, (1, "a")))
    search = random(space)
    result = bonas.minimize(
        lambda config: 0.0, space, trials=3, search=search, progress=False
    )
    result.save(tmp_path / "result")
    expected = [each.config for each in result.evaluations]
    found = Result.load(tmp_path / "result", search).evaluations
    assert [each.config for each in found] == expected
    names = [
        each.config["layer"] for each in Result.load(tmp_path / "result").evaluations
    ]
    assert set(names) == {"Layer", "int", (1, "a")}


# Files that cannot be used


def rewritten(path, **changes):
    """Write a saved run again, with changes to its header or arrays."""
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(str(arrays.pop("bonas")))
    for name, value in changes.items():
        if isinstance(value, np.ndarray):
            arrays[name] = value
        else:
            header[name] = value
    np.savez(path, bonas=np.array(json.dumps(header)), **arrays)


def test_a_newer_file_is_refused(saved):
    rewritten(saved, format=FORMAT + 1)
    with pytest.raises(ValueError, match=r"newer version of bonas .* update bonas"):
        History.load(saved, SEARCH)


def test_another_kind_of_file_is_refused(saved, tmp_path):
    with pytest.raises(
        ValueError, match=r"is a saved History: use bonas\.search\.History"
    ):
        Result.load(saved, SEARCH)
    np.savez(tmp_path / "arrays.npz", x=np.ones(3))
    np.save(tmp_path / "one.npy", np.ones(3))
    (tmp_path / "text").write_text("no run")
    (tmp_path / "pickle").write_bytes(pickle.dumps({"x": 1}))
    (tmp_path / "empty").write_bytes(b"")
    for name in ("arrays.npz", "one.npy", "text", "pickle", "empty"):
        with pytest.raises(ValueError, match="is not a saved run, or it is damaged"):
            History.load(tmp_path / name, SEARCH)
    with pytest.raises(FileNotFoundError):
        History.load(tmp_path / "missing", SEARCH)


def test_pickled_objects_in_a_file_are_not_loaded(saved):
    rewritten(saved, x=np.array([print], dtype=object))
    with pytest.raises(ValueError, match="is not a saved run, or it is damaged"):
        History.load(saved, SEARCH)


@pytest.mark.parametrize(
    "changes",
    [
        {"state": 3},
        {"record": {"set": []}},
        {"record": 7},
        {"y": np.zeros((2, 2))},
        {"info.acquisition": np.zeros(3), "info.colour": np.zeros(3)},
        {"format": "one"},
        {"format": None},
        {"kind": None},
    ],
)
def test_a_damaged_file_is_refused(changes, saved):
    rewritten(saved, **changes)
    with pytest.raises(ValueError, match=r"run\.npz"):
        History.load(saved, SEARCH)


def test_changed_bytes_are_refused_or_change_nothing(history, saved):
    generator = np.random.default_rng(0)
    whole = saved.read_bytes()
    for _ in range(60):
        broken = bytearray(whole)
        broken[generator.integers(len(whole))] ^= int(generator.integers(1, 256))
        saved.write_bytes(broken)
        try:
            found = History.load(saved, SEARCH)
        except ValueError:
            continue
        assert same(found, history)
    for share in (0.1, 0.5, 0.9, 0.999):
        saved.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(ValueError, match="damaged"):
            History.load(saved, SEARCH)


SMALLER = bonas.Space(rate=SPACE.parameters["rate"])
ALWAYS = bonas.Space(**{**SPACE.parameters, "width": bonas.Int(1, 64)})


@pytest.mark.parametrize(
    ("search", "match"),
    [
        (MODEL, "does not belong to this search: .* exist in only one of the two"),
        (random(SMALLER), "a space of 4 parameters; the search has 1"),
        (
            random(bonas.Space(**{**SPACE.parameters, "depth": bonas.Int(1, 1)})),
            "saved point",
        ),
    ],
)
def test_a_search_that_did_not_make_the_run_is_refused(search, match, saved):
    with pytest.raises(ValueError, match=match):
        History.load(saved, search)


def test_a_search_with_another_capacity_in_its_state_is_refused(saved):
    with np.load(saved) as file:
        times = file["state.8"]
    rewritten(saved, **{"state.8": times[:-1]})
    with pytest.raises(ValueError, match=r"\.times must be int64\[14\]"):
        History.load(saved, SEARCH)


def test_searches_with_the_same_state_may_differ(history, saved):
    found = History.load(saved, random(SPACE, batch=2))
    assert same(found, history)
    with pytest.raises(ValueError, match="exist in only one of the two"):
        History.load(
            saved,
            bonas.turbo(
                bonas.Space(**{name: bonas.Float(0.0, 1.0) for name in SPACE.names})
            ),
        )


def test_a_result_of_another_space_is_refused(tmp_path):
    result = bonas.minimize(
        lambda config: 0.0, SPACE, trials=2, search=SEARCH, progress=False
    )
    result.save(tmp_path / "result")
    with pytest.raises(ValueError, match="result: unknown parameter"):
        Result.load(tmp_path / "result", random(SMALLER))


def test_evolution_goes_on_after_loading(tmp_path):
    search = evolution(SPACE, population=3)
    history = bonas.run(search, objective, KEY, 6)
    history.save(tmp_path / "run")
    states = history.state, History.load(tmp_path / "run", search).state
    grown = [search.grow(state, search.init(KEY, 8)) for state in states]
    first, second = (search.ask(KEY, state)[0] for state in grown)
    np.testing.assert_array_equal(first, second)
