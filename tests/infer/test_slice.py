"""Slice sampling against densities known in closed form, and against the algorithm written out in
plain Python.

Shares of draws are compared with probabilities within five Monte-Carlo standard errors, from
effective sample sizes. A check fails for about one seed in a million; the seeds are fixed.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.stats
from jax.scipy.stats import multivariate_normal, norm

from bonas import infer

COV = np.array([[1.0, 0.8, 0.0], [0.8, 1.5, -0.3], [0.0, -0.3, 0.2]])
MEAN = np.array([1.0, -2.0, 0.0])
# A uniform density on a narrow and a wide piece, with a gap that intervals of width 1 may or may
# not bridge.
NARROW, WIDE = (0.0, 0.7), (1.5, 5.5)


# compiled once for each density and setting, and shared by the tests
@partial(
    jax.jit,
    static_argnums=0,
    static_argnames=("samples", "burn", "thin", "max_steps_out"),
)
def _sample(density, key, start, width, **settings):
    return infer.slice_sample(key, density, start, width=width, **settings)


def run(density, key, start, width=1.0, **settings):
    start = jnp.asarray(start, float)
    return _sample(
        density,
        key,
        start,
        jnp.broadcast_to(jnp.asarray(width, float), start.shape),
        **settings,
    )


def _correlated(z):
    return multivariate_normal.logpdf(z, jnp.asarray(MEAN), jnp.asarray(COV))


def _standard(z):
    return -0.5 * jnp.sum(z**2)


def _mixture(z):
    return jnp.logaddexp(
        jnp.log(0.3) + norm.logpdf(z, -2.0, 0.5),
        jnp.log(0.7) + norm.logpdf(z, 2.0, 1.0),
    )


def _interval(z):
    return jnp.where((z > 1.0) & (z < 3.0), 0.0, -jnp.inf)


def _two_pieces(z):
    return jnp.where(_inside(z), 0.0, -jnp.inf)


def _inside(z):
    return ((z >= NARROW[0]) & (z <= NARROW[1])) | ((z >= WIDE[0]) & (z <= WIDE[1]))


def _check_mean(draws, expected, std):
    """draws (s,), of a distribution of this standard deviation."""
    size = infer.effective_sample_size(np.asarray(draws)[None])
    assert abs(np.mean(draws) - expected) < 5 * std / np.sqrt(size)


def _check_share(below, probability):
    """below (s,): true where an event of this probability happened."""
    _check_mean(
        np.asarray(below, float), probability, np.sqrt(probability * (1 - probability))
    )


def _check_quantiles(draws, quantile):
    for probability in (0.05, 0.25, 0.5, 0.75, 0.95):
        _check_share(np.asarray(draws) < quantile(probability), probability)


@pytest.fixture(scope="module")
def correlated():
    return run(_correlated, jax.random.key(0), jnp.zeros(3), samples=3000, burn=100)


@pytest.mark.parametrize("i", range(3))
def test_margins_of_a_correlated_normal_are_right(correlated, i):
    _check_quantiles(
        correlated[0][:, i], scipy.stats.norm(MEAN[i], np.sqrt(COV[i, i])).ppf
    )


@pytest.mark.parametrize(("i", "j"), [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)])
def test_covariances_of_a_correlated_normal_are_right(correlated, i, j):
    products = (correlated[0][:, i] - MEAN[i]) * (correlated[0][:, j] - MEAN[j])
    # the variance of a product of two zero-mean normals
    _check_mean(products, COV[i, j], np.sqrt(COV[i, i] * COV[j, j] + COV[i, j] ** 2))


def test_info_holds_the_density_at_each_draw(correlated):
    draws, info = correlated
    np.testing.assert_allclose(
        info.log_density,
        scipy.stats.multivariate_normal(MEAN, COV).logpdf(draws),
        rtol=1e-10,
    )


def test_both_hills_of_a_mixture_get_their_share():
    draws, _ = run(_mixture, jax.random.key(1), jnp.zeros(()), samples=4000, burn=50)
    low, high = scipy.stats.norm(-2.0, 0.5), scipy.stats.norm(2.0, 1.0)
    for cut in (-2.3, -1.5, 0.0, 2.0, 3.5):
        _check_share(draws < cut, 0.3 * low.cdf(cut) + 0.7 * high.cdf(cut))


def test_a_half_cauchy_keeps_its_tail():
    t = infer.target(dist.HalfCauchy(2.0), lambda theta: jnp.zeros(()))
    z, _ = run(t.sampling, jax.random.key(2), t.start, samples=4000, burn=50)
    _check_quantiles(t.constrain(z), scipy.stats.halfcauchy(scale=2.0).ppf)


def test_nothing_is_drawn_where_the_density_is_zero():
    draws, _ = run(_interval, jax.random.key(3), jnp.array(1.5), samples=4000, burn=10)
    assert ((draws > 1.0) & (draws < 3.0)).all()
    _check_quantiles(draws, scipy.stats.uniform(1.0, 2.0).ppf)


@pytest.mark.parametrize("width", [1e-3, 1e3])
def test_a_bad_width_is_mended_in_burn_in(width):
    draws, info = run(
        _standard, jax.random.key(4), jnp.zeros(2), width, samples=2000, burn=60
    )
    assert (info.scale > 0.2).all()
    assert (info.scale < 50.0).all()
    _check_quantiles(draws[:, 1], scipy.stats.norm.ppf)


@pytest.mark.parametrize("widths", [(1e-4, 1e-4), (1e-6, 1e-3)])
def test_a_narrow_width_doubles_once_a_sweep_of_burn_in_and_never_after(widths):
    # 50 narrow steps hardly ever reach the end of a slice: each of the 204 updates would double,
    # and the first four do
    _, info = run(
        _standard,
        jax.random.key(5),
        jnp.zeros(2),
        np.array(widths),
        samples=200,
        burn=4,
    )
    np.testing.assert_allclose(info.scale, 16.0 * np.array(widths), rtol=1e-12)


# One update must leave its distribution alone: chains that start in it cross the gap as often one
# way as the other.


def _stationary(rng, size):
    u = rng.uniform(0.0, 4.7, size)  # the lengths of both
    return np.where(u < NARROW[1], u, u + WIDE[0] - NARROW[1])


def _imbalance(before, after) -> float:
    """Crossings into the narrow piece less those out of it, in standard errors of their difference."""  # noqa: E501
    into = np.sum((before > 1.0) & (after < 1.0))
    out = np.sum((before < 1.0) & (after > 1.0))
    assert into + out > 100
    return (into - out) / np.sqrt(into + out)


@pytest.mark.slow
@pytest.mark.parametrize(("max_steps_out", "chains"), [(2, 40_000), (50, 10_000)])
def test_one_update_leaves_the_distribution_alone_however_few_steps_out(
    max_steps_out, chains
):
    """An imbalance of five standard errors comes up for one seed in a million."""
    starts = _stationary(np.random.default_rng(0), chains)

    def update(one):
        key, start = one
        return infer.slice_sample(
            key,
            _two_pieces,
            start,
            samples=1,
            burn=0,
            width=1.0,
            max_steps_out=max_steps_out,
        )[0][0]

    # not vmap: the longest of so many updates would hold up the others
    after = jax.jit(partial(jax.lax.map, update))(
        (jax.random.split(jax.random.key(6), chains), jnp.asarray(starts))
    )
    assert abs(_imbalance(starts, np.asarray(after))) < 5


def _published_update(rng, x: float, patience: int) -> float:
    """One update by Wilton 2020, Algorithm 1, of the two pieces, counting steps where it reads the
    clock.
    """
    width = 1.0
    left = x - rng.uniform(0.0, width)
    right = left + width
    for sign in (-1, 1):
        steps = 0
        while _inside(left if sign < 0 else right):
            left, right = (left - width, right) if sign < 0 else (left, right + width)
            steps += 1
            width *= 2.0 if steps > patience else 1.0
    while True:
        proposal = rng.uniform(left, right)
        if _inside(proposal):
            return proposal
        left, right = (proposal, right) if proposal < x else (left, proposal)


def test_doubling_the_width_within_an_update_changes_the_distribution():
    """Wilton 2020, Algorithm 1, doubles the width within an update.

    Steps out of the wide piece grow until they bridge the gap; those out of the narrow one do not.
    """
    rng = np.random.default_rng(1)
    starts = _stationary(rng, 20_000)
    after = np.array([_published_update(rng, x, patience=0) for x in starts])
    assert _imbalance(starts, after) > 10


# The same chain in plain Python


def _reference(key, density, z, *, samples, burn, width, patience, max_steps_out):
    """Neal 2003, figures 3 and 5, with the random numbers in the order in which `slice_sample` uses
    them.
    """
    z, widths, rows = np.array(z), np.full(len(z), width), []
    used = 0

    def evaluate(i, value):
        """log density with coordinate i changed, and the random numbers that belong to this
        evaluation.
        """
        nonlocal used
        used += 1
        return density(np.where(np.arange(len(z)) == i, value, z)), np.asarray(
            jax.random.uniform(jax.random.fold_in(key, used), (4,))
        )

    here = density(z)
    uniform = np.asarray(jax.random.uniform(jax.random.fold_in(key, 0), (3,)))
    for sweep in range(burn + samples):
        for i in range(len(z)):
            level = here + np.log1p(-uniform[0])
            left = z[i] - widths[i] * uniform[1]
            right = left + widths[i]
            budget = [
                int(uniform[2] * max_steps_out),
                max_steps_out - 1 - int(uniform[2] * max_steps_out),
            ]
            while evaluate(i, left)[0] > level and budget[0] > 0:
                left, budget[0] = left - widths[i], budget[0] - 1
            while evaluate(i, right)[0] > level and budget[1] > 0:
                right, budget[1] = right + widths[i], budget[1] - 1
            rejected = 0
            while True:
                inside = np.asarray(
                    jax.random.uniform(jax.random.fold_in(key, used + 1), (4,))
                )[0]
                proposal = left + inside * (right - left)
                value, uniform = evaluate(i, proposal)
                if value > level:
                    break
                rejected += 1
                left, right = (proposal, right) if proposal < z[i] else (left, proposal)
            z[i], here, uniform = proposal, value, uniform[1:]
            if sweep < burn:
                stepped = max_steps_out - 1 - sum(budget)
                widths[i] *= (
                    2.0 if stepped > patience else 0.5 if rejected > patience else 1.0
                )
        rows.append(z.copy())
    return np.array(rows[burn:]), widths, used + 1


@pytest.mark.slow
@pytest.mark.parametrize("width", [0.02, 20.0])
def test_the_chain_is_that_of_the_algorithm_in_plain_python(width):
    key, start = jax.random.key(7), np.array([0.3, -1.0])
    draws, info = run(
        _standard, key, start, width, samples=10, burn=10, max_steps_out=8
    )
    settings = {
        "samples": 10,
        "burn": 10,
        "width": width,
        "patience": 3,
        "max_steps_out": 8,
    }
    expected, widths, evaluations = _reference(
        key, lambda z: -0.5 * np.sum(z**2), start, **settings
    )
    np.testing.assert_allclose(draws, expected, rtol=1e-9)
    np.testing.assert_allclose(info.scale, widths, rtol=1e-12)
    assert info.evaluations == evaluations


def test_evaluations_are_those_made():
    calls = []

    def density(z):
        jax.debug.callback(lambda _: calls.append(None), z)
        return _standard(z)

    _, info = run(density, jax.random.key(8), jnp.zeros(2), samples=20, burn=5)
    jax.effects_barrier()
    assert info.evaluations == len(calls)


# Keys, chains and settings


def test_the_key_determines_the_draws():
    first, again, other = (
        run(
            _standard,
            jax.random.key(k),
            jnp.zeros(2),
            samples=10,
            burn=10,
            max_steps_out=8,
        )[0]
        for k in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.isclose(first, other).any()


def test_vmapped_chains_are_those_run_alone():
    keys, starts = jax.random.split(jax.random.key(9), 3), jnp.arange(6.0).reshape(3, 2)
    chain = partial(run, _standard, samples=10, burn=10, max_steps_out=8)
    together, info = jax.vmap(chain)(keys, starts)
    alone, alone_info = jax.tree.map(
        lambda *leaves: jnp.stack(leaves), *map(chain, keys, starts)
    )
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    np.testing.assert_array_equal(info.evaluations, alone_info.evaluations)


def test_thinning_keeps_every_third_sweep():
    key, start = jax.random.key(10), jnp.zeros(2)
    every, _ = run(_standard, key, start, samples=10, burn=10, max_steps_out=8)
    thinned, _ = run(_standard, key, start, samples=3, burn=10, thin=3, max_steps_out=8)
    np.testing.assert_allclose(thinned, every[2::3], rtol=1e-12)


def test_a_start_without_density_and_without_hope_stays_finite():
    draws, _ = run(_interval, jax.random.key(11), jnp.array(50.0), samples=3, burn=0)
    np.testing.assert_array_equal(draws, np.full(3, 50.0))


@pytest.mark.parametrize(
    "wrong", [{"samples": 0}, {"burn": -1}, {"thin": 0}, {"max_steps_out": 0}]
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ValueError, match=r"must be .*at least [01]; got"):
        infer.slice_sample(jax.random.key(0), _standard, jnp.zeros(2), **wrong)
