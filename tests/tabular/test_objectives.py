"""Objectives of a search on a table, and trials that are stages of networks."""

import numpy as np
import pytest

import bonas
from bonas.study import TrialRecord
from bonas.tabular.job import (
    Job,
    open_study,
)
from bonas.tabular.objectives import (
    StageObjective,
    best_configurations,
    count_idle_trials,
    describe_trial,
    enqueue_first,
    is_partial,
    merge_parts,
    optimize_stages,
    part_numbers,
)
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


def test_the_best_configurations_come_with_the_step_of_their_best_value(tmp_path):
    with bonas.Study(tmp_path / "s.db", SPACE) as study:
        complete_trial(study, 3, [(10, 5.0), (20, 4.0), (30, 4.5)])
        complete_trial(study, 7, [(10, 3.0), (20, 6.0)])
        study.enqueue({"a": 1})
        study.fail(study.ask(), "no")
        found = best_configurations(study)
    assert [(chosen.config, chosen.until) for chosen in found] == [
        ({"a": 7}, 10),
        ({"a": 3}, 20),
    ]


def test_a_configuration_trained_in_stages_is_one(tmp_path):
    with bonas.Study(tmp_path / "s.db", SPACE) as study:
        complete_trial(study, 3, [(10, 5.0)])
        complete_trial(study, 7, [(10, 4.0)])
        complete_trial(study, 3, [(20, 2.0)])
        found = best_configurations(study, 1)
    assert [(chosen.config, chosen.until) for chosen in found] == [({"a": 3}, 20)]


def test_a_description_tells_which_part_of_a_network_a_trial_trains(tmp_path):
    space = bonas.Space(depth=bonas.Int(1, 2), width=bonas.Int(1, 9))
    job = Job("iris", "", method="curves")
    with bonas.Study(tmp_path / "s.db", space) as study:
        for depth, reports in (
            (1, [(10, 5.0)]),
            (2, [(10, 6.0)]),
            (1, [(20, 4.0)]),
            (1, []),
            (1, []),
        ):
            study.enqueue({"depth": depth, "width": 4})
            trial = study.ask()
            for step, value in reports:
                trial.report(step, value)
            if len(study.trials) < 5:
                study.tell(trial, 4.0)
        descriptions = [describe_trial(job, study, record) for record in study.trials]
        assert (
            describe_trial(Job("iris", ""), study, study.trials[0])
            == "1 hidden layer of 4 relu units"
        )
    assert descriptions == [
        "part 1 of 5: 1 hidden layer of 4 relu units",
        "part 1 of 5: 2 hidden layers of 4 and 4 relu units",
        "part 2 of 5: 1 hidden layer of 4 relu units",
        "part 3 of 5 skipped, no improvement: 1 hidden layer of 4 relu units",
        "part 4 of 5: 1 hidden layer of 4 relu units",  # still running
    ]


def test_the_first_trial_of_a_large_table_is_the_usual_network(tmp_path):
    job = table(tmp_path / "t.csv", 2600)
    for _ in range(2):
        with open_study(tmp_path / "s.db", job) as study:
            enqueue_first(study, job)
            assert [
                (trial.number, trial.config["width_1"], trial.config["width_2"])
                for trial in study.trials
            ] == [(0, 64, 64)]


class Once:
    """Train every network for one stage only."""

    def __init__(self):
        self.trained = set()

    def __call__(self, config, trial):
        if config["a"] not in self.trained:
            trial.report(1, float(config["a"]))
        self.trained.add(config["a"])
        return float(config["a"])


def test_idle_trials_are_not_counted(tmp_path):
    """The second trial at 3 is idle, and so are repeated points of the random search."""
    counts = []
    with bonas.Study(
        tmp_path / "s.db", SPACE, search=bonas.search.random(SPACE)
    ) as study:
        for a in (3, 3, 5):
            study.enqueue({"a": a})
        optimize_stages(
            study,
            Once(),
            6,
            callback=lambda event: counts.append((event.state, event.done)),
            progress=False,
        )
        trials = study.trials
        assert (
            sum(bool(trial.reports) for trial in trials)
            == 6
            == len(trials) - count_idle_trials(study)
        )
        assert count_idle_trials(study) >= 1
    assert [done for state, done in counts if state == "complete"][:3] == [1, 1, 2]


@pytest.mark.slow
def test_another_process_continues_a_network_where_it_was(tmp_path):
    """A network that is not in memory is trained again, with the same values."""
    job = table(tmp_path / "t.csv")
    config = {
        "depth": 1,
        "width_1": 4,
        "activation": "relu",
        "learning_rate": 0.001,
        "weight_decay": 0.01,
        "dropout": 0.1,
    }
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


# Trials that are stages of networks
CURVES = {"job": {"method": "curves"}}


def make_trial(number, name, *reports, state="complete"):
    value = reports[-1][1] if reports else None
    return TrialRecord(
        number, state, {"name": name}, (0.0,), value=value, reports=reports
    )


TRIALS = [
    make_trial(0, "x", (1, 3.0), (2, 2.5)),
    make_trial(1, "y", (1, 4.0)),
    make_trial(2, "x", (3, 2.0), (4, 1.5)),
    make_trial(3, "x", state="failed"),
    make_trial(4, "x", (5, 1.0)),
]


def test_parts_are_counted_per_network_and_a_failed_part_is_repeated():
    assert part_numbers(TRIALS) == {0: 1, 1: 1, 2: 2, 3: 3, 4: 3}


def test_a_merged_network_has_its_last_value_and_one_curve():
    first, second = merge_parts([each for each in TRIALS if each.value is not None])
    assert (first.number, first.value) == (4, 1.0)
    assert first.reports == ((1, 3.0), (2, 2.5), (3, 2.0), (4, 1.5), (5, 1.0))
    assert second == TRIALS[1]


@pytest.mark.parametrize(
    "about",
    [
        {},
        {"extra": None},
        {"extra": {"job": 3}},
        {"extra": {"job": {"method": "bayes"}}},
    ],
)
def test_trials_of_other_methods_are_not_partial(about):
    assert not is_partial(about)
    assert is_partial({"extra": CURVES})
