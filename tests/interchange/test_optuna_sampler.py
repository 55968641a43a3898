"""Optuna studies whose points a bonas search chooses."""

import statistics
import sys
import warnings

import jax
import pytest

import bonas
from bonas.search import random, sobol

optuna = pytest.importorskip("optuna")
from bonas.interchange import BonasSampler  # noqa: E402
from bonas.interchange.optuna_sampler import FALLBACK_ATTRIBUTE  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.WARNING)

SPACE = bonas.Space(
    depth=bonas.Int(1, 3),
    lr=bonas.Float(1e-4, 1.0, log=True),
    activation=bonas.Choice("relu", "tanh"),
    slope=bonas.Float(0.0, 0.5, when={"activation": "relu"}),
)


def conditional(trial):
    """The define-by-run form of SPACE."""
    depth, lr = (
        trial.suggest_int("depth", 1, 3),
        trial.suggest_float("lr", 1e-4, 1.0, log=True),
    )
    slope = (
        trial.suggest_float("slope", 0.0, 0.5)
        if trial.suggest_categorical("activation", ["relu", "tanh"]) == "relu"
        else 1.0
    )
    return depth + lr + slope


def bowl(trial):
    return (trial.suggest_float("a", -5.0, 5.0) - 1.0) ** 2 + (
        trial.suggest_float("b", -5.0, 5.0) + 2.0
    ) ** 2


def run_study(sampler, objective, trials, **settings):
    study = optuna.create_study(sampler=sampler, **settings)
    study.optimize(objective, n_trials=trials, catch=(ArithmeticError,))
    return study


def fallbacks(trial):
    return {
        name: why
        for name, why in trial.user_attrs.items()
        if name.startswith(FALLBACK_ATTRIBUTE)
    }


@pytest.mark.slow
def test_the_sampler_beats_random_search():
    """The median of random search after 20 points is about 2; a model has found the minimum."""
    ours = [
        run_study(BonasSampler(seed=seed), bowl, 20).best_value for seed in range(3)
    ]
    theirs = [
        run_study(optuna.samplers.RandomSampler(seed=seed), bowl, 20).best_value
        for seed in range(3)
    ]
    assert statistics.median(ours) < 0.1 * statistics.median(theirs)


def test_maximizing_is_minimizing_the_negative():
    least = run_study(BonasSampler(seed=0), bowl, 9)
    most = run_study(
        BonasSampler(seed=0), lambda trial: -bowl(trial), 9, direction="maximize"
    )
    assert [trial.params for trial in least.trials] == [
        trial.params for trial in most.trials
    ]


@pytest.mark.slow
def test_a_conditional_space_needs_no_fallback():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study = run_study(BonasSampler(SPACE, seed=0), conditional, 8)
    assert {trial.state.name for trial in study.trials} == {"COMPLETE"}
    assert not any(fallbacks(trial) for trial in study.trials)
    # with and without a slope
    assert {len(trial.params) for trial in study.trials} == {3, 4}


def test_the_points_are_those_of_the_search():
    """A Sobol sequence does not depend on values: the points are those of the search itself."""
    sampler = BonasSampler(SPACE, search=sobol, seed=3)
    study = run_study(sampler, conditional, 6)
    init_key, _ = jax.random.split(jax.random.key(3))
    search = sobol(SPACE)
    state = search.init(init_key, 64)
    for trial in study.trials:
        x, state, _ = search.ask(jax.random.key(0), state)
        assert trial.params == pytest.approx(SPACE.decode(x[0]))


def test_sampling_a_late_parameter_independently_is_reported():
    def growing(trial):
        value = bowl(trial)
        return (
            value + trial.suggest_float("late", 0.0, 1.0)
            if trial.number >= 4
            else value
        )

    with pytest.warns(
        UserWarning,
        match="'late' independently: it is not among the parameters that all",
    ):
        study = run_study(BonasSampler(seed=0), growing, 7)
    assert {trial.state.name for trial in study.trials} == {"COMPLETE"}
    assert set(fallbacks(study.trials[0])) == {
        f"{FALLBACK_ATTRIBUTE}:a",
        f"{FALLBACK_ATTRIBUTE}:b",
    }  # the space was not known
    assert not any(fallbacks(trial) for trial in study.trials[1:4])
    for trial in study.trials[4:]:
        assert set(fallbacks(trial)) == {f"{FALLBACK_ATTRIBUTE}:late"}


def test_sampling_an_inactive_parameter_independently_is_reported():
    def careless(trial):
        trial.suggest_categorical("activation", ["relu", "tanh"])
        trial.suggest_float("slope", 0.0, 0.5)
        return trial.suggest_float("lr", 1e-4, 1.0, log=True) + trial.suggest_int(
            "depth", 1, 3
        )

    with pytest.warns(UserWarning, match="'slope' independently: it is inactive"):
        study = run_study(BonasSampler(SPACE, search=random, seed=0), careless, 8)
    for trial in study.trials:
        assert (f"{FALLBACK_ATTRIBUTE}:slope" in trial.user_attrs) == (
            trial.params["activation"] == "tanh"
        )


@pytest.mark.slow
def test_steps_are_kept():
    def stepped(trial):
        return trial.suggest_float("a", 0.5, 2.0, step=0.25) + trial.suggest_int(
            "b", 2, 11, step=3
        )

    study = run_study(BonasSampler(seed=0), stepped, 12)
    assert {trial.params["a"] for trial in study.trials} <= {
        0.5 + 0.25 * i for i in range(7)
    }
    assert {trial.params["b"] for trial in study.trials} <= {2, 5, 8, 11}
    assert (
        len({tuple(trial.params.values()) for trial in study.trials}) == 12
    )  # tried points are known for tried
    assert study.best_value <= 3.25


def test_the_search_includes_failed_and_enqueued_trials():
    def moody(trial):
        value = bowl(trial)
        if trial.number == 3:
            raise ArithmeticError("overflow")
        return value

    sampler = BonasSampler(seed=1)
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial({"a": 1.0, "b": -2.0})
    study.optimize(moody, n_trials=2)
    study.enqueue_trial({"a": 3.0, "b": 3.0})
    study.optimize(moody, n_trials=5, catch=(ArithmeticError,))
    record = sampler._run.state.observations
    assert int(record.failed.sum()) == 1
    assert (
        int(record.data.mask.sum()) == 5
    )  # all but the failed trial and the last, which is pending
    assert int(record.pending.sum()) == 1
    assert study.best_params == {"a": 1.0, "b": -2.0}


@pytest.mark.typed
def test_running_trials_are_pending():
    sampler = BonasSampler(seed=0)
    study = run_study(sampler, bowl, 3)
    open_trials = [study.ask() for _ in range(3)]
    for trial in open_trials:
        bowl(trial)
    assert int(sampler._run.state.observations.pending.sum()) == 3
    again = BonasSampler(seed=0)  # as another process would
    study.sampler = again
    bowl(study.ask())
    assert int(again._run.state.observations.pending.sum()) == 4
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 7


def test_the_number_of_trials_is_not_limited():
    sampler = BonasSampler(SPACE, search=random, seed=0)
    study = run_study(sampler, conditional, 70)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 70
    assert int(sampler._run.state.observations.data.mask.sum()) == 69


def test_several_objectives_are_refused():
    study = optuna.create_study(
        directions=["minimize", "minimize"], sampler=BonasSampler()
    )
    with pytest.raises(ValueError, match="BonasSampler cannot be used"):
        bowl(study.ask())


def test_without_optuna_the_error_names_the_package_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "bonas.interchange.optuna_sampler")
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"pip install 'bonas\[optuna\]'"):
        bonas.interchange.BonasSampler  # noqa: B018
