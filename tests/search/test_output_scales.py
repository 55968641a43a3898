import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import gp, surrogates
from bonas.search.output_scales import fit_scales, log, plain, resolve_scales, tails

VALUES = np.array([3.0, -1.0, 0.5, 400.0, 2.0, 1e4, 7.0])


def data(values=VALUES, capacity=9):
    x = np.random.default_rng(0).random((len(values), 2))
    return bonas.dataset(jnp.asarray(x), jnp.asarray(values), capacity=capacity)


@pytest.mark.slow
def test_tails_keep_the_lower_half_and_the_order():
    warped = np.asarray(tails(data())[0].y[:7, 0])
    low = np.median(VALUES) >= VALUES
    np.testing.assert_array_equal(warped[low], VALUES[low])
    np.testing.assert_array_equal(np.argsort(warped), np.argsort(VALUES))
    assert warped.max() < 50.0


@pytest.mark.parametrize("output", [plain, tails, log])
def test_log_slopes_are_those_of_the_scale(output):
    """Checked by central differences in each value, with the median and the minimum fixed."""
    values = np.abs(VALUES) + 1.0 if output is log else VALUES
    _, total = output(data(values))
    still = [
        np.argsort(values)[3],
        np.argmin(values),
    ]  # they set the scale, and their own slope is 1 for tails
    slopes = []
    for i in range(len(values)):
        if i in still and output is tails:
            continue
        slope = [
            np.asarray(output(data(values + step * (np.arange(7) == i)))[0].y[i, 0])
            for step in (1e-4, -1e-4)
        ]
        slopes.append((slope[0] - slope[1]) / 2e-4)
    np.testing.assert_allclose(
        total, np.log(slopes).sum(), rtol=1e-5, atol=1e-7
    )  # rounding of the differences: 1e4 · 1e-16 / 1e-4


@pytest.mark.typed
def test_what_is_behind_the_mask_changes_nothing():
    a = data()
    b = a._replace(y=jnp.where(a.mask, a.y, jnp.nan))
    for output in (tails, log):
        np.testing.assert_array_equal(
            jnp.where(a.mask, output(a)[0].y, 0), jnp.where(a.mask, output(b)[0].y, 0)
        )
        np.testing.assert_array_equal(output(a)[1], output(b)[1])


def test_equal_values_have_a_scale():
    warped, slopes = tails(data(np.full(5, 2.0)))
    np.testing.assert_array_equal(warped.y[:5, 0], 2.0)
    assert slopes == 0.0


def test_values_without_a_logarithm_are_masked():
    warped, _ = log(data())
    np.testing.assert_array_equal(warped.mask[:7, 0], VALUES > 0)


@pytest.mark.slow
@pytest.mark.parametrize(("exponential", "chosen"), [(False, 0), (True, 1)])
def test_the_scale_under_which_the_values_are_more_probable_is_taken(
    exponential, chosen
):
    """A straight slope, and its exponential over six orders of magnitude."""
    x = jnp.linspace(0.0, 1.0, 12)[:, None]
    slope = x[:, 0] if not exponential else jnp.exp(14.0 * x[:, 0])
    model = surrogates.gp()
    states = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), model.init(12, 1, 1))
    fit = jax.jit(
        lambda d, s: fit_scales(
            (plain, log), model, jax.random.key(0), data=d, states=s
        )
    )(bonas.dataset(x, slope + 1e-3), states)
    assert fit.scale == chosen


@pytest.mark.slow
def test_a_scale_without_evidence_is_not_chosen():
    """The values are too large for the last scale, on which the density is NaN."""
    model = surrogates.gp(gp.se(), steps=1)
    scales = (plain, lambda data: (tails(data)[0], jnp.nan))
    states = surrogates.replicate(model.init(9, 2), 2)
    fit = jax.jit(
        lambda d, s: fit_scales(scales, model, jax.random.key(0), data=d, states=s)
    )(data(), states)
    assert fit.scale == 0


def test_names_and_functions_and_several_of_them_are_understood():
    model = surrogates.gp()
    assert resolve_scales(None, model) == (plain, tails)
    assert resolve_scales("log", model) == (log,)
    assert resolve_scales((plain, "log"), model) == (plain, log)


def test_a_model_without_evidence_has_plain_values_and_no_choice():
    model = surrogates.ensemble()
    assert resolve_scales(None, model) == (plain,)
    with pytest.raises(ValueError, match="no evidence"):
        resolve_scales(("plain", "log"), model)


def test_unknown_scales_are_refused():
    with pytest.raises(ValueError, match="output must be one of plain, log, tails"):
        resolve_scales("logarithm", surrogates.gp())
