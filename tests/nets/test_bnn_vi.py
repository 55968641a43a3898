"""Variational networks: against high-precision values, the exact posterior of a linear model, and
draws of whole networks.
"""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, optimize, stats

from bonas import nets
from bonas.nets import bnn_vi, mlp, vi_prior
from bonas.nets.bnn_vi import VI, Variational

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference" / "vi_bnn_reference.json").read_text()
)
MEAN, STD = np.array(REFERENCE["q_mean"]), np.array(REFERENCE["q_sd"])
SHAPE = nets.Shape(2, 1, depth=3, width=8, activations=("relu",))
KEY = jax.random.key(0)
X = np.random.default_rng(0).normal(size=(5, 2))


def network(widths, seed=0, **settings):
    """A variational network with deviations that are not small, its mask and its architecture."""
    architecture = nets.architecture(SHAPE, widths)
    mask = mlp.masks(KEY, SHAPE, architecture)
    q = bnn_vi.init(jax.random.key(seed), SHAPE, mask, spread=0.7, **settings)
    noise = mlp.draw_params(
        jax.random.normal, jax.random.key(seed + 1), SHAPE, jnp.float64
    )
    return (
        q._replace(log_std=jax.tree.map(lambda draw: -1.0 + 0.3 * draw, noise)),
        mask,
        architecture,
    )


@pytest.mark.parametrize(
    ("variance", "name"), [(1.0, "kl_to_N01"), (0.5, "kl_to_N0_var_0p5")]
)
def test_divergence_of_a_layer(variance, name):
    np.testing.assert_allclose(
        vi_prior.kl_terms(MEAN, np.log(STD), variance).sum(),
        REFERENCE[name],
        rtol=1e-13,
    )


def test_the_best_variance_of_a_layer():
    found = vi_prior.best_variance((STD**2 + MEAN**2).sum(), MEAN.size, 1.0)
    np.testing.assert_allclose(found, REFERENCE["s_star_eq2_17"], rtol=1e-13)
    np.testing.assert_allclose(
        vi_prior.kl_terms(MEAN, np.log(STD), found).sum(),
        REFERENCE["kl_at_s_star"],
        rtol=1e-13,
    )

    def cost(variance):
        return vi_prior.kl_terms(
            MEAN, np.log(STD), variance
        ).sum() - vi_prior.log_inverse_gamma(variance, 1.0)

    assert abs(jax.grad(cost)(found)) < 1e-10
    assert jax.grad(jax.grad(cost))(found) > 0.0


def _divergence(variance):
    """KL(q ‖ N(0, variance)) of the reference's weights, the integral itself, weight by weight."""
    mean, std, z = (
        MEAN.reshape(-1, 1),
        STD.reshape(-1, 1),
        np.linspace(-12.0, 12.0, 2001),
    )
    log_q, log_p = (
        stats.norm.logpdf(z) - np.log(std),
        stats.norm.logpdf(mean + std * z, scale=variance**0.5),
    )
    return float(np.trapezoid(stats.norm.pdf(z) * (log_q - log_p), z, axis=1).sum())


def test_the_printed_trace_is_no_divergence():
    """Hutchinson, eq. 2.8, prints Tr(Σ₁⁻¹Σ₂); the divergence has Tr(Σ₂⁻¹Σ₁)."""
    truth, variance = _divergence(0.5), 0.5
    np.testing.assert_allclose(
        vi_prior.kl_terms(MEAN, np.log(STD), variance).sum(), truth, rtol=1e-9
    )
    printed = (
        0.5
        * (
            np.log(variance / STD**2) - 1.0 + variance / STD**2 + MEAN**2 / variance
        ).sum()
    )
    assert abs(printed - truth) > 1.0


def test_the_best_variance_does_not_solve_the_problem_that_is_printed():
    """Hutchinson, eq. 2.16, prints −log s; eq. 2.17 solves the problem with −log P(s)."""
    hyper = stats.invgamma(vi_prior.HYPER_SHAPE, scale=1.0 + vi_prior.HYPER_SHAPE)
    closed = float(vi_prior.best_variance((STD**2 + MEAN**2).sum(), MEAN.size, 1.0))

    def least(cost):
        return float(
            optimize.minimize_scalar(
                cost, bounds=(0.05, 5.0), method="bounded", options={"xatol": 1e-7}
            ).x
        )

    np.testing.assert_allclose(
        least(lambda s: _divergence(s) - hyper.logpdf(s)), closed, rtol=1e-4
    )
    assert abs(least(lambda s: _divergence(s) - np.log(s)) - closed) > 0.1 * closed


@pytest.mark.slow
def test_local_reparameterization_has_the_moments_of_the_reference():
    """One layer of three inputs and four units, whose outputs are drawn; the reference has no bias."""  # noqa: E501
    reference = REFERENCE["local_reparam"]
    shape = nets.Shape(3, 4, depth=1, width=1, activations=("relu",))
    architecture = nets.architecture(shape, [])
    mask = mlp.masks(KEY, shape, architecture)
    q = bnn_vi.init(KEY, shape, mask)
    mean = q.mean | {"last": {"kernel": jnp.asarray(MEAN), "bias": jnp.zeros(4)}}
    log_std = q.log_std | {
        "last": {"kernel": jnp.log(STD), "bias": jnp.full(4, -100.0)}
    }
    q = q._replace(mean=mean, log_std=log_std)
    x = jnp.asarray(reference["acts"])
    mean, variance = bnn_vi.moments(shape, q, mask, architecture, x)
    np.testing.assert_allclose(mean, reference["gamma_mean"], rtol=1e-12)
    np.testing.assert_allclose(variance, reference["delta_variance"], rtol=1e-12)
    drawn = bnn_vi.sample_outputs(KEY, shape, q, mask, architecture, x, 20_000)
    np.testing.assert_allclose(
        drawn.mean(axis=0), reference["gamma_mean"], atol=5 * 1.12 / 20_000**0.5
    )
    np.testing.assert_allclose(
        drawn.var(axis=0), reference["delta_variance"], rtol=0.06
    )


@pytest.mark.slow
def test_the_bound_is_the_evidence_of_a_linear_model_at_its_posterior_and_below_it_elsewhere():
    """Columns that are orthogonal, the bias too, make the posterior of the weights independent: q
    can be exact.
    """
    shape = nets.Shape(2, 1, depth=1, width=1, activations=("relu",))
    architecture = nets.architecture(shape, [])
    mask = mlp.masks(KEY, shape, architecture)
    x = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]) * [0.7, 1.9]
    y, noise, prior = np.array([0.3, -1.0, 0.8, 2.0]), 0.3, 1.7
    design = np.concatenate([x, np.ones((4, 1))], axis=1)
    precision = np.diag(design.T @ design) / noise + 1.0 / prior
    mean = design.T @ y / noise / precision
    cov = prior * design @ design.T + noise * np.eye(4)
    evidence = -0.5 * (
        y @ np.linalg.solve(cov, y) + np.linalg.slogdet(2 * np.pi * cov)[1]
    )

    def bound(shift, stretch):
        q = bnn_vi.init(KEY, shape, mask, log_noise=np.log(noise))
        std = jnp.log(stretch / np.sqrt(precision))
        center = jnp.asarray(mean) + shift
        q = q._replace(
            mean=q.mean | {"last": {"kernel": center[:2, None], "bias": center[2:]}},
            log_std=q.log_std | {"last": {"kernel": std[:2, None], "bias": std[2:]}},
        )
        vi = VI(prior="fixed", forward="deterministic")
        fit = bnn_vi.expected_log_likelihood(
            KEY, vi, shape, q, mask, architecture, jnp.asarray(x), jnp.asarray(y)
        ).sum()
        return fit - vi_prior.divergence(vi, q, mask, jnp.asarray(prior))

    np.testing.assert_allclose(bound(jnp.zeros(3), jnp.ones(3)), evidence, rtol=1e-12)
    for gradient in jax.grad(bound, (0, 1))(jnp.zeros(3), jnp.ones(3)):
        np.testing.assert_allclose(gradient, 0.0, atol=1e-10)
    for seed in range(5):
        shift, stretch = 0.2 * jax.random.normal(jax.random.key(seed), (2, 3))
        assert bound(shift, jnp.exp(stretch)) < evidence


@pytest.mark.slow
def test_a_padded_network_has_the_divergence_and_the_moments_of_the_small_one():
    small = nets.Shape(2, 1, depth=1, width=3, activations=("relu",))
    q, mask, architecture = network([3])
    cut = Variational(*(mlp.resize(tree, small) for tree in q[:2]), q.log_noise)
    alone = nets.architecture(small, [3])
    own = mlp.masks(KEY, small, alone)
    for prior in bnn_vi.PRIORS:
        found, wanted = (
            vi_prior.divergence(VI(prior=prior), which, there, jnp.asarray(2.0))
            for which, there in ((q, mask), (cut, own))
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    for found, wanted in zip(
        bnn_vi.moments(SHAPE, q, mask, architecture, X),
        bnn_vi.moments(small, cut, own, alone, X),
        strict=True,
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("widths", [[], [6], [4, 5, 3]], ids=str)
def test_activations_drawn_and_whole_networks_drawn_have_the_same_moments(widths):
    q, mask, architecture = network(widths)
    local = bnn_vi.sample_outputs(
        KEY, SHAPE, q, mask, architecture, jnp.asarray(X), 4000
    )[:, :, 0]
    drawn = jax.vmap(lambda key: bnn_vi.draw_weights(key, SHAPE, q, mask))(
        jax.random.split(jax.random.key(3), 4000)
    )
    whole = jax.vmap(
        lambda params: mlp.apply(SHAPE, params, jnp.asarray(X), architecture)
    )(drawn)[:, :, 0]
    error = np.sqrt(local.var(axis=0) / 4000 + whole.var(axis=0) / 4000)
    assert np.all(np.abs(local.mean(axis=0) - whole.mean(axis=0)) < 5.0 * error)
    np.testing.assert_allclose(local.std(axis=0), whole.std(axis=0), rtol=0.15)


def _five_errors(drawn):
    """Means and variances of draws (k, n), and five standard errors of each."""
    variance, fourth = (
        drawn.var(axis=0),
        ((drawn - drawn.mean(axis=0)) ** 4).mean(axis=0),
    )
    return (
        drawn.mean(axis=0),
        variance,
        5.0 * np.sqrt(variance / len(drawn)),
        5.0 * np.sqrt((fourth - variance**2) / len(drawn)),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("widths", "known", "off", "share"),
    [
        ([6], 0, 0.0, 0.0),
        ([4, 5], 1, 0.0, 0.0),
        ([8, 8], 0, 0.05, 0.1),
        ([4, 5, 3], 0, 0.1, 0.2),
    ],
    ids=["one layer", "two layers, the first known", "two layers", "three layers"],
)
def test_moments_of_deep_networks_are_those_of_their_draws(widths, known, off, share):
    """20,000 draws, five standard errors. Units of one layer that see the same random ones are
    correlated, which `moments`
    leaves out: nothing in the first layer that is random, and after that up to `off` deviations of
    the mean and a `share` of the variance are allowed, of networks whose weights are as uncertain
    as these (deviations of about half their size).
    """
    q, mask, architecture = network(widths)
    if known:  # a first layer without deviations
        q = q._replace(
            log_std=q.log_std
            | {
                "first": jax.tree.map(
                    lambda leaf: jnp.full(leaf.shape, -100.0), q.log_std["first"]
                )
            }
        )
    mean, variance = (
        np.asarray(leaf)[:, 0]
        for leaf in bnn_vi.moments(SHAPE, q, mask, architecture, jnp.asarray(X))
    )
    drawn = np.asarray(
        bnn_vi.sample_outputs(KEY, SHAPE, q, mask, architecture, jnp.asarray(X), 20_000)
    )[:, :, 0]
    center, spread, of_center, of_spread = _five_errors(drawn)
    assert (np.abs(mean - center) < of_center + off * np.sqrt(spread)).all()
    assert (np.abs(variance - spread) < of_spread + share * spread).all()


@pytest.mark.slow
def test_antithetic_draws_come_in_pairs_about_the_mean_of_a_linear_network():
    q, mask, architecture = network([])
    drawn = bnn_vi.sample_outputs(
        KEY, SHAPE, q, mask, architecture, X, 6, antithetic=True
    )
    alone = bnn_vi.sample_outputs(KEY, SHAPE, q, mask, architecture, X, 3)
    np.testing.assert_allclose(drawn[:3], alone, rtol=1e-12)
    mean = X @ np.asarray(q.mean["last"]["kernel"])[:2] + np.asarray(
        q.mean["last"]["bias"]
    )
    np.testing.assert_allclose(
        drawn[:3] + drawn[3:], np.broadcast_to(2.0 * mean, (3, 5, 1)), rtol=1e-12
    )
    assert float(jnp.std(drawn[:3], axis=0).min()) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("widths", [[6], [4, 5, 3]], ids=str)
def test_antithetic_draws_have_the_same_gradient_on_average_and_vary_less_in_the_means(
    widths,
):
    """Means over 4000 keys agree within 5 standard errors; deviations are a tenth of the means, as
    in training.
    """
    q, mask, architecture = network(widths)
    q = q._replace(log_std=jax.tree.map(lambda leaf: leaf - 2.0, q.log_std))

    def gradients(vi):
        def bound(q, key):
            return bnn_vi.expected_log_likelihood(
                key, vi, SHAPE, q, mask, architecture, X, jnp.asarray(X[:, 0])
            ).mean()

        found = jax.jit(jax.vmap(jax.grad(bound), (None, 0)))(
            q, jax.random.split(KEY, 4000)
        )
        return [
            np.concatenate(
                [np.reshape(leaf, (4000, -1)) for leaf in jax.tree.leaves(part)], axis=1
            )
            for part in found
        ]

    means = []
    for pairs, alone in zip(
        *(gradients(VI(samples=2, antithetic=each)) for each in (True, False)),
        strict=True,
    ):
        error = np.sqrt((pairs.var(axis=0) + alone.var(axis=0)) / 4000)
        assert (
            np.abs(pairs.mean(axis=0) - alone.mean(axis=0)) <= 5.0 * error + 1e-12
        ).all()
        means.append(pairs.var(axis=0).sum() / alone.var(axis=0).sum())
    assert means[0] < 0.9  # variances of 4000 draws are known to a few hundredths


@pytest.mark.slow
def test_moments_of_a_rectified_normal():
    z = 0.4 + 1.3 * jax.random.normal(KEY, (400_000,))
    mean, variance = bnn_vi.relu_moments(jnp.asarray(0.4), jnp.asarray(1.69))
    np.testing.assert_allclose(
        [mean, variance], [jax.nn.relu(z).mean(), jax.nn.relu(z).var()], rtol=0.01
    )
    for mean in (-2.0, 0.0, 3.0):  # without variance it is a number
        first, second = bnn_vi.relu_moments(jnp.asarray(mean), jnp.asarray(0.0))
        np.testing.assert_allclose([first, second], [max(mean, 0.0), 0.0], atol=1e-12)
        assert np.isfinite(
            jax.grad(lambda m: sum(bnn_vi.relu_moments(m, jnp.asarray(0.0))))(mean)
        )


def _rectified(mean, std):
    """The mean and the variance of max(z, 0), z ~ N(mean, std²), integrals in float64."""
    ratio = mean / std
    first, _ = integrate.quad(
        lambda t: max(ratio + t, 0.0) * stats.norm.pdf(t),
        max(-ratio, -12.0),
        12.0,
        epsabs=0.0,
    )
    above, _ = integrate.quad(
        lambda t: (ratio + t - first) ** 2 * stats.norm.pdf(t),
        max(-ratio, -12.0),
        12.0,
        epsabs=0.0,
    )
    return std * first, std**2 * (above + first**2 * stats.norm.cdf(-ratio))


@pytest.mark.parametrize("ratio", [-3.0, -1.0, 0.0, 0.5, 2.0, 5.0, 12.0, 29.0, 2500.0])
@pytest.mark.parametrize("std", [0.004, 1.0, 300.0])
def test_moments_of_a_rectified_normal_keep_their_digits_in_float32(ratio, std):
    mean, std = np.float32(ratio * std), np.float32(std)
    variance = std**2
    found = bnn_vi.relu_moments(jnp.asarray(mean), jnp.asarray(variance))
    assert {leaf.dtype for leaf in found} == {jnp.dtype("float32")}
    rtol = 2e-4 if ratio < -2.0 else 1e-5
    np.testing.assert_allclose(
        found, _rectified(float(mean), float(variance) ** 0.5), rtol=rtol
    )


@pytest.mark.slow
def test_the_gradient_through_the_best_variance_is_zero_where_its_prior_is_in_the_bound():
    q, mask, _ = network([5, 5])

    def cost(q, prior, stopped):
        held = jax.tree.map(jax.lax.stop_gradient, q)
        groups = zip(
            vi_prior.variance_groups(VI(prior=prior), q, mask),
            vi_prior.variance_groups(VI(prior=prior), held, mask),
            strict=True,
        )
        found = 0.0
        for group, fixed in groups:
            chosen = fixed if stopped else group
            total = sum(
                jnp.where(live, jnp.exp(2.0 * log_std) + mean**2, 0.0).sum()
                for mean, log_std, live in chosen
            )
            count = sum(live.sum() for *_, live in group)
            variance = vi_prior.best_variance(total, count, jnp.asarray(1.0))
            found += sum(
                jnp.where(live, vi_prior.kl_terms(m, s, variance), 0.0).sum()
                for m, s, live in group
            )
        return found

    def gradient(function):
        return jnp.concatenate(
            [leaf.ravel() for leaf in jax.tree.leaves(jax.grad(function)(q))]
        )

    layers, published = (
        gradient(
            lambda q, prior=prior: vi_prior.divergence(
                VI(prior=prior), q, mask, jnp.asarray(1.0)
            )
        )
        for prior in ("layers", "published")
    )
    np.testing.assert_allclose(
        layers, gradient(lambda q: cost(q, "layers", True)), atol=1e-10
    )
    np.testing.assert_allclose(
        published, gradient(lambda q: cost(q, "published", False)), atol=1e-10
    )


@pytest.mark.slow
def test_scores_take_the_logarithm_of_the_average_density():
    q, mask, architecture = network([4], log_noise=-1.0)
    y = jnp.asarray(X[:, 0])
    drawn = bnn_vi.sample_outputs(KEY, SHAPE, q, mask, architecture, jnp.asarray(X), 50)
    found, outputs = bnn_vi.scores(VI(), q, drawn, y), np.asarray(drawn)[:, :, 0]
    density = np.exp(-0.5 * (y[None] - outputs) ** 2 * np.exp(1.0)) / np.sqrt(
        2 * np.pi * np.exp(-1.0)
    )
    np.testing.assert_allclose(
        found.log_likelihood, np.log(density.mean(axis=0)).mean(), rtol=1e-10
    )
    np.testing.assert_allclose(
        found.rmse, np.sqrt(np.mean((outputs.mean(axis=0) - y) ** 2)), rtol=1e-10
    )
    np.testing.assert_allclose(
        found.rmse_published, np.sqrt(np.mean((outputs - y[None]) ** 2)), rtol=1e-10
    )
    assert found.rmse_published > found.rmse


@pytest.mark.parametrize("head", [False, True])
def test_scores_in_other_units_are_those_of_values_and_predictions_in_them(head):
    """Change of variables: what is scored is 7 y + 3 by a network whose outputs are 7 f + 3."""
    drawn = jax.random.normal(KEY, (20, 5, 1 + head))
    q, y = network([4], log_noise=-1.0)[0], jnp.asarray(X[:, 0])
    other = drawn.at[:, :, 0].set(7.0 * drawn[:, :, 0] + 3.0)
    wide = q._replace(log_noise=q.log_noise + 2.0 * np.log(7.0))
    found = nets.unscale_scores(bnn_vi.scores(VI(head=head), q, drawn, y), 7.0)
    wanted = bnn_vi.scores(VI(head=head), wide, other, 7.0 * y + 3.0)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_what_is_refused():
    for wrong in (
        {"prior": "flat"},
        {"forward": "backward"},
        {"samples": 0},
        {"head": True, "forward": "deterministic"},
    ):
        with pytest.raises(ValueError):
            VI(**wrong)
    shape = nets.Shape(2, 1, depth=1, width=3, activations=("tanh",))
    architecture = nets.architecture(shape, [3])
    mask = mlp.masks(KEY, shape, architecture)
    with pytest.raises(ValueError, match="only for relu"):
        bnn_vi.moments(shape, bnn_vi.init(KEY, shape, mask), mask, architecture, X)
