"""One test drives every method of inference: the same call, the same pytree in, the same shapes and
reports out.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bonas import infer

METHODS = {
    "maximize": (infer.maximize, 1),
    "slice_sample": (partial(infer.slice_sample, samples=8, burn=4), 8),
    "metropolis": (partial(infer.metropolis, samples=8, burn=4), 8),
    "hmc": (partial(infer.hmc, samples=8, burn=4), 8),
    "nuts": (partial(infer.nuts, samples=8, burn=4), 8),
}


def _density(z):
    """Three independent normals of different spreads, over a scalar and a vector."""
    vector = (z["kernel"]["lengthscale"] - 1.0) * jnp.array(
        [1.0, 2.0, 4.0], z["noise"].dtype
    )
    return -0.5 * z["noise"] ** 2 - 0.5 * jnp.sum(vector**2)


@pytest.fixture(
    scope="module",
    params=[
        *[
            (name, dtype)
            for name in METHODS
            for dtype in ("float64", "float32")
            if (name, dtype) != ("nuts", "float32")
        ],
        pytest.param(("nuts", "float32"), marks=pytest.mark.slow),
    ],
    ids=lambda param: "-".join(param),
)
def ran(request):
    """The start, the samples and the report of one compiled run, and how many samples were asked
    for.
    """
    name, dtype = request.param
    method, samples = METHODS[name]
    start = {
        "noise": jnp.ones((), dtype),
        "kernel": {"lengthscale": jnp.zeros(3, dtype)},
    }
    chain, info = jax.jit(lambda key, start: method(key, _density, start))(
        jax.random.key(0), start
    )
    return start, chain, info, samples


@pytest.mark.slow
def test_samples_are_the_start_with_a_leading_axis(ran):
    start, chain, _, samples = ran
    assert jax.tree.structure(chain) == jax.tree.structure(start)
    jax.tree.map(
        lambda leaf, like: np.testing.assert_equal(leaf.shape, (samples, *like.shape)),
        chain,
        start,
    )


def test_samples_keep_the_precision_of_the_start(ran):
    start, chain, _, _ = ran
    jax.tree.map(
        lambda leaf, like: np.testing.assert_equal(leaf.dtype, like.dtype), chain, start
    )


def test_reports_have_one_entry_a_sample(ran):
    _, _, info, samples = ran
    assert (
        info.log_density.shape
        == info.accept.shape
        == info.diverging.shape
        == (samples,)
    )
    assert info.evaluations.shape == ()


def test_reports_are_finite_and_in_range(ran):
    _, chain, info, _ = ran
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((chain, info)))
    assert ((info.accept >= 0) & (info.accept <= 1)).all()
    assert info.evaluations > 0
    assert not info.diverging.any()


def test_log_density_is_that_of_the_samples(ran):
    _, chain, info, _ = ran
    rtol = 1e-4 if chain["noise"].dtype == jnp.float32 else 1e-10
    np.testing.assert_allclose(
        info.log_density, jax.vmap(_density)(chain), rtol=rtol, atol=rtol
    )
