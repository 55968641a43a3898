"""A job: stored in its study, resumed, and protected from other jobs."""

from dataclasses import replace

import numpy as np
import pytest

import bonas
from bonas.cli.arguments import METHODS
from bonas.study import StudyError
from bonas.tabular.job import (
    N_STAGES,
    Job,
    check_data,
    job_trainer,
    make_search,
    open_study,
    read_job,
)
from bonas.tabular.network_families import make_family
from bonas.tabular.splits import Size
from bonas.tabular.table import digest

SPACE = bonas.Space(a=bonas.Int(1, 9))


def complete_trial(study, a, reports):
    """Complete a trial at a with these reports; its value is the lowest of them."""
    study.enqueue({"a": a})
    trial = study.ask()
    for step, value in reports:
        trial.report(step, value)
    study.tell(trial, min(value for _, value in reports))


def table(path, n=40):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    y = x @ [1.0, -1.0] + 0.1 * rng.normal(size=n)
    path.write_text(
        "a,b,y\n" + "".join(f"{a},{b},{c}\n" for (a, b), c in zip(x, y, strict=True))
    )
    return Job(str(path), digest(str(path)), target="y", method="random")


def test_a_study_without_a_job_is_refused(tmp_path):
    with (
        bonas.Study(tmp_path / "s.db", SPACE) as study,
        pytest.raises(StudyError, match="was not made by bonas search"),
    ):
        read_job(study)


def test_settings_of_another_version_are_refused(tmp_path):
    extra = {"job": {"data": "t.csv", "categorical": []}}
    with (
        bonas.Study(tmp_path / "s.db", SPACE, extra=extra) as study,
        pytest.raises(
            StudyError, match=r"cannot read the settings .* KeyError: 'drop'"
        ),
    ):
        read_job(study)


def test_missing_or_changed_data_are_detected(tmp_path):
    job = table(tmp_path / "t.csv")
    assert check_data(job) == job
    with (tmp_path / "t.csv").open("a") as file:
        file.write("1,2,3\n")
    with pytest.raises(StudyError, match="has changed since the study started"):
        check_data(job)
    (tmp_path / "t.csv").unlink()
    with pytest.raises(
        StudyError, match="does not exist; if it was moved, pass --data FILE"
    ):
        check_data(job)


def test_stages_end_at_checkpoints_and_the_last_at_the_last():
    job = Job("iris", digest("iris"), method="curves")
    made = job_trainer(job).family
    assert make_search(job, made).space == made.space
    assert len(made.checkpoints) % N_STAGES == 0


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_the_command_has_a_search(method):
    made = make_family("mlp", Size(300, 10, 1, "regression"))
    search = make_search(Job("iris", "", method=method), made)
    # A study without a search uses Bayesian optimization.
    assert (search is None) == (method == "bayes")


def test_an_unknown_method_is_refused():
    made = make_family("mlp", Size(300, 10, 1, "regression"))
    with pytest.raises(ValueError, match=r"method must be .*; got 'grid'"):
        make_search(Job("iris", "", method="grid"), made)


def test_another_job_cannot_use_the_study(tmp_path):
    job = table(tmp_path / "t.csv")
    open_study(tmp_path / "s.db", job).close()
    for other, words in (
        (
            {"impute": True},
            "was started without --impute; choose another file .* or continue it with: bonas resume",  # noqa: E501
        ),
        ({"space": "ensemble"}, "was started with --space mlp; choose"),
        (
            {"seed": 1, "drop": ("a",)},
            "was started with --seed 0 and without --drop; choose",
        ),
        ({"sha256": "another"}, "was started with different data; choose"),
        ({"data": "other.csv"}, "was started on .*t.csv; choose"),
    ):
        with pytest.raises(StudyError, match=words):
            open_study(tmp_path / "s.db", replace(job, **other))
    with open_study(tmp_path / "s.db", job) as study:
        assert read_job(study) == job
        assert study.space == make_family("mlp", job_trainer(job).table.size).space


def test_evolution_keeps_its_population_when_resumed(tmp_path):
    """A study from before there was this setting has 20."""
    job = replace(table(tmp_path / "t.csv"), method="evolution", population=2)
    points = []
    for later in (2, 20):
        path = tmp_path / f"{later}.db"
        open_study(path, job).close()
        with open_study(path, replace(job, population=later)) as study:
            for i in range(4):
                study.tell(study.ask(), float(i))
            points.append([record.u for record in study.trials])
            assert [record.info["random"] for record in study.trials] == [
                True,
                True,
                False,
                False,
            ]
            assert read_job(study).population == 2
    assert points[0] == points[1]
    assert Job("iris", "").population == 20
