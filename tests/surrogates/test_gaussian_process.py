"""Properties of Gaussian-process surrogates beyond the contract."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import gp, surrogates

X = jnp.linspace(0.0, 1.0, 6)[:, None]
DATA = bonas.dataset(X, jnp.sin(6.0 * X[:, 0]), 8)


def fitted(**settings):
    model = surrogates.gp(infer="slice", samples=3, **settings)
    return model, model.fit(jax.random.key(0), DATA, model.init(8, 1, 1))[0]


@pytest.mark.slow
def test_without_burn_in_the_chain_begins_where_the_last_fit_ended():
    """Widths adapt only during burn-in; draws equal three sweeps from the start."""
    model, state = fitted(burn=0)
    np.testing.assert_array_equal(state.scale, np.ones_like(state.scale))
    _, burnt = fitted(burn=2)
    assert not np.array_equal(np.asarray(burnt.scale), np.ones_like(burnt.scale))
    again = model.fit(jax.random.key(1), DATA, state)[0]
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(again.z))


def test_two_sweeps_are_burnt_by_default():
    for one, other in zip(
        jax.tree.leaves(fitted()[1].z),
        jax.tree.leaves(fitted(burn=2)[1].z),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("infer", ["map", "slice"])
def test_a_fit_and_the_same_parameters_given_the_same_data_report_one_density(infer):
    """Scales of the output are compared by it, some of them fitted and some refreshed."""
    model = surrogates.gp(infer=infer, samples=3)
    state, info = model.fit(jax.random.key(0), DATA, model.init(8, 1, 1))
    np.testing.assert_allclose(
        model.refresh(DATA, state)[1].log_density, info.log_density, rtol=1e-8
    )


@dataclass(frozen=True)
class Wider(surrogates.GaussianProcess):
    """A model with an overridden method and a setting of its own."""

    factor: float = 2.0

    def predict(self, state, x):
        mean, std = super().predict(state, x)
        return gp.Prediction(mean, self.factor * std)


@pytest.mark.typed
def test_an_override_survives_adapt():
    space = bonas.Space(a=bonas.Float(0.0, 1.0), b=bonas.Choice("x", "y", "z"))
    plain = surrogates.gp().adapt(space)
    wider = Wider(factor=3.0).adapt(space)
    assert isinstance(wider, Wider)
    assert wider.kernel == plain.kernel
    state = plain.init(4, 2, 1)
    x = jnp.full((3, 2), 0.5)
    np.testing.assert_allclose(
        wider.predict(state, x).std, 3.0 * plain.predict(state, x).std
    )


def test_equal_settings_are_one_model():
    assert surrogates.gp(restarts=2) == surrogates.gp(restarts=2)
    assert hash(surrogates.gp()) == hash(surrogates.gp())
    assert surrogates.gp(restarts=2) != surrogates.gp()
