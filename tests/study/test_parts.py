"""Parts of networks: which they are, and the networks that they make up."""

import jax
import numpy as np
import pytest

import bonas
from bonas.study.importance import importance
from bonas.study.parts import in_parts, networks, part_numbers
from bonas.study.store import Record

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))
CURVES = {"job": {"method": "curves"}}


def record(number, name, *reports, state="told"):
    value = reports[-1][1] if reports else None
    return Record(number, state, {"name": name}, (0.0,), value=value, reports=reports)


RECORDS = [
    record(0, "x", (1, 3.0), (2, 2.5)),
    record(1, "y", (1, 4.0)),
    record(2, "x", (3, 2.0), (4, 1.5)),
    record(3, "x", state="failed"),
    record(4, "x", (5, 1.0)),
]


def test_parts_are_counted_network_by_network_and_failed_ones_are_tried_again():
    assert part_numbers(RECORDS) == {0: 1, 1: 1, 2: 2, 3: 3, 4: 3}


def test_a_network_has_its_last_value_and_one_curve():
    first, second = networks([each for each in RECORDS if each.state == "told"])
    assert (first.number, first.value) == (4, 1.0)
    assert first.reports == ((1, 3.0), (2, 2.5), (3, 2.0), (4, 1.5), (5, 1.0))
    assert second == RECORDS[1]


@pytest.mark.parametrize("about", [{}, {"extra": None}, {"extra": {"job": 3}}, {"extra": {"job": {"method": "bayes"}}}])
def test_trials_of_other_studies_are_whole(about):
    assert not in_parts(about)
    assert in_parts({"extra": CURVES})


@pytest.mark.slow
def test_importance_is_that_of_the_last_parts_alone(tmp_path):
    """First values depend on the one parameter, and last ones on the other."""
    points = np.random.default_rng(0).uniform(size=(12, 2)).tolist()
    with bonas.Study(tmp_path / "s.db", SPACE, extra=CURVES) as study:
        for column in (0, 1):
            for a, b in points:
                study.enqueue({"a": a, "b": b})
                study.tell(study.ask(), 5.0 * (1 - column) + (a, b)[column])
        last = study.trials[12:]
        values = np.array([each.value for each in last])
        assert study.importance() == importance(SPACE, np.array([each.u for each in last]), values, jax.random.key(0))
