"""Studies exported to Optuna storages: Optuna loads what was stored."""

import sys
from datetime import datetime

import pytest

import bonas
from bonas.study import Pruned

optuna = pytest.importorskip("optuna")
from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

optuna.logging.set_verbosity(optuna.logging.WARNING)

SPACE = bonas.Space(
    depth=bonas.Int(1, 4),
    lr=bonas.Float(1e-4, 1.0, log=True),
    kind=bonas.Choice("relu", None, (3, 5)),
    slope=bonas.Float(0.0, 0.5, when={"kind": "relu"}),
)
CONFIGS = [
    {"depth": 2, "lr": 0.01, "kind": "relu", "slope": 0.25},
    {"depth": 1, "lr": 0.1, "kind": None},
    {"depth": 4, "lr": 1.0, "kind": (3, 5)},
    {"depth": 3, "lr": 1e-4, "kind": None},
    {"depth": 3, "lr": 1e-3, "kind": None},
]


@pytest.fixture
def study(tmp_path):
    """Complete with reports, complete with a cost, failed, running and waiting."""
    with bonas.Study(tmp_path / "some.db", SPACE, direction="maximize") as made:
        for config in CONFIGS:
            made.enqueue(config)
        first = made.ask()
        first.report(1, 0.5)
        first.report(3, 0.75)
        made.tell(first, 0.875)
        made.tell(made.ask(), 0.5, cost=12.0)
        made.fail(made.ask(), "out of memory", traceback="line 1")
        made.ask()
        yield made


@pytest.fixture
def loaded(study, tmp_path):
    """The study as another process would load it."""
    url = f"sqlite:///{tmp_path / 'optuna.db'}"
    bonas.interchange.to_optuna(study, url, name="ours")
    return optuna.load_study(study_name="ours", storage=url)


@pytest.mark.slow
def test_trials_have_their_numbers_states_and_values(loaded):
    assert [trial.number for trial in loaded.trials] == [0, 1, 2, 3, 4]
    assert [trial.state.name for trial in loaded.trials] == [
        "COMPLETE",
        "COMPLETE",
        "FAIL",
        "RUNNING",
        "WAITING",
    ]
    assert [trial.value for trial in loaded.trials] == [0.875, 0.5, None, None, None]
    assert loaded.direction.name == "MAXIMIZE"
    assert loaded.best_trial.number == 0


def test_a_pruned_trial_is_pruned_in_optuna(tmp_path):
    def objective(config, trial):
        trial.report(3, 0.5)
        raise Pruned

    with bonas.Study(tmp_path / "runs.db", SPACE) as study:
        study.enqueue(CONFIGS[1])
        study.optimize(objective, trials=1, progress=False)
        exported = bonas.interchange.to_optuna(study, optuna.storages.InMemoryStorage())
    (trial,) = exported.trials
    assert trial.state == optuna.trial.TrialState.PRUNED
    assert trial.value == 0.5
    assert trial.intermediate_values == {3: 0.5}


def test_parameters_are_kept_and_inactive_ones_absent(loaded):
    assert loaded.trials[0].params == pytest.approx(CONFIGS[0])
    assert set(loaded.trials[1].params) == {"depth", "lr", "kind"}
    assert loaded.trials[1].params["kind"] is None
    assert loaded.trials[2].params["kind"] == "(3, 5)"  # Optuna cannot store a tuple


def test_distributions_are_those_of_the_space(loaded):
    assert loaded.trials[0].distributions == {
        "depth": IntDistribution(1, 4),
        "lr": FloatDistribution(1e-4, 1.0, log=True),
        "kind": CategoricalDistribution(["relu", None, "(3, 5)"]),
        "slope": FloatDistribution(0.0, 0.5),
    }


def test_intermediate_values_are_kept(loaded):
    assert loaded.trials[0].intermediate_values == {1: 0.5, 3: 0.75}


def test_errors_and_costs_are_user_attributes(loaded):
    assert loaded.trials[2].user_attrs["error"] == "out of memory"
    assert loaded.trials[2].user_attrs["traceback"] == "line 1"
    assert loaded.trials[1].user_attrs["cost"] == 12.0


def test_times_are_kept(study, loaded):
    record = study.trials[0]
    assert loaded.trials[0].datetime_start == datetime.fromtimestamp(record.asked_time)
    assert loaded.trials[0].datetime_complete == datetime.fromtimestamp(record.end_time)


def test_optuna_evaluates_a_waiting_trial_next(loaded):
    trial = loaded.ask()
    assert trial.number == 4
    assert trial.suggest_int("depth", 1, 4) == CONFIGS[4]["depth"]


def test_the_storage_is_beside_the_study_by_default(study, tmp_path):
    made = bonas.interchange.to_optuna(study)
    assert made.study_name == "some"
    assert (tmp_path / "some.optuna.db").exists()
    assert (
        len(
            optuna.load_study(
                study_name="some", storage=f"sqlite:///{tmp_path / 'some.optuna.db'}"
            ).trials
        )
        == 5
    )


def test_the_path_may_be_a_string(study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("beside.db", str(tmp_path / "whole.db")):
        bonas.interchange.to_optuna(study, path)
        assert (
            len(
                optuna.load_study(
                    study_name="some", storage=f"sqlite:///{tmp_path / path}"
                ).trials
            )
            == 5
        )


def test_the_file_of_a_bonas_study_is_refused(study, tmp_path, monkeypatch):
    """Neither its own file, by whatever name, nor another's."""
    monkeypatch.chdir(tmp_path)
    with bonas.Study(tmp_path / "other.db", SPACE):
        pass
    (tmp_path / "link.db").symlink_to(study.path)
    for storage in (
        study.path,
        "some.db",
        f"sqlite:///{study.path}",
        "sqlite:///some.db?timeout=3",
        "link.db",
        "other.db",
    ):
        with pytest.raises(ValueError, match="is a bonas study, not an Optuna storage"):
            bonas.interchange.to_optuna(study, storage)
    assert len(study.trials) == 5


def test_an_existing_optuna_study_is_kept_unless_overwritten(study, tmp_path):
    url = f"sqlite:///{tmp_path / 'optuna.db'}"
    bonas.interchange.to_optuna(study, tmp_path / "optuna.db")
    with pytest.raises(
        ValueError,
        match="already has a study 'some'; choose another name, or pass overwrite=True",
    ):
        bonas.interchange.to_optuna(study, url)
    study.tell(3, 0.25)
    assert (
        len(
            optuna.load_study(study_name="some", storage=url).get_trials(
                states=[optuna.trial.TrialState.COMPLETE]
            )
        )
        == 2
    )
    bonas.interchange.to_optuna(study, url, overwrite=True)
    assert (
        len(
            optuna.load_study(study_name="some", storage=url).get_trials(
                states=[optuna.trial.TrialState.COMPLETE]
            )
        )
        == 3
    )


def test_any_optuna_storage_is_accepted(study):
    made = bonas.interchange.to_optuna(study, optuna.storages.InMemoryStorage())
    assert len(made.trials) == 5


def test_without_optuna_the_error_names_the_package_to_install(study, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"pip install 'bonas\[optuna\]'"):
        bonas.interchange.to_optuna(study)
