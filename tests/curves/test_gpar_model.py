"""GPAR against a chain of GPs in NumPy, draws against moments, and refused arguments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import gp, infer
from bonas.curves import PartialCurves, gpar

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(9, 2))
Y = np.cumsum(RNG.normal(size=(9, 3)), axis=1) + 3.0
Y[6:, 2] = np.nan  # two checkpoints observed
Y[8, 1] = np.nan  # one checkpoint observed
AT = RNG.uniform(size=(4, 2))
OPTIONS = {
    "published": {},
    "everything": {
        "linear_inputs": True,
        "nonlinear": True,
        "markov": None,
        "tied": False,
    },
    "independent": {"markov": 0},
    "prior slope": {"prior_slope": 0.9, "matern": True},
    "replaced": {"replace": True, "nonlinear": True},
    "replaced and prior slope": {"replace": True, "prior_slope": 0.9},
    "imputed": {"impute": True, "markov": None},
    "imputed and prior slope": {"impute": True, "prior_slope": 0.9},
    "imputed and replaced": {"impute": True, "replace": True, "nonlinear": True},
}
# For models that impute: outputs observed without those before.
HOLES = Y.copy()
HOLES[4, 0] = HOLES[2, 1] = np.nan


def params_of(model, seed=0):
    """Draw parameters from the prior, so that no value is special."""
    keys = iter(jax.random.split(jax.random.key(seed), 20))
    drawn = jax.tree.map(
        lambda part: part.sample(next(keys)),
        model.prior(2, 3),
        is_leaf=lambda node: hasattr(node, "sample"),
    )
    return drawn | {"noise": jnp.array([0.01, 0.03, 0.02])}


def numpy_kernel(model, params, i, x, y):
    """Return the kernel of layer i between rows (x, y), in NumPy."""
    first = 0 if model.markov is None else max(i - model.markov, 0)
    of = {name: np.asarray(leaf) for name, leaf in params["kernel"].items()}
    length = of["lengthscale"] if model.tied else of["lengthscale"][i]

    def kernel(x, y, at, given):
        squared = (((x[:, None] - at[None]) / length) ** 2).sum(-1)
        r = np.sqrt(5.0 * squared)
        found = of["variance"][i] * (
            (1.0 + r + r**2 / 3.0) * np.exp(-r)
            if model.matern
            else np.exp(-0.5 * squared)
        )
        if model.linear_inputs:
            found += of["bias"][i] ** 2 + ((of["line"][i] ** 2) * x) @ at.T
        seen, other = y[:, first:i], given[:, first:i]
        if model.linear:
            found += ((of["slope"][i, first:i] ** 2) * seen) @ other.T
        if model.nonlinear and first < i:
            gaps = (seen[:, None] - other[None]) / of["reach"][i, first:i]
            found += of["bend"][i] * np.exp(-0.5 * (gaps**2).sum(-1))
        return found

    return kernel


def standardized(values, prior_slope):
    """Return curves in the units of the model, in NumPy."""
    level, scale = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    for i in range(1, 3) if prior_slope else ():
        both = values[:, i - 1 : i + 1]
        both = both[~np.isnan(both).any(axis=1)]
        then, now = both.mean(axis=0)
        before, after = ((both - both.mean(axis=0)) ** 2).sum(axis=0) + scale[
            i - 1
        ] ** 2
        scale[i] = scale[i - 1] * np.sqrt(after / before)
        level[i] = now - prior_slope * scale[i] / scale[i - 1] * (then - level[i - 1])
    return (values - level) / scale, level, scale


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))
def test_evidence_and_densities_match_a_chain_of_gps(options):
    model = gpar(**options)
    params, values = params_of(model), HOLES if model.impute else Y
    y, level, scale = standardized(values, model.prior_slope)
    evidence, densities, new = 0.0, [], (RNG.normal(size=(4, 3)) + 3.0 - level) / scale
    seen, shown = y.copy(), new.copy()  # as later layers see them
    for i in range(3):
        rows = ~np.isnan(y[:, i])
        kernel = numpy_kernel(model, params, i, X, y)
        noise = float(params["noise"][i])
        cov = kernel(X[rows], seen[rows], X[rows], seen[rows]) + noise * np.eye(
            rows.sum()
        )
        carried = [
            model.prior_slope * given[:, i - 1] if i else np.zeros(len(given))
            for given in (seen, shown)
        ]
        target = y[rows, i] - carried[0][rows]
        evidence -= 0.5 * (
            target @ np.linalg.solve(cov, target)
            + np.linalg.slogdet(2 * np.pi * cov)[1]
        )
        cross = kernel(AT, shown, X[rows], seen[rows])
        mean = carried[1] + cross @ np.linalg.solve(cov, target)
        latent = np.diag(
            kernel(AT, shown, AT, shown) - cross @ np.linalg.solve(cov, cross.T)
        )
        variance = latent + noise
        densities.append(
            -0.5 * ((new[:, i] - mean) ** 2 / variance + np.log(2 * np.pi * variance))
            - np.log(scale[i])
        )
        fitted = carried[0] + kernel(X, seen, X[rows], seen[rows]) @ np.linalg.solve(
            cov, target
        )
        seen[:, i] = np.where(
            rows & (not model.replace) | ~rows & (not model.impute), y[:, i], fitted
        )
        if model.replace:
            shown[:, i] = mean + latent / variance * (new[:, i] - mean)
    data = bonas.dataset(X, values, capacity=12)
    np.testing.assert_allclose(model.log_evidence(params, data), evidence, rtol=1e-9)
    found = model.log_density(model.condition(params, data), AT, level + scale * new)
    np.testing.assert_allclose(found, np.stack(densities, axis=1), rtol=1e-7, atol=1e-9)


@pytest.mark.slow
def test_at_curves_of_the_data_layers_see_the_inputs_they_were_conditioned_on():
    """With replaced data these are the fitted means, which use each output only once."""
    for model in (gpar(replace=True, markov=None), gpar(markov=None)):
        posterior = model.condition(params_of(model), bonas.dataset(X[:6], Y[:6]))
        layer = jax.vmap(lambda one: gp.predict(one, one.data.x))(posterior.layers)
        found = model.predict(
            posterior, X[:6], PartialCurves(jnp.asarray(Y[:6]), jnp.ones((6, 3), bool))
        )
        level, scale = (
            np.asarray(each)[None, :] for each in (posterior.level, posterior.scale)
        )
        np.testing.assert_allclose(found.mean, level + scale * layer.mean.T, rtol=1e-9)
        np.testing.assert_allclose(found.std, scale * layer.std.T, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("replace", [False, True])
def test_draws_pass_on_noise_unless_data_are_replaced(replace):
    """Compare with quadrature over the first output, mostly noise; five standard errors."""
    model = gpar(replace=replace)
    posterior = model.condition(
        params_of(model) | {"noise": jnp.array([2.0, 0.1, 0.1])}, bonas.dataset(X, Y)
    )
    first, second = (
        jax.tree.map(lambda leaf, i=i: leaf[i], posterior.layers) for i in range(2)
    )
    mean, std = gp.predict(first, np.pad(AT, ((0, 0), (0, 3))))
    spread = np.sqrt(np.asarray(std) ** 2 + (0.0 if replace else 2.0))
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    weights = weights[:, None] / weights.sum()
    inputs = [
        np.column_stack([AT, mean + spread * node, np.zeros((4, 2))]) for node in nodes
    ]
    each = jax.tree.map(
        lambda *leaves: np.stack(leaves), *[gp.predict(second, rows) for rows in inputs]
    )
    expected = (weights * each.mean).sum(axis=0)
    deviation = np.sqrt(
        (weights * (each.std**2 + each.mean**2)).sum(axis=0) - expected**2
    )
    drawn = np.asarray(
        (
            model.sample(jax.random.key(2), posterior, AT, 4000)[:, :, 1]
            - posterior.level[1]
        )
        / posterior.scale[1]
    )
    assert np.all(
        np.abs(drawn.mean(axis=0) - expected) < 5.0 * deviation / np.sqrt(4000)
    )
    np.testing.assert_allclose(drawn.std(axis=0), deviation, rtol=0.1)
    found = (model.predict(posterior, AT, draws=2048).std[:, 1]) / posterior.scale[1]
    np.testing.assert_allclose(found, deviation, rtol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("replace", [False, True])
def test_predictions_match_the_moments_of_joint_draws(replace):
    model = gpar(nonlinear=True, replace=replace)
    posterior = model.condition(params_of(model), bonas.dataset(X, Y))
    draws = model.sample(jax.random.key(1), posterior, AT, 4000)
    found = model.predict(posterior, AT, draws=1024)
    error = draws.std(axis=0) / np.sqrt(4000)
    assert np.all(
        np.abs(found.mean - draws.mean(axis=0)) < 5.0 * error + 0.05 * found.std
    )
    np.testing.assert_allclose(found.std, draws.std(axis=0), rtol=0.12)


@pytest.mark.slow
def test_predictions_continue_the_observed_beginning_of_a_curve():
    model = gpar()
    posterior = model.condition(params_of(model), bonas.dataset(X, Y))
    blind = model.predict(posterior, AT)
    two = jnp.array([[True, True, False]] * 4)
    expected, high, low = (
        PartialCurves(blind.mean + shift, two) for shift in (0.0, 2.0, -2.0)
    )
    same, up, down = (
        model.predict(posterior, AT, given) for given in (expected, high, low)
    )
    assert np.all(up.mean[:, 2] > same.mean[:, 2])
    assert np.all(same.mean[:, 2] > down.mean[:, 2])
    assert np.all(same.std[:, 2] < blind.std[:, 2])
    # the first output does not depend on the others
    np.testing.assert_allclose(up.mean[:, 0], blind.mean[:, 0])
    drawn = model.sample(jax.random.key(0), posterior, AT, 500, high)
    np.testing.assert_allclose(
        drawn[:, :, 2].mean(axis=0), up.mean[:, 2], atol=0.25 * float(up.std.max())
    )


@pytest.mark.slow
def test_masked_rows_change_nothing_and_new_data_compile_nothing():
    model = gpar(nonlinear=True, replace=True, impute=True)
    params = params_of(model)
    assert np.isfinite(model.log_evidence(params, bonas.dataset(X, Y)))
    np.testing.assert_allclose(
        model.log_evidence(params, bonas.dataset(X, Y, 20)),
        model.log_evidence(params, bonas.dataset(X, Y)),
        rtol=1e-10,
    )
    traces = []

    @jax.jit
    def evidence(data):
        traces.append(1)
        return model.log_evidence(params, data)

    for n in (3, 6, 9):
        evidence(bonas.dataset(X[:n], Y[:n], 20))
    assert len(traces) == 1


@pytest.mark.slow
def test_replaced_data_matter_with_noise_only():
    """With noise, fitted means differ from the data; without noise, they are equal."""
    data = bonas.dataset(X[:6], Y[:6])
    plain, replaced = gpar(), gpar(replace=True)
    noisy = params_of(plain)
    quiet = noisy | {"noise": jnp.full(3, 1e-9)}
    assert (
        abs(plain.log_evidence(noisy, data) - replaced.log_evidence(noisy, data)) > 1e-3
    )
    np.testing.assert_allclose(
        plain.log_evidence(quiet, data), replaced.log_evidence(quiet, data), rtol=1e-4
    )


@pytest.mark.slow
def test_a_fit_learns_to_predict_the_end_of_a_curve_from_its_beginning():
    """Ends are twice the beginnings, which are independent of x."""
    start = RNG.normal(size=30)
    y = np.stack([start, 2.0 * start + 0.01 * RNG.normal(size=30)], axis=1)
    x = RNG.uniform(size=(30, 1))
    scores = []
    for markov in (1, 0):
        model = gpar(markov=markov)
        data = bonas.dataset(x[:20], y[:20])
        target = model.hyperposterior(data)
        z, _ = infer.maximize(
            jax.random.key(0), target.maximizing, target.start, steps=60
        )
        params = target.constrain(jax.tree.map(lambda leaf: leaf[0], z))
        scores.append(
            float(
                model.log_density(model.condition(params, data), x[20:], y[20:])[
                    :, 1
                ].mean()
            )
        )
    assert scores[0] > scores[1] + 1.0


@pytest.mark.slow
def test_gradients_are_finite_for_every_option():
    for options in OPTIONS.values():
        model = gpar(**options)
        target = model.hyperposterior(
            bonas.dataset(X, HOLES if model.impute else Y, 12)
        )
        gradient = jax.grad(target.maximizing)(target.start)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


@pytest.mark.parametrize(
    "options", [{}, {"replace": True}, {"prior_slope": 0.9}], ids=str
)
def test_under_jit_data_with_holes_give_nan(options):
    model = gpar(**options)
    params, data = params_of(model), bonas.dataset(X, HOLES)

    @jax.jit
    def found(data):
        posterior = model.condition(params, data)
        return (
            model.log_evidence(params, data),
            model.predict(posterior, AT),
            model.sample(jax.random.key(0), posterior, AT, 3),
        )

    assert all(np.isnan(leaf).all() for leaf in jax.tree.leaves(found(data)))
    assert all(
        np.isfinite(leaf).all() for leaf in jax.tree.leaves(found(bonas.dataset(X, Y)))
    )


@pytest.mark.typed
def test_under_jit_an_observed_curve_with_a_gap_gives_nan():
    model = gpar()
    posterior = model.condition(params_of(model), bonas.dataset(X, Y))
    mask = jnp.array(
        [
            [True, False, False],
            [True, True, False],
            [False, True, False],
            [False, False, False],
        ]
    )
    found = jax.jit(
        lambda mask: model.predict(
            posterior, AT, PartialCurves(jnp.full((4, 3), 3.0), mask)
        ).mean[:, 2]
    )(mask)
    np.testing.assert_array_equal(np.isnan(found), [False, False, True, False])


@pytest.mark.typed
def test_invalid_arguments_are_refused():
    with pytest.raises(
        ValueError, match="row 2 has a gap: the observed outputs must come first"
    ):
        gpar().log_evidence(params_of(gpar()), bonas.dataset(X, HOLES))
    assert np.isfinite(
        gpar(impute=True).log_evidence(params_of(gpar()), bonas.dataset(X, HOLES))
    )
    with pytest.raises(ValueError, match="markov must be a number of previous outputs"):
        gpar(markov=-1)
    with pytest.raises(ValueError, match="needs markov=1"):
        gpar(markov=2, prior_slope=0.5)
    posterior = gpar().condition(params_of(gpar()), bonas.dataset(X, Y))
    with pytest.raises(ValueError, match=r"points of shape \(m, 2\)"):
        gpar().predict(posterior, AT[:, :1])
    with pytest.raises(ValueError, match="observed outputs of shape"):
        gpar().predict(
            posterior, AT, PartialCurves(jnp.zeros((4, 2)), jnp.zeros((4, 2), bool))
        )
    for draws in (0, 1, 7, -2):
        with pytest.raises(
            ValueError,
            match=f"draws must be an even number of at least 2, .*; got {draws}",
        ):
            gpar().predict(posterior, AT, draws=draws)
    gap = PartialCurves(jnp.zeros((4, 3)), jnp.zeros((4, 3), bool).at[2, 1].set(True))
    # imputing applies to data only
    for model in (gpar(), gpar(impute=True)):
        with pytest.raises(
            ValueError,
            match=r"row 2 has a gap: .*; got mask \[False, True, False\]",
        ):
            model.predict(posterior, AT, gap)
        with pytest.raises(ValueError, match="pass only the beginning of each curve"):
            model.sample(jax.random.key(0), posterior, AT, 3, gap)
