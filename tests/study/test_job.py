"""A job: kept in its study, gone on with, and what is taken from its trials."""

from dataclasses import replace

import numpy as np
import pytest

import bonas
from bonas.study.file import StudyError
from bonas.study.job import (
    STAGES,
    Job,
    StageObjective,
    best_configurations,
    checked,
    enqueue_first,
    idle,
    job_of,
    network_of,
    open_study,
    optimise_stages,
    search_of,
    trainer,
)
from bonas.tabular.spaces import family
from bonas.tabular.table import digest

SPACE = bonas.Space(a=bonas.Int(1, 9))


def told(study, a, reports):
    """A trial at a, with those intermediate values; its value is the least of them."""
    study.enqueue({"a": a})
    trial = study.ask()
    for step, value in reports:
        trial.report(step, value)
    study.tell(trial, min(value for _, value in reports))


def table(path, n=40):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    y = x @ [1.0, -1.0] + 0.1 * rng.normal(size=n)
    path.write_text("a,b,y\n" + "".join(f"{a},{b},{c}\n" for (a, b), c in zip(x, y, strict=True)))
    return Job(str(path), digest(str(path)), target="y", method="random")


def test_the_best_configurations_come_with_the_step_of_their_best_value(tmp_path):
    with bonas.Study(tmp_path / "s.db", SPACE) as study:
        told(study, 3, [(10, 5.0), (20, 4.0), (30, 4.5)])
        told(study, 7, [(10, 3.0), (20, 6.0)])
        study.enqueue({"a": 1})
        study.fail(study.ask(), "no")
        found = best_configurations(study)
    assert [(chosen.config, chosen.until) for chosen in found] == [({"a": 7}, 10), ({"a": 3}, 20)]


def test_a_configuration_trained_in_stages_is_one(tmp_path):
    with bonas.Study(tmp_path / "s.db", SPACE) as study:
        told(study, 3, [(10, 5.0)])
        told(study, 7, [(10, 4.0)])
        told(study, 3, [(20, 2.0)])
        found = best_configurations(study, 1)
    assert [(chosen.config, chosen.until) for chosen in found] == [({"a": 3}, 20)]


def test_people_are_told_which_part_of_a_training_a_trial_is(tmp_path):
    space = bonas.Space(depth=bonas.Int(1, 2), width=bonas.Int(1, 9))
    job = Job("iris", "", method="curves")
    with bonas.Study(tmp_path / "s.db", space) as study:
        for depth, reports in ((1, [(10, 5.0)]), (2, [(10, 6.0)]), (1, [(20, 4.0)]), (1, []), (1, [])):
            study.enqueue({"depth": depth, "width": 4})
            trial = study.ask()
            for step, value in reports:
                trial.report(step, value)
            if len(study.trials) < 5:
                study.tell(trial, 4.0)
        said = [network_of(job, study, record) for record in study.trials]
        assert network_of(Job("iris", ""), study, study.trials[0]) == "1 hidden layer of 4 relu units"
    assert said == [
        "part 1 of 5: 1 hidden layer of 4 relu units",
        "part 1 of 5: 2 hidden layers of 4 and 4 relu units",
        "part 2 of 5: 1 hidden layer of 4 relu units",
        "part 3 of 5 not trained, since it no longer gets better: 1 hidden layer of 4 relu units",
        "part 4 of 5: 1 hidden layer of 4 relu units",  # it is only asked yet
    ]


def test_a_study_that_is_no_job_s_is_refused(tmp_path):
    with bonas.Study(tmp_path / "s.db", SPACE) as study, pytest.raises(StudyError, match="was not made by bonas search"):
        job_of(study)


def test_data_that_are_gone_or_changed_are_noticed(tmp_path):
    job = table(tmp_path / "t.csv")
    assert checked(job) == job
    with (tmp_path / "t.csv").open("a") as file:
        file.write("1,2,3\n")
    with pytest.raises(StudyError, match="has changed since the study began"):
        checked(job)
    (tmp_path / "t.csv").unlink()
    with pytest.raises(StudyError, match="which is not there; --data FILE"):
        checked(job)


def test_stages_end_at_checkpoints_and_the_last_at_the_last():
    job = Job("iris", digest("iris"), method="curves")
    made = trainer(job).family
    assert search_of(job, made).space == made.space
    assert len(made.checkpoints) % STAGES == 0


def test_another_job_is_kept_out_of_a_study(tmp_path):
    job = table(tmp_path / "t.csv")
    open_study(tmp_path / "s.db", job).close()
    for other, words in (
        ({"impute": True}, "was begun without --impute: give --study another FILE, or go on with bonas resume"),
        ({"space": "ensemble"}, "was begun with --space mlp: give"),
        ({"seed": 1, "drop": ("a",)}, "was begun with --seed 0 and without --drop: give"),
        ({"sha256": "another"}, "was begun with other contents of the data: give"),
        ({"data": "other.csv"}, "was begun on .*t.csv: give"),
    ):
        with pytest.raises(StudyError, match=words):
            open_study(tmp_path / "s.db", replace(job, **other))
    with open_study(tmp_path / "s.db", job) as study:
        assert job_of(study) == job
        assert study.space == family("mlp", trainer(job).prepared.size).space


def test_evolution_goes_on_with_the_population_it_was_begun_with(tmp_path):
    """However many trials are asked for later; one that was begun before there was such a setting has 20."""
    job = replace(table(tmp_path / "t.csv"), method="evolution", population=2)
    points = []
    for later in (2, 20):
        path = tmp_path / f"{later}.db"
        open_study(path, job).close()
        with open_study(path, replace(job, population=later)) as study:
            for i in range(4):
                study.tell(study.ask(), float(i))
            points.append([record.u for record in study.trials])
            assert [record.info["random"] for record in study.trials] == [True, True, False, False]
            assert job_of(study).population == 2
    assert points[0] == points[1]
    assert Job("iris", "").population == 20


def test_on_many_rows_the_first_trial_is_a_usual_network(tmp_path):
    job = table(tmp_path / "t.csv", 2600)
    for _ in range(2):
        with open_study(tmp_path / "s.db", job) as study:
            enqueue_first(study, job)
            assert [(trial.number, trial.config["width_1"], trial.config["width_2"]) for trial in study.trials] == [(0, 64, 64)]


class Once:
    """Trains every network for one stage, and then no longer."""

    def __init__(self):
        self.seen = set()

    def __call__(self, config, trial):
        if config["a"] not in self.seen:
            trial.report(1, float(config["a"]))
        self.seen.add(config["a"])
        return float(config["a"])


def test_trials_that_train_nothing_are_not_counted(tmp_path):
    """The second trial at 3 is one, and so is whatever random search asks for again."""
    counts = []
    with bonas.Study(tmp_path / "s.db", SPACE, search=bonas.search.random(SPACE)) as study:
        for a in (3, 3, 5):
            study.enqueue({"a": a})
        optimise_stages(study, Once(), 6, watch=lambda event: counts.append((event.kind, event.done)), progress=False)
        told = study.trials
        assert sum(bool(trial.reports) for trial in told) == 6 == len(told) - idle(study)
        assert idle(study) >= 1
    assert [done for kind, done in counts if kind == "told"][:3] == [1, 1, 2]


@pytest.mark.slow
def test_a_network_in_stages_goes_on_in_another_process_where_it_was(tmp_path):
    """What one process keeps in memory another makes anew: the same values."""
    job = table(tmp_path / "t.csv")
    config = {"depth": 1, "width_1": 4, "activation": "relu", "learning_rate": 0.001, "weight_decay": 0.01, "dropout": 0.1}
    values = []
    for forgetful in (False, True):
        with open_study(tmp_path / f"{forgetful}.db", job) as study:
            objective = StageObjective(job, study)
            for _ in range(3):
                objective = StageObjective(job, study) if forgetful else objective
                study.enqueue(config)
                trial = study.ask()
                study.tell(trial, objective(trial.config, trial))
            values.append([(each.value, each.reports) for each in study.trials])
    assert values[0] == values[1]
    assert len({value for value, _ in values[0]}) > 1
