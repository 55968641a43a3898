"""Studies store the known noise variance of each value, and their search uses it."""

import csv
import sqlite3

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import acquire, gp, surrogates
from bonas.search import posterior, random
from bonas.study.migrations import MIGRATIONS

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0))
BASELINE = random(SPACE)


def make_search(**settings):
    return bonas.bayes(
        SPACE,
        surrogate=surrogates.gp(gp.matern52(), noise=1e-4),
        maximizer=acquire.random_candidates(SPACE, candidates=20),
        initial=2,
        output="plain",
        **{"known_noise": True, **settings},
    )


def objective(config):
    """Return a value, its cost, and the variance of its noise."""
    return (config["a"] - 0.3) ** 2, 2.0, 0.1 + config["a"]


@pytest.mark.slow
def test_a_study_asks_for_the_points_of_minimize(tmp_path):
    """Also if it is opened again for every trial, and if values are told by hand."""
    search = make_search()
    result = bonas.minimize(objective, SPACE, trials=6, search=search, progress=False)
    expected = [each.config for each in result.evaluations]
    for trials in range(1, 5):
        with bonas.Study(tmp_path / "runs.db", SPACE, search=search, seed=0) as study:
            study.optimize(objective, trials=trials, progress=False)
    with bonas.Study(tmp_path / "runs.db", SPACE, search=search) as study:
        for _ in range(2):
            trial = study.ask()
            value, cost, noise = objective(trial.config)
            study.tell(trial, value, cost=cost, noise=noise)
        assert [trial.config for trial in study.trials] == expected
        for trial in study.trials:
            assert (trial.cost, trial.noise) == (2.0, 0.1 + trial.config["a"])
        x = jnp.linspace(0.0, 1.0, 5)[:, None]
        np.testing.assert_allclose(
            posterior(search, study).predict(x),
            posterior(search, result).predict(x),
            rtol=1e-5,
        )


def test_tables_have_a_column(tmp_path):
    with bonas.Study(tmp_path / "runs.db", SPACE, search=BASELINE) as study:
        study.tell(study.ask(), 1.0, noise=0.25)
        study.tell(study.ask(), 1.0)
        study.csv(tmp_path / "runs.csv")
        np.testing.assert_array_equal(study.frame()["noise"], [0.25, np.nan])
    with open(tmp_path / "runs.csv", newline="", encoding="utf-8") as file:
        assert [row["noise"] for row in csv.DictReader(file)] == ["0.25", ""]


@pytest.mark.parametrize("search", [None, make_search(known_noise=False)])
def test_a_search_without_known_noise_refuses_it(tmp_path, search):
    with bonas.Study(tmp_path / "runs.db", SPACE, search=search) as study:
        number = study.enqueue({"a": 0.5})
        study.ask()
        with pytest.raises(ValueError, match="bayes\\(known_noise=True\\)"):
            study.tell(number, 1.0, noise=0.1)
        assert study.trials[number].state == "running"
        study.tell(number, 1.0)
        study.enqueue({"a": 0.7})
        study.optimize(objective, trials=2, progress=False)
        assert study.trials[1].state == "failed"
        assert "known_noise=True" in study.trials[1].error


def test_a_process_without_the_custom_search_stores_it(tmp_path):
    bonas.Study(tmp_path / "runs.db", SPACE, search=make_search()).close()
    with bonas.Study(tmp_path / "runs.db") as study:
        number = study.enqueue({"a": 0.5})
        study.ask()
        study.tell(number, 1.0, noise=0.1)
        assert study.best.noise == 0.1


def test_an_impossible_variance_is_refused(tmp_path):
    with bonas.Study(tmp_path / "runs.db", SPACE, search=BASELINE) as study:
        trial = study.ask()
        for noise in (-1.0, np.nan, np.inf, "loud"):
            with pytest.raises(ValueError, match="noise variance"):
                study.tell(trial, 1.0, noise=noise)


def test_a_missing_variance_is_refused(tmp_path):
    def without_noise(config):
        return objective(config)[0]

    with bonas.Study(tmp_path / "runs.db", SPACE, search=make_search()) as study:
        trial = study.ask()
        with pytest.raises(ValueError, match=r"study\.tell\(trial, value, noise="):
            study.tell(trial, 1.0)
        study.tell(trial, 1.0, noise=0.0)
        study.optimize(without_noise, trials=2, progress=False)
        assert [trial.noise for trial in study.trials] == [0.0, None]
        assert study.trials[1].state == "failed"
        assert "expected a noise variance" in study.trials[1].error


def test_a_pruned_trial_needs_a_variance(tmp_path):
    def prune(config, trial):
        trial.report(0, 1.0)
        raise bonas.study.Pruned

    with bonas.Study(tmp_path / "runs.db", SPACE, search=make_search()) as study:
        study.optimize(prune, trials=1, progress=False)
        assert study.trials[0].state == "failed"
        assert study.trials[0].value is None


def test_failed_trials_need_none(tmp_path):
    with bonas.Study(tmp_path / "runs.db", SPACE, search=make_search()) as study:
        study.tell(study.ask(), np.nan)
        study.fail(study.ask(), "out of memory")
        study.ask()
        assert [trial.noise for trial in study.trials] == [None] * 3


# Files of the previous schema


def make_previous_version(path):
    """Turn a study into one of schema version 3, which stored no noise."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("ALTER TABLE trial DROP COLUMN noise")
    db.execute("PRAGMA user_version = 3")
    db.close()


def test_a_file_without_the_column_is_converted(tmp_path):
    path = tmp_path / "runs.db"
    with bonas.Study(path, SPACE, search=BASELINE, seed=3) as study:
        study.optimize(lambda config: config["a"], trials=3, progress=False)
        before = study.trials
    make_previous_version(path)
    with bonas.Study(path, SPACE, search=BASELINE) as study:
        assert study.trials == before
        study.tell(study.ask(), 1.0, noise=0.5)
        assert [trial.noise for trial in study.trials] == [None, None, None, 0.5]
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    db.close()


@pytest.mark.slow
def test_values_stored_without_noise_are_exact_as_before(tmp_path):
    """Earlier versions stored none, and such studies continue with the same points."""
    search = make_search()
    path = tmp_path / "runs.db"
    with bonas.Study(path, SPACE, search=search, seed=0) as study:
        for value in (0.5, 0.3, 0.2):
            study.tell(study.ask(), value, cost=1.0, noise=0.0)
        points = [trial.u for trial in study.trials]
    make_previous_version(path)
    with bonas.Study(path, SPACE, search=search) as study:
        asked = study.ask().u
    state = search.init(jax.random.split(jax.random.key(0))[0], 64)
    run_key = jax.random.split(jax.random.key(0))[1]
    ask, tell = jax.jit(search.ask), jax.jit(search.tell)
    for i, value in enumerate((0.5, 0.3, 0.2)):
        key = jax.random.split(jax.random.fold_in(run_key, i))[0]
        x, state, _ = ask(key, state)
        np.testing.assert_array_equal(x[0], points[i])
        state = tell(state, bonas.Observation(x[0], value, noise=jnp.asarray(0.0)))
    x, _, _ = ask(jax.random.split(jax.random.fold_in(run_key, 3))[0], state)
    np.testing.assert_array_equal(x[0], asked)
