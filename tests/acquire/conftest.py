"""The context of a small search, as acquisitions see it."""

import jax
import jax.numpy as jnp
import pytest

import bonas
from bonas import surrogates
from bonas.acquire import believer, gradient_ascent
from bonas.gp import matern52
from bonas.search.bayesian import make_context as context_of
from bonas.search.observations import add_observation, add_pending, empty_observations
from bonas.search.output_scales import ScaledFit

SPACE = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Float(0.0, 1.0))
MODEL = surrogates.gp(matern52())


@pytest.fixture(scope="session")
def make_context():
    """Return a function that makes a context after six evaluations of a slope with a dip."""
    x = SPACE.sample(jax.random.key(1), 6)
    y = x[:, 0] - jnp.exp(-8.0 * ((x - 0.6) ** 2).sum(axis=1))

    def make(pending=None, costs=None, failed=(), space=SPACE):
        record = empty_observations(10, 2)
        for i in range(6):
            fine, cost = i not in failed, 1.0 if costs is None else costs[i]
            record = add_observation(
                record,
                bonas.Observation(
                    x[i], y[i], jnp.asarray(0), jnp.asarray(cost), jnp.asarray(fine)
                ),
            )
        for point in [] if pending is None else pending:
            record = add_pending(record, point)
        data = record.data._replace(y=record.data.y - y.mean())
        fit = ScaledFit(
            data, MODEL.update(data, MODEL.init(10, 2, 1)), None, None, None
        )
        key = jax.random.key(2)
        return context_of(
            MODEL,
            fit,
            record,
            maximizer=gradient_ascent(space),
            pending=believer,
            key=key,
        )

    return make


@pytest.fixture(scope="session")
def points():
    return SPACE.sample(jax.random.key(3), 7)
