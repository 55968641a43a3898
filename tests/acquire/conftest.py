"""A small search in the middle of its work, as acquisitions see it."""

import jax
import jax.numpy as jnp
import pytest

import bonas
from bonas import surrogates
from bonas.acquire.batch import believer
from bonas.acquire.maximise import refined
from bonas.gp import matern52
from bonas.search.bayes import look
from bonas.search.record import asked, blank, told

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))
MODEL = surrogates.gp(matern52())


@pytest.fixture(scope="session")
def make_outlook():
    """make_outlook(pending=…, costs=…, failed=…): six evaluations of a slope with a hollow, under the middle of the prior."""
    x = SPACE.sample(jax.random.key(1), 6)
    y = x[:, 0] - jnp.exp(-8.0 * ((x - 0.6) ** 2).sum(axis=1))

    def make(pending=None, costs=None, failed=(), space=SPACE):
        record = blank(10, 2)
        for i in range(6):
            fine, cost = i not in failed, 1.0 if costs is None else costs[i]
            record = told(record, bonas.Trial(x[i], y[i], jnp.asarray(0), jnp.asarray(cost), jnp.asarray(fine)))
        for point in [] if pending is None else pending:
            record = asked(record, point)
        data = record.data._replace(y=record.data.y - y.mean())
        known = MODEL.update(data, MODEL.init(10, 2, 1))
        return look(MODEL, known, data, record, refined(space), believer, jax.random.key(2))

    return make


@pytest.fixture(scope="session")
def points():
    return SPACE.sample(jax.random.key(3), 7)
