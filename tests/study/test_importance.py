"""Importance of parameters, which is known for sums of functions of one parameter each."""

import jax
import numpy as np
import pytest

import bonas
from bonas.search import random
from bonas.study.importance import importance

SPACE = bonas.Space(
    a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0), c=bonas.Float(0.0, 1.0)
)
KEY = jax.random.key(0)


def points(space, n):
    return np.asarray(space.sample(jax.random.key(1), n))


@pytest.mark.slow
def test_shares_of_a_sum_are_proportional_to_its_variances():
    """f = 3a + b: the variances are 9/12 and 1/12, so the shares 0.9, 0.1 and 0."""
    u = points(SPACE, 60)
    shares = importance(SPACE, u, 3.0 * u[:, 0] + u[:, 1], KEY)
    assert list(shares) == ["a", "b", "c"]
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["a"] == pytest.approx(0.9, abs=0.05)
    assert shares["b"] == pytest.approx(0.1, abs=0.05)


@pytest.mark.slow
def test_options_and_conditions_count(tmp_path):
    space = bonas.Space(
        kind=bonas.Choice("x", "y", "z"),
        depth=bonas.Int(1, 3),
        width=bonas.Float(0.0, 1.0, when={"depth": (">=", 2)}),
    )
    study = bonas.Study(tmp_path / "runs.db", space, search=random(space))
    study.optimize(
        lambda config: float(config["kind"] == "y") + 0.3 * config.get("width", 0.0),
        trials=60,
        progress=False,
    )
    shares = study.importance()
    assert max(shares, key=shares.get) == "kind"
    assert shares["kind"] > 0.6
    assert sum(shares.values()) == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_the_size_of_the_values_does_not_matter():
    u = points(SPACE, 20)
    values = np.tanh(3.0 * u[:, 0] - u[:, 1])
    expected = importance(SPACE, u, values, KEY)
    assert importance(SPACE, u, 2.0**1023 * values, KEY) == pytest.approx(expected)


@pytest.mark.typed
def test_too_few_values_give_no_importance():
    assert importance(SPACE, points(SPACE, 3), np.arange(3.0), KEY) == {}


@pytest.mark.slow
def test_all_parameters_of_a_constant_are_equally_important():
    shares = importance(SPACE, points(SPACE, 10), np.full(10, 2.0), KEY)
    assert shares == pytest.approx({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})


@pytest.mark.slow
def test_importance_can_be_computed_from_some_trials_only(tmp_path):
    """The first twelve values depend on one parameter, the others on another one."""
    space = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))
    configs = [space.decode(u) for u in points(space, 12)]
    with bonas.Study(tmp_path / "runs.db", space, search=random(space)) as study:
        for name in ("a", "b"):
            for config in configs:
                study.enqueue(config)
                study.tell(study.ask(), config[name])
        last = study.trials[12:]
        u = np.array([record.u for record in last])
        values = np.array([record.value for record in last])
        assert study.importance(last) == importance(space, u, values, jax.random.key(0))
