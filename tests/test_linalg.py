import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from bonas import linalg
from bonas.distances import squared_distances


def random_covariance(seed, n):
    root = np.random.default_rng(seed).normal(size=(n, n))
    return jnp.asarray(root @ root.T / n + 0.1 * np.eye(n))


EVERY = jnp.ones(7, bool)


@pytest.mark.typed
def test_factor_is_scipys_and_needs_no_jitter():
    cov = random_covariance(0, 7)
    factor = linalg.factorize(cov, EVERY)
    np.testing.assert_allclose(
        factor.lower, scipy.linalg.cholesky(cov, lower=True), rtol=1e-12, atol=1e-14
    )
    assert factor.jitter == 0.0


@pytest.mark.slow
def test_jitter_is_reported_and_small_where_rounding_left_a_matrix_indefinite():
    x = jnp.linspace(0.0, 1.0, 500)[:, None]
    cov = jnp.exp(-0.5 * squared_distances(x, x))
    lower, jitter = linalg.factorize(cov, jnp.ones(500, bool))
    assert jnp.isnan(jnp.linalg.cholesky(cov)).any(), (
        "the plain factorization should fail here"
    )
    assert jnp.isfinite(lower).all()
    assert 0.0 < jitter < 1e-8
    np.testing.assert_allclose(lower @ lower.T, cov + jitter * jnp.eye(500), atol=1e-12)


@pytest.mark.slow
def test_jitter_does_not_depend_on_padding():
    x = jnp.linspace(0.0, 1.0, 100)[:, None]
    cov = jnp.exp(-0.5 * squared_distances(x, x))
    padded = jnp.eye(130).at[:100, :100].set(cov)
    alone = linalg.factorize(cov, jnp.ones(100, bool))
    among = linalg.factorize(padded, jnp.arange(130) < 100)
    assert alone.jitter == among.jitter > 0.0
    np.testing.assert_array_equal(jnp.diagonal(among.lower)[100:], 1.0)


def test_a_hopeless_matrix_ends_as_nan_not_in_a_loop():
    factor = jax.jit(linalg.factorize)(-jnp.eye(7), EVERY)
    assert jnp.isnan(factor.lower).any()
    assert factor.jitter == 0.0


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_jitter_is_added_in_large_batches(dtype):
    """In arrays of 4096 entries or more, jnp.min drops the NaN of a failed factorization."""
    cov = jnp.ones((200, 30, 30), dtype)
    each = jnp.ones((200, 30), bool)
    factors = jax.jit(jax.vmap(linalg.factorize))(cov, each)
    alone = linalg.factorize(cov[0], each[0])
    assert jnp.isfinite(factors.lower).all()
    np.testing.assert_array_equal(factors.jitter, alone.jitter)


def test_factor_derivative_agrees_with_jaxs_own():
    cov = random_covariance(1, 7)
    direction = random_covariance(2, 7)
    ours = jax.jvp(lambda k: linalg.factorize(k, EVERY).lower, (cov,), (direction,))[1]
    theirs = jax.jvp(jnp.linalg.cholesky, (cov,), (direction,))[1]
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("columns", [1, 16, 17, 40])
def test_squared_distances_are_exact_differences(columns):
    rng = np.random.default_rng(columns)
    a, b = rng.random((9, columns)), rng.random((6, columns))
    expected = ((a[:, None, :] - b[None, :, :]) ** 2).sum(-1)
    np.testing.assert_allclose(
        squared_distances(jnp.asarray(a), jnp.asarray(b)), expected, rtol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("columns", [3, 30])
def test_squared_distances_have_the_gradient_of_the_plain_form(columns):
    rng = np.random.default_rng(columns)
    a, b, weight = (
        jnp.asarray(rng.random(shape)) for shape in ((9, columns), (6, columns), (9, 6))
    )

    def plain(a, b):
        return (((a[:, None, :] - b[None, :, :]) ** 2).sum(-1) * weight).sum()

    def ours(a, b):
        return (squared_distances(a, b) * weight).sum()

    for mine, expected in zip(
        jax.grad(ours, (0, 1))(a, b), jax.grad(plain, (0, 1))(a, b), strict=True
    ):
        np.testing.assert_allclose(mine, expected, rtol=1e-10, atol=1e-12)


def test_equal_rows_are_exactly_at_distance_zero():
    rows = jnp.asarray(np.random.default_rng(0).random((20, 7))) * 1e3
    assert (jnp.diagonal(squared_distances(rows, rows)) == 0.0).all()


def test_safe_sqrt_has_a_finite_derivative_at_zero_where_the_naive_one_is_infinite():
    assert jax.grad(linalg.safe_sqrt)(jnp.zeros(())) == 0.0
    assert jnp.isinf(jax.grad(jnp.sqrt)(0.0))
    np.testing.assert_allclose(jax.grad(linalg.safe_sqrt)(jnp.asarray(4.0)), 0.25)


def test_safe_sqrt_survives_a_compiler_that_computes_its_argument_twice():
    """Two copies of a squared distance, one with fused multiply-adds, differ in the last bit: 0 in
    one, 1e-33 in the other.

    With a pair of `where`s around the root, the diagonal of this matrix comes out as 0.86 instead
    of 1 on CPUs.
    """
    x = jnp.asarray(np.random.default_rng(0).random((16, 3)))

    def both(lengthscale):
        rows = x / lengthscale[None, :]
        r = linalg.safe_sqrt(
            5.0
            * sum((rows[:, i][:, None] - rows[:, i][None, :]) ** 2 for i in range(3))
        )
        cov = (1.0 + r + r * r / 3.0) * jnp.exp(-r) + 0.01 * jnp.eye(16)
        return cov, jnp.linalg.cholesky(cov)

    cov, _ = jax.jit(jax.vmap(both))(jnp.array([[0.3, 0.5, 0.9], [1.0, 1.0, 1.0]]))
    np.testing.assert_allclose(jax.vmap(jnp.diagonal)(cov), 1.01, rtol=1e-12)
