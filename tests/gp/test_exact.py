import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import sklearn.gaussian_process as sk
from cases import SPACE, draw

import bonas
from bonas import gp

MEANS = {
    "zero": gp.zero,
    "constant": gp.constant(0.3),
    "learned": gp.learned_constant(),
    "wilton": gp.wilton,
}


def reference_case(reference, name):
    values = reference("gp")
    kernel = {"matern52": gp.matern52(), "squared_exponential": gp.se()}[name]
    params = {
        "variance": values["amplitude"],
        "lengthscale": jnp.asarray(values["lengthscales"]),
    }
    return (
        values,
        values[name],
        kernel,
        params,
        bonas.dataset(np.array(values["X"]), np.array(values["y"]), capacity=20),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["matern52", "squared_exponential"])
def test_reference_posterior_and_evidence(reference, name):
    values, expected, kernel, params, data = reference_case(reference, name)
    settings = {"noise": values["noise"], "mean": gp.constant(values["mean"])}
    mean, cov = gp.joint(
        gp.condition(kernel, params, data, **settings), jnp.asarray(values["X_star"])
    )
    np.testing.assert_allclose(mean, expected["mean"], rtol=1e-11)
    np.testing.assert_allclose(cov, expected["cov"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        gp.log_evidence(kernel, params, data, **settings), expected["lml"], rtol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["matern52", "squared_exponential"])
def test_reference_gradient_of_the_evidence(reference, name):
    values, expected, kernel, _, data = reference_case(reference, name)
    mean = gp.learned_constant()

    def evidence(logs, constant):
        params = {"lengthscale": jnp.exp(logs[:4]), "variance": jnp.exp(logs[4])}
        return gp.log_evidence(
            kernel,
            params,
            data,
            noise=jnp.exp(logs[5]),
            mean=mean,
            mean_params={"constant": constant},
        )

    logs = jnp.log(
        jnp.asarray([*values["lengthscales"], values["amplitude"], values["noise"]])
    )
    gradient = jnp.append(*jax.grad(evidence, (0, 1))(logs, values["mean"]))
    np.testing.assert_allclose(
        gradient, expected["grad_lml_wrt_logls_logamp_lognoise_mean"], rtol=2e-8
    )


def test_reference_with_wiltons_mean(reference):
    values, _, kernel, params, data = reference_case(reference, "matern52")
    expected = values["wilton_mean_eq7"]
    posterior = gp.condition(
        kernel, params, data, noise=values["noise"], mean=gp.wilton
    )
    np.testing.assert_allclose(
        gp.wilton.value({}, data, data.x[0]), expected["prior_mean"], rtol=1e-14
    )
    mean, std = gp.predict(posterior, jnp.asarray(values["X_star"]))
    np.testing.assert_allclose(mean, expected["mean"], rtol=1e-11)
    np.testing.assert_allclose(std**2, expected["var"], rtol=1e-9)


def test_reference_of_twists_posterior(reference):
    values, _, _, _, data = reference_case(reference, "matern52")
    expected = values["twist_se_zero_mean"]
    params = {"variance": expected["alpha"] ** 2, "lengthscale": expected["ell"]}
    posterior = gp.condition(gp.se(), params, data, noise=expected["sigma"] ** 2)
    mean, cov = gp.joint(posterior, jnp.asarray(values["X_star"]))
    np.testing.assert_allclose(mean, expected["mean"], rtol=1e-11)
    np.testing.assert_allclose(cov, expected["cov"], rtol=1e-9, atol=1e-12)


def test_the_printed_transpose_in_twists_posterior_is_wrong(small):
    """K(X_c, X_t) as Twist defines it is candidates by data; its transpose does not fit."""
    x, y = small
    cross = np.asarray(
        gp.gram(
            gp.se(),
            {"variance": 1.0, "lengthscale": 1.0},
            jnp.asarray(x[:4]),
            jnp.asarray(x),
        )
    )
    with pytest.raises(ValueError):
        cross.T @ np.linalg.solve(np.eye(13), y)


def test_agrees_with_scikit_learns_regressor(small):
    x, y = small
    lengthscale = np.array([0.5, 0.8, 1.3])
    theirs = sk.GaussianProcessRegressor(
        sk.kernels.ConstantKernel(1.4) * sk.kernels.Matern(lengthscale, nu=2.5),
        alpha=0.01,
        optimizer=None,
    ).fit(x[:9], y[:9])
    params = {"variance": 1.4, "lengthscale": jnp.asarray(lengthscale)}
    data = bonas.dataset(x[:9], y[:9], capacity=12)
    mean, std = gp.predict(
        gp.condition(gp.matern52(), params, data, noise=0.01), jnp.asarray(x[9:])
    )
    their_mean, their_std = theirs.predict(x[9:], return_std=True)
    np.testing.assert_allclose(mean, their_mean, rtol=1e-9)
    np.testing.assert_allclose(std, their_std, rtol=1e-7)
    evidence = gp.log_evidence(gp.matern52(), params, data, noise=0.01)
    np.testing.assert_allclose(
        evidence, theirs.log_marginal_likelihood_value_, rtol=1e-10
    )


def test_one_observation_by_hand():
    """k = 2, noise 0.5, y = 1: mean 2/2.5 at the point, variance 2 − 4/2.5."""
    data = bonas.dataset([[0.5]], [1.0], capacity=3)
    params = {"variance": 2.0, "lengthscale": 1.0}
    mean, std = gp.predict(
        gp.condition(gp.se(), params, data, noise=0.5), jnp.array([[0.5]])
    )
    np.testing.assert_allclose([mean[0], std[0]], [0.8, np.sqrt(0.4)], rtol=1e-14)
    expected = scipy.stats.norm(0, np.sqrt(2.5)).logpdf(1.0)
    np.testing.assert_allclose(
        gp.log_evidence(gp.se(), params, data, noise=0.5), expected, rtol=1e-14
    )


def test_two_observations_by_hand():
    """Two points at distance 1, unit variance, no noise; predict in the middle."""
    data = bonas.dataset([[0.0], [1.0]], [1.0, 3.0])
    mean, std = gp.predict(
        gp.condition(gp.se(), {"variance": 1.0, "lengthscale": 1.0}, data, noise=0.0),
        jnp.array([[0.5]]),
    )
    c, k = np.exp(-0.5), np.exp(-0.125)
    np.testing.assert_allclose(mean[0], k * 4.0 / (1 + c), rtol=1e-13)
    np.testing.assert_allclose(std[0] ** 2, 1 - 2 * k**2 / (1 + c), rtol=1e-12)


@pytest.mark.slow
def test_conditioning_theorem():
    """Twist, Theorem 3.1: f(x*) | f(X) = y by the block formula, without noise."""
    x = jnp.asarray(np.random.default_rng(1).random((6, 2)))
    params = {"variance": 1.3, "lengthscale": jnp.array([0.3, 0.6])}
    sigma = np.asarray(gp.gram(gp.matern32(), params, x, x))
    y = np.array([0.4, -1.0, 0.7, 0.1])
    inverse = np.linalg.inv(sigma[:4, :4])
    mean, cov = gp.joint(
        gp.condition(gp.matern32(), params, bonas.dataset(x[:4], y), noise=0.0), x[4:]
    )
    np.testing.assert_allclose(mean, sigma[4:, :4] @ inverse @ y, rtol=1e-10)
    np.testing.assert_allclose(
        cov,
        sigma[4:, 4:] - sigma[4:, :4] @ inverse @ sigma[:4, 4:],
        rtol=1e-9,
        atol=1e-12,
    )


def test_the_posterior_mean_is_the_best_predictor_by_squared_error():
    """Wilton, Theorem 3.1.1: the risk is lowest for E[Y | X].

    Values and observations are drawn together from a covariance written out in NumPy; 20,000 of
    them, and the tolerance is five standard errors of the risk.
    """
    # the last is what is predicted
    x, n = np.array([[0.1], [0.35], [0.5], [0.9], [0.65]]), 20_000
    cov = np.exp(-0.5 * ((x - x.T) / 0.3) ** 2) + np.diag([0.2, 0.2, 0.2, 0.2, 0.0])
    drawn = np.random.default_rng(0).multivariate_normal(np.zeros(5), cov, size=n)
    data, params = (
        bonas.dataset(x[:4], np.zeros(4)),
        {"variance": 1.0, "lengthscale": 0.3},
    )

    def predict(y):
        return gp.predict(
            gp.condition(gp.se(), params, data._replace(y=y[:, None]), noise=0.2),
            jnp.asarray(x[4:]),
        )

    mean, std = (
        np.asarray(part)[:, 0]
        for part in jax.jit(jax.vmap(predict))(jnp.asarray(drawn[:, :4]))
    )
    for g in (
        mean,
        0.7 * mean,
        drawn[:, 2],
        np.zeros(n),
    ):  # shrunk, the nearest observation, the prior's mean
        losses = (drawn[:, 4] - g) ** 2
        assert abs(
            losses.mean() - (std[0] ** 2 + np.mean((g - mean) ** 2))
        ) < 5.0 * losses.std() / np.sqrt(n)
        assert g is mean or losses.mean() > np.mean((drawn[:, 4] - mean) ** 2)


@pytest.mark.slow
def test_affine_theorem_for_a_rectangular_map():
    """Twist, Theorem 3.2: AX + b ~ N(Aμ + b, AΣAᵀ), for rectangular A too.

    200,000 draws: the standard error of a covariance of order 1 is 0.003, the tolerance 0.015.
    """
    x = jnp.asarray(np.random.default_rng(1).random((5, 2)))
    data = bonas.dataset(x[:2], [0.5, -0.5])
    posterior = gp.condition(
        gp.se(), {"variance": 1.0, "lengthscale": 0.5}, data, noise=0.1
    )
    draws = gp.sample(jax.random.key(0), posterior, x, 200_000)
    matrix, shift = (
        jnp.array([[1.0, 1.0, 0.0, 0.0, -0.5], [0.0, 0.3, 1.0, 1.0, 0.0]]),
        jnp.array([1.0, -2.0]),
    )
    mapped = np.asarray(draws @ matrix.T + shift[None, :])
    mean, cov = gp.joint(posterior, x)
    np.testing.assert_allclose(mapped.mean(0), matrix @ mean + shift, atol=0.015)
    np.testing.assert_allclose(np.cov(mapped.T), matrix @ cov @ matrix.T, atol=0.03)


def test_variance_of_a_sum_is_not_the_sum_of_marginals():
    """Twist, Definition 3.1: Σ γ_i X_i ~ N(γᵀμ, γᵀΣγ); printed is N(μ_i, Σ_ii)."""
    x = jnp.array([[0.2], [0.3]])
    posterior = gp.condition(
        gp.se(),
        {"variance": 1.0, "lengthscale": 0.5},
        bonas.dataset([[0.9]], [0.1]),
        noise=0.1,
    )
    _, cov = gp.joint(posterior, x)
    total = gp.sample(jax.random.key(0), posterior, x, 100_000).sum(1)
    assert abs(total.var() - cov.sum()) < 5 * float(cov.sum()) * np.sqrt(2 / 100_000)
    assert abs(total.var() - jnp.diagonal(cov).sum()) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_data_shrink_the_covariance_in_the_loewner_order(seed):
    """Wilton A.3: each observation reduces the covariance by a positive semi-definite matrix."""
    keys = jax.random.split(jax.random.key(seed), 3)
    x, new = SPACE.sample(keys[0], 10), SPACE.sample(keys[1], 8)
    kernel = gp.arc(SPACE.active, categories=SPACE.categories)
    params = draw(kernel.prior(SPACE.dim), keys[2])
    last = np.asarray(gp.gram(kernel, params, new, new))
    for n in (2, 5, 10):
        data = bonas.dataset(x[:n], np.zeros(n), capacity=10)
        now = np.asarray(
            gp.joint(gp.condition(kernel, params, data, noise=0.01), new)[1]
        )
        assert np.linalg.eigvalsh(last - now).min() > -1e-10 * np.abs(last).max()
        last = now


def assert_padding_changes_nothing(kernel, mean, filling):
    """Evidence, gradient and predictions agree to 1e-10 with other contents in masked rows."""
    x, new = SPACE.sample(jax.random.key(0), 13), SPACE.sample(jax.random.key(1), 5)
    alone = bonas.dataset(x, jnp.cos(5 * x[:, 1]) + x[:, 0])
    padded = bonas.grow(alone, 32)
    padded = padded._replace(
        x=padded.x.at[13:].set(filling), y=padded.y.at[13:].set(filling)
    )
    params = (
        draw(kernel.prior(SPACE.dim), jax.random.key(2)),
        draw(mean.prior(SPACE.dim), jax.random.key(3)),
    )

    @jax.jit
    def everything(data):
        def evidence(params):
            return gp.log_evidence(
                kernel, params[0], data, noise=0.05, mean=mean, mean_params=params[1]
            )

        posterior = gp.condition(
            kernel, params[0], data, noise=0.05, mean=mean, mean_params=params[1]
        )
        return jax.value_and_grad(evidence)(params), gp.predict(posterior, new)

    first, second = everything(alone), everything(padded)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10),
        first,
        second,
    )


@pytest.mark.slow
def test_nan_in_the_padding_changes_nothing(kernel):
    assert_padding_changes_nothing(kernel, gp.zero, np.nan)


@pytest.mark.slow
@pytest.mark.parametrize("filling", [0.0, 1e6, np.nan])
@pytest.mark.parametrize("mean", MEANS)
def test_the_contents_of_padding_change_nothing(mean, filling):
    assert_padding_changes_nothing(gp.matern52(), MEANS[mean], filling)


@pytest.mark.parametrize("filling", [1e6, np.nan])
def test_a_masked_row_between_others_changes_nothing(filling, small):
    x, y = small
    params = {"variance": 1.0, "lengthscale": jnp.ones(3)}
    data = bonas.dataset(x, y)
    holes = data._replace(
        mask=data.mask.at[4].set(False),
        x=data.x.at[4].set(filling),
        y=data.y.at[4].set(filling),
    )
    without = bonas.dataset(np.delete(x, 4, 0), np.delete(y, 4))
    first, second = (
        gp.log_evidence(gp.rq(), {**params, "alpha": 1.0}, part, noise=0.01)
        for part in (holes, without)
    )
    np.testing.assert_allclose(first, second, rtol=1e-12)


def test_the_order_of_rows_changes_nothing(small):
    x, y = small
    order = np.random.default_rng(0).permutation(13)
    params = {"variance": 1.0, "lengthscale": jnp.ones(3)}
    values = [
        gp.log_evidence(gp.matern52(), params, bonas.dataset(x[i], y[i]), noise=0.01)
        for i in (order, slice(None))
    ]
    np.testing.assert_allclose(*values, rtol=1e-11)


def test_no_data_give_back_the_prior():
    data = bonas.data.empty(8, 2)
    posterior = gp.condition(
        gp.matern52(),
        {"variance": 2.0, "lengthscale": 1.0},
        data,
        noise=0.1,
        mean=gp.constant(0.7),
    )
    mean, std = gp.predict(posterior, jnp.array([[0.1, 0.9]]))
    np.testing.assert_allclose([mean[0], std[0]], [0.7, np.sqrt(2.0)], rtol=1e-14)
    assert (
        gp.log_evidence(
            gp.matern52(), {"variance": 2.0, "lengthscale": 1.0}, data, noise=0.1
        )
        == 0.0
    )


@pytest.mark.slow
def test_jit_and_vmap_agree_with_the_plain_call(small):
    x, y = small
    data = bonas.dataset(x, y, capacity=16)
    params = {
        "variance": jnp.array([1.0, 2.0]),
        "lengthscale": jnp.array([[0.3, 0.5, 0.9], [1.0, 1.0, 1.0]]),
    }

    def both(params):
        return gp.predict(
            gp.condition(gp.matern52(), params, data, noise=0.01),
            jnp.asarray(x[:4]) + 0.1,
        )

    many = jax.jit(jax.vmap(both))(params)
    for i in range(2):
        alone = both(jax.tree.map(lambda leaf: leaf[i], params))
        np.testing.assert_allclose(many.mean[i], alone.mean, rtol=1e-10)
        np.testing.assert_allclose(many.std[i], alone.std, rtol=1e-9)


def test_data_from_8_to_40_compile_once(small):
    """Every step of a growing study: fit value and gradient, condition and predict."""

    @jax.jit
    def step(data, params):
        value = jax.value_and_grad(
            lambda p: gp.log_evidence(gp.matern52(), p, data, noise=0.01)
        )(params)
        return value, gp.predict(
            gp.condition(gp.matern52(), params, data, noise=0.01), data.x[:3]
        )

    x = np.random.default_rng(0).random((40, 3))
    params = {"variance": jnp.array(1.0), "lengthscale": jnp.ones(3)}
    data = bonas.dataset(x[:8], x[:8].sum(1), capacity=40)
    for row in x[8:]:
        step(data, params)
        data = bonas.append(data, row, row.sum())
    step(data, params)
    assert step._cache_size() == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["se", "matern12", "matern32", "matern52", "rq"])
def test_near_singular_data_give_finite_answers_and_report_jitter(name):
    """500 points on a line and 20 duplicates, without noise."""
    x = np.concatenate([np.linspace(0, 1, 500), np.full(20, 0.5)])[:, None]
    data = bonas.dataset(x, np.sin(3 * x[:, 0]))
    kernel = getattr(gp, name)()
    params = {"variance": 1.0, "lengthscale": 1.0, "alpha": 1.0}
    posterior = jax.jit(gp.condition)(kernel, params, data, noise=0.0)
    new = jnp.linspace(0.001, 0.999, 7)[:, None]
    mean, std = gp.predict(posterior, new)
    assert 0.0 < posterior.jitter < 1e-6
    np.testing.assert_allclose(mean, np.sin(3 * new[:, 0]), atol=1e-3)
    assert jnp.isfinite(std).all()
    assert (std > 0).all()
    assert jnp.isfinite(gp.sample(jax.random.key(0), posterior, new, 3)).all()
    gradient = jax.grad(
        lambda s: gp.log_evidence(kernel, {**params, "lengthscale": s}, data, noise=0.0)
    )(1.0)
    assert jnp.isfinite(gradient)


def test_well_conditioned_data_need_no_jitter(small):
    x, y = small
    posterior = gp.condition(
        gp.matern52(),
        {"variance": 1.0, "lengthscale": jnp.ones(3)},
        bonas.dataset(x, y),
        noise=1e-4,
    )
    assert posterior.jitter == 0.0


def test_samples_have_the_posterior_moments(small):
    """100,000 draws; tolerances are five standard errors, v·√(2/100000) for a variance v."""
    x, y = small
    posterior = gp.condition(
        gp.matern52(),
        {"variance": 1.0, "lengthscale": jnp.ones(3)},
        bonas.dataset(x, y),
        noise=0.1,
    )
    new = jnp.asarray(x[:3]) + 0.2
    draws = np.asarray(gp.sample(jax.random.key(0), posterior, new, 100_000))
    mean, cov = gp.joint(posterior, new)
    spread = float(jnp.diagonal(cov).max())
    np.testing.assert_allclose(draws.mean(0), mean, atol=5 * np.sqrt(spread / 100_000))
    np.testing.assert_allclose(
        np.cov(draws.T), cov, atol=5 * spread * np.sqrt(2 / 100_000)
    )


@pytest.mark.slow
def test_prediction_has_finite_gradients_at_data_points(small):
    x, y = small
    for kernel in (gp.matern12(), gp.matern32(), gp.matern52(), gp.se()):
        posterior = gp.condition(
            kernel,
            {"variance": 1.0, "lengthscale": jnp.ones(3)},
            bonas.dataset(x, y),
            noise=0.0,
        )
        for part in (0, 1):
            assert jnp.isfinite(
                jax.grad(lambda p: gp.predict(posterior, p)[part].sum())(jnp.asarray(x))
            ).all()


def test_noise_may_differ_between_rows(small):
    x, y = small
    noise = np.linspace(0.01, 0.3, 13)
    params = {"variance": 1.0, "lengthscale": jnp.ones(3)}
    cov = np.asarray(
        gp.gram(gp.se(), params, jnp.asarray(x), jnp.asarray(x))
    ) + np.diag(noise)
    expected = scipy.stats.multivariate_normal(np.zeros(13), cov).logpdf(y)
    np.testing.assert_allclose(
        gp.log_evidence(gp.se(), params, bonas.dataset(x, y), noise=jnp.asarray(noise)),
        expected,
    )


def test_wrong_shapes_are_refused_in_the_callers_words(small):
    x, y = small
    posterior = gp.condition(
        gp.se(), {"variance": 1.0, "lengthscale": 1.0}, bonas.dataset(x, y), noise=0.1
    )
    with pytest.raises(
        ValueError, match=r"expected points of shape \(m, 3\); got \(2,\)"
    ):
        gp.predict(posterior, jnp.zeros(2))
    with pytest.raises(ValueError, match="a dataset with one output; got 2"):
        gp.condition(gp.se(), {}, bonas.dataset(x, np.stack([y, y], 1)), noise=0.1)
