"""The noise variance as a number, an array, a prior or a function."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import bonas
from bonas import acquire, gp, surrogates

X = jnp.linspace(0.0, 1.0, 6)[:, None]
DATA = bonas.dataset(X, jnp.sin(6.0 * X[:, 0]), 8)
SPACE = bonas.Space(a=bonas.Float(0.0, 1.0))


def fitted_mean(model):
    return model.predict(model.update(DATA, model.init(8, 1, 1)), X).mean


@pytest.mark.parametrize(
    "make",
    [
        surrogates.gp,
        surrogates.linear,
        lambda noise: surrogates.additive([[0]], noise=noise),
    ],
    ids=["gp", "linear", "additive"],
)
def test_all_forms_of_a_known_variance_give_the_same_model(make):
    forms = [
        0.1,
        np.float64(0.1),
        jnp.asarray(0.1),
        lambda: 0.1,
        lambda: jnp.asarray(0.1),
    ]
    found = [fitted_mean(make(noise=form)) for form in forms]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
    traced = jax.jit(lambda noise: fitted_mean(make(noise=noise)))(0.1)
    np.testing.assert_allclose(traced, found[0], rtol=1e-6, atol=1e-8)


def test_runs_with_several_traced_variances_are_one_vmap():
    def best(noise):
        search = bonas.bayes(
            SPACE,
            surrogate=surrogates.gp(gp.matern52(), noise=noise),
            maximizer=acquire.random_candidates(SPACE, candidates=20),
            initial=2,
            output="plain",
        )
        return bonas.run(search, lambda key, u: (u[0] - 0.3) ** 2, key, 4).x

    key = jax.random.key(0)
    levels = (1e-4, 1.0)
    together = jax.jit(jax.vmap(best))(jnp.array(levels))
    np.testing.assert_allclose(together[0], best(levels[0]), atol=1e-6)
    assert not np.allclose(together[0], together[1])


def test_the_gradient_of_the_evidence_reaches_a_traced_variance():
    def evidence(noise):
        target = gp.hyperposterior(gp.matern52(), DATA, noise=lambda: noise)
        return target.maximizing(target.start)

    step = 1e-5
    difference = (evidence(0.1 + step) - evidence(0.1 - step)) / (2 * step)
    np.testing.assert_allclose(jax.grad(evidence)(0.1), difference, rtol=1e-5)


@pytest.mark.parametrize("infer", ["map", "slice"])
def test_the_variance_is_that_of_the_fit(infer):
    """And it is offered on the standardized scale, one number for each sample."""
    model = surrogates.gp(gp.matern52(), infer=infer, samples=3, burn=0)
    state = model.init(8, 1, 1)
    z = jax.tree.map(lambda leaf: leaf + jnp.arange(len(leaf)), state.z["noise"])
    found = model.noise_variance(state._replace(z={**state.z, "noise": z}))
    np.testing.assert_allclose(found, jnp.exp(z), rtol=1e-12)
    fixed = surrogates.gp(noise=0.1, infer=infer, samples=3)
    np.testing.assert_array_equal(
        fixed.noise_variance(fixed.init(8, 1, 1)), jnp.full(len(z), 0.1)
    )


@pytest.mark.parametrize("noise", [-0.1, np.nan, np.inf, "0.1", True, None, 1j])
def test_a_value_that_is_no_variance_is_an_error(noise):
    with pytest.raises(ValueError, match="the noise variance must be a number"):
        surrogates.gp(noise=noise)
    with pytest.raises(ValueError, match="the noise variance must be a number"):
        bonas.bayes(SPACE, surrogate=surrogates.gp(noise=lambda: noise))


def test_one_variance_is_expected():
    with pytest.raises(ValueError, match="got an array of shape"):
        surrogates.gp(noise=jnp.ones(3))
    with pytest.raises(ValueError, match="expected a prior of one noise variance"):
        surrogates.gp(noise=dist.LogNormal(0.0, 1.0).expand([2]))


def test_searches_with_equal_numbers_are_equal():
    """So that a concrete array does not compile a search again."""
    assert surrogates.gp(noise=jnp.asarray(0.1)) == surrogates.gp(noise=0.1)
