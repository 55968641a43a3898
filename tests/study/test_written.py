"""Spaces and configurations in a file: they come back as they were, or the study says that it can only be read."""

import json

import jax
import numpy as np
import pytest

import bonas
from bonas.search import random
from bonas.spaces.conditions import Terms
from bonas.study import StudyError
from bonas.study.written import Configs, is_whole, read_space, write_config, write_space

WHOLE = bonas.Space(
    depth=bonas.Int(1, 5),
    width=bonas.Int(1, 256, log=True, when={"depth": (">=", 2)}),
    rate=bonas.Float(1e-5, 0.1, log=True),
    kind=bonas.Choice("relu", "tanh", None, True, 2, (1, ("a", 0.5))),
    slope=bonas.Float(0.0, 0.5, when={"kind": "relu"}),
    pair=bonas.Float(0.0, 1.0, when={"kind": (1, ("a", 0.5)), "depth": ("!=", 3)}),
    middle=bonas.Float(0.0, 1.0, when=Terms((("depth", ">", 1.0), ("depth", "<", 4.0)))),
)


class Odd:
    """An option that JSON cannot say."""


HALF = bonas.Space(
    depth=bonas.Int(1, 5),
    width=bonas.Int(1, 256, when=lambda p: p["depth"] >= 2),
    kind=bonas.Choice(np.tanh, Odd, "relu"),
)


def through_json(space):
    return read_space(json.loads(json.dumps(write_space(space))))


def test_a_space_comes_back():
    assert is_whole(write_space(WHOLE))
    assert through_json(WHOLE) == WHOLE


def test_numbers_of_numpy_are_numbers():
    space = bonas.Space(
        n=bonas.Int(np.int64(1), np.int64(4)), x=bonas.Float(np.float64(0.5), 1), k=bonas.Choice(np.int64(3), 4)
    )
    assert through_json(space).parameters["n"].high == 4
    assert is_whole(write_space(space))


@pytest.mark.parametrize("seed", range(5))
def test_configurations_come_back(seed):
    u = WHOLE.sample(jax.random.key(seed), 20)
    for row in u:
        config = WHOLE.decode(row)
        assert Configs(WHOLE).read(write_config(config)) == config


def test_what_cannot_be_kept_is_looked_up_where_the_space_is_known():
    assert not is_whole(write_space(HALF))
    config = {"depth": 1, "kind": Odd}
    assert Configs(HALF).read(write_config(config)) == config
    assert Configs(through_json(HALF)).read(write_config(config)) == {"depth": 1, "kind": "Odd"}


@pytest.mark.slow
def test_without_its_space_such_a_study_can_only_be_read(tmp_path):
    path = tmp_path / "runs.db"
    with bonas.Study(path, HALF, search=random(HALF)) as study:
        for _ in range(4):
            study.tell(study.ask(), 1.0)
        configs = [record.config for record in study.trials]
    with bonas.Study(path) as study:
        assert [record.config.keys() for record in study.trials] == [config.keys() for config in configs]
        for change in (study.ask, lambda: study.enqueue({"depth": 1, "kind": "relu"}), lambda: study.fail(0, "no")):
            with pytest.raises(StudyError, match="give the space again"):
                change()
    with bonas.Study(path, HALF, search=random(HALF)) as study:
        assert [record.config for record in study.trials] == configs
        study.tell(study.ask(), 2.0)


def test_another_function_as_the_condition_is_noticed_by_the_trials(tmp_path):
    path = tmp_path / "runs.db"
    with bonas.Study(path, HALF, search=random(HALF)) as study:
        for _ in range(8):
            study.tell(study.ask(), 1.0)
    other = bonas.Space(**HALF.parameters | {"width": bonas.Int(1, 256, when=lambda p: p["depth"] >= 4)})
    with pytest.raises(StudyError, match="other conditions than the study's"):
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
def test_a_study_of_another_space_is_refused_and_left_alone(change, tmp_path):
    parameters = {"rate": bonas.Float(1e-5, 0.1, log=True), "kind": bonas.Choice("relu", "tanh", "elu")}
    parameters["slope"] = bonas.Float(0.0, 0.5, when={"kind": "relu"})
    path, space = tmp_path / "runs.db", bonas.Space(**parameters)
    with bonas.Study(path, space) as study:
        study.enqueue({"rate": 0.01, "kind": "elu"})
    with pytest.raises(StudyError, match="another space, Space"):
        bonas.Study(path, bonas.Space(**parameters | change))
    assert len(bonas.Study(path, space).trials) == 1


def test_a_listed_space_is_refused(tmp_path):
    space = bonas.Space(a=bonas.Int(0, 3))
    with pytest.raises(StudyError, match="Listed"):
        bonas.Study(tmp_path / "runs.db", bonas.Listed(space, space.points()[:2]))
