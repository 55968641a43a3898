"""Spaces and configurations survive the file, or the study is read-only."""

import json

import jax
import numpy as np
import pytest

import bonas
from bonas.search import random
from bonas.spaces import Terms
from bonas.study import StudyError
from bonas.study.serialize import (
    ConfigParser,
    config_to_json,
    is_restorable,
    space_from_json,
    space_to_json,
)

WHOLE = bonas.Space(
    depth=bonas.Int(1, 5),
    width=bonas.Int(1, 256, log=True, when={"depth": (">=", 2)}),
    rate=bonas.Float(1e-5, 0.1, log=True),
    kind=bonas.Choice("relu", "tanh", None, True, 2, (1, ("a", 0.5))),
    slope=bonas.Float(0.0, 0.5, when={"kind": "relu"}),
    pair=bonas.Float(0.0, 1.0, when={"kind": (1, ("a", 0.5)), "depth": ("!=", 3)}),
    middle=bonas.Float(
        0.0, 1.0, when=Terms((("depth", ">", 1.0), ("depth", "<", 4.0)))
    ),
)


class Odd:
    """An option that JSON cannot represent."""


HALF = bonas.Space(
    depth=bonas.Int(1, 5),
    width=bonas.Int(1, 256, when=lambda p: p["depth"] >= 2),
    kind=bonas.Choice(np.tanh, Odd, "relu"),
)


def through_json(space):
    return space_from_json(json.loads(json.dumps(space_to_json(space))))


def test_a_space_survives_json():
    assert is_restorable(space_to_json(WHOLE))
    assert through_json(WHOLE) == WHOLE


def test_numpy_scalars_become_numbers():
    space = bonas.Space(
        n=bonas.Int(np.int64(1), np.int64(4)),
        x=bonas.Float(np.float64(0.5), 1),
        k=bonas.Choice(np.int64(3), 4),
    )
    assert through_json(space).parameters["n"].high == 4
    assert is_restorable(space_to_json(space))


@pytest.mark.parametrize("seed", range(5))
def test_configurations_survive_json(seed):
    u = WHOLE.sample(jax.random.key(seed), 20)
    for row in u:
        config = WHOLE.decode(row)
        assert ConfigParser(WHOLE).parse(json.loads(config_to_json(config))) == config


def test_options_stored_by_name_are_looked_up_in_the_space():
    assert not is_restorable(space_to_json(HALF))
    config = {"depth": 1, "kind": Odd}
    assert ConfigParser(HALF).parse(json.loads(config_to_json(config))) == config
    assert ConfigParser(through_json(HALF)).parse(
        json.loads(config_to_json(config))
    ) == {
        "depth": 1,
        "kind": "Odd",
    }


@pytest.mark.slow
def test_without_its_space_such_a_study_is_read_only(tmp_path):
    path = tmp_path / "runs.db"
    with bonas.Study(path, HALF, search=random(HALF)) as study:
        for _ in range(4):
            study.tell(study.ask(), 1.0)
        configs = [record.config for record in study.trials]
    with bonas.Study(path) as study:
        assert [record.config.keys() for record in study.trials] == [
            config.keys() for config in configs
        ]
        for change in (
            study.ask,
            lambda: study.enqueue({"depth": 1, "kind": "relu"}),
            lambda: study.fail(0, "no"),
        ):
            with pytest.raises(StudyError, match="pass the space"):
                change()
    with bonas.Study(path, HALF, search=random(HALF)) as study:
        assert [record.config for record in study.trials] == configs
        study.tell(study.ask(), 2.0)


def test_another_function_as_the_condition_is_refused(tmp_path):
    path = tmp_path / "runs.db"
    with bonas.Study(path, HALF, search=random(HALF)) as study:
        for _ in range(8):
            study.tell(study.ask(), 1.0)
    other = bonas.Space(
        **HALF.parameters | {"width": bonas.Int(1, 256, when=lambda p: p["depth"] >= 4)}
    )
    with pytest.raises(
        StudyError, match="conditions of the space differ from the stored ones"
    ):
        bonas.Study(path, other)


@pytest.mark.parametrize(
    "change",
    [
        {"rate": bonas.Float(1e-4, 0.1, log=True)},
        {"kind": bonas.Choice("relu", "tanh")},
        {"slope": bonas.Float(0.0, 0.5, when={"kind": "tanh"})},
        {"more": bonas.Float(0.0, 1.0)},
    ],
)
def test_another_space_is_refused(change, tmp_path):
    parameters = {
        "rate": bonas.Float(1e-5, 0.1, log=True),
        "kind": bonas.Choice("relu", "tanh", "elu"),
    }
    parameters["slope"] = bonas.Float(0.0, 0.5, when={"kind": "relu"})
    path, space = tmp_path / "runs.db", bonas.Space(**parameters)
    with bonas.Study(path, space) as study:
        study.enqueue({"rate": 0.01, "kind": "elu"})
    with pytest.raises(StudyError, match="another space, Space"):
        bonas.Study(path, bonas.Space(**parameters | change))
    assert len(bonas.Study(path, space).trials) == 1


def test_a_table_space_is_refused(tmp_path):
    space = bonas.Space(a=bonas.Int(0, 3))
    with pytest.raises(StudyError, match="TableSpace"):
        bonas.Study(tmp_path / "runs.db", bonas.TableSpace(space, space.points()[:2]))
