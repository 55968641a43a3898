"""Slices of a surrogate whose two hyperparameter samples are known functions."""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from plots.figure_contents import SPACE, edges, labels, line

import bonas
from bonas import plots
from bonas.gp import Prediction
from bonas.surrogates import Surrogate

AT = {"rate": 1e-2, "kind": "q", "depth": 2, "width": 15.0}


class TwoSamples(Surrogate):
    """A surrogate with two hyperparameter samples that are known functions of x."""

    def predict(self, state, x):
        mean = jnp.stack([x[:, 0], 3.0 * x[:, 0]])
        std = jnp.stack([0.3 + 0.0 * x[:, 0], 0.4 + x[:, 1]])
        return Prediction(mean, std)


SURROGATE = TwoSamples()


def score(x):
    return -((x[:, 0] - 0.7) ** 2)


def observed():
    """Return data on the slice through AT, off it, with width inactive, and failed."""
    rows = [
        AT,
        AT | {"rate": 1.0, "kind": "p"},
        {"rate": 0.1, "kind": "q", "depth": 1},
        AT | {"rate": 1e-3},
    ]
    data = bonas.dataset(
        jnp.stack([SPACE.encode(row) for row in rows]),
        jnp.array([1.0, 2.0, 3.0, 4.0]),
        capacity=6,
    )
    return data._replace(mask=data.mask.at[3].set(False))


@pytest.fixture
def panels():
    return plots.posterior_slice(
        SURROGATE,
        None,
        SPACE,
        parameter="rate",
        at=AT,
        data=observed(),
        objective=lambda key, u: 2.0 * u[0] - u[3],
        acquisition=score,
    )


@pytest.mark.slow
def test_hyperparameter_samples_are_mixed_by_the_law_of_total_variance(panels):
    """Means u and 3u, standard deviations 0.3 and 0.9 at "q": 2u, and u² + (0.3² + 0.9²) / 2."""
    drawn = line(panels[0], "mean ± 2 standard deviations")
    u = np.log10(drawn.get_xdata()) / 4 + 1
    np.testing.assert_allclose(drawn.get_ydata(), 2 * u, atol=1e-12)
    low, high = np.array(list(edges(panels[0]).values())).T
    np.testing.assert_allclose(high - low, 4 * np.sqrt(u**2 + 0.45), rtol=1e-9)
    np.testing.assert_allclose((high + low) / 2, 2 * u, atol=1e-9)


def test_a_logarithmic_parameter_has_its_own_values_on_a_logarithmic_axis(panels):
    x = line(panels[0], "mean ± 2 standard deviations").get_xdata()
    np.testing.assert_allclose(x[[0, len(x) // 2, -1]], [1e-4, 1e-2, 1.0], rtol=1e-12)
    assert panels[0].get_xscale() == panels[1].get_xscale() == "log"


def test_the_objective_is_drawn_with_the_other_parameters_held(panels):
    drawn = line(panels[0], "objective")
    u = np.log10(drawn.get_xdata()) / 4 + 1
    np.testing.assert_allclose(drawn.get_ydata(), 2 * u - 0.5, atol=1e-12)


@pytest.mark.parametrize(
    ("label", "points"),
    [("observed", [(1e-2, 1.0)]), ("observed off the slice", [(1.0, 2.0), (0.1, 3.0)])],
)
def test_observations_on_and_off_the_slice_are_distinguished(panels, label, points):
    np.testing.assert_allclose(line(panels[0], label).get_xydata(), points, rtol=1e-9)


def test_the_highest_acquisition_is_marked(panels):
    curve, mark = panels[1].lines
    u = np.log10(curve.get_xdata()) / 4 + 1
    np.testing.assert_allclose(curve.get_ydata(), -((u - 0.7) ** 2), atol=1e-12)
    np.testing.assert_allclose(
        mark.get_xydata(), [[10 ** (4 * (0.7 - 1)), 0.0]], atol=1e-9
    )


def test_a_slice_has_labels_and_a_legend(panels):
    assert [panels[0].get_ylabel(), panels[1].get_ylabel(), panels[1].get_xlabel()] == [
        "value",
        "acquisition",
        "rate",
    ]
    assert set(labels(panels[0])) == {
        "mean ± 2 standard deviations",
        "objective",
        "observed",
        "observed off the slice",
        "highest acquisition",
    }


@pytest.mark.typed
def test_standardized_values_are_drawn_in_their_own_units():
    (ax,) = plots.posterior_slice(
        SURROGATE, None, SPACE, parameter="rate", at=AT, scale=(jnp.asarray(10.0), 5.0)
    )
    drawn = line(ax, "mean ± 2 standard deviations")
    u = np.log10(drawn.get_xdata()) / 4 + 1
    np.testing.assert_allclose(drawn.get_ydata(), 10 + 5 * 2 * u, atol=1e-12)
    low, high = np.array(list(edges(ax).values())).T
    np.testing.assert_allclose(high - low, 5 * 4 * np.sqrt(u**2 + 0.45), rtol=1e-9)


@pytest.mark.typed
def test_options_have_names_and_no_line_between_them():
    (ax,) = plots.posterior_slice(SURROGATE, None, SPACE, parameter="kind", at=AT)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["p", "q", "r"]
    drawn = ax.containers[0].lines[0]
    np.testing.assert_array_equal(drawn.get_xdata(), [0, 1, 2])
    assert drawn.get_linestyle() == "None"


def test_by_default_a_slice_goes_through_the_best_observation():
    (ax,) = plots.posterior_slice(
        SURROGATE, None, SPACE, parameter="kind", data=observed()
    )
    # the best observation is AT
    np.testing.assert_allclose(
        ax.containers[0].lines[0].get_ydata(), 2 * 0.5, atol=1e-12
    )


def test_a_parameter_that_becomes_active_along_the_slice_is_in_its_middle():
    (ax,) = plots.posterior_slice(
        SURROGATE,
        None,
        SPACE,
        parameter="depth",
        at={"rate": 0.1, "kind": "p", "depth": 1},
        objective=lambda key, u: u[3],
    )
    np.testing.assert_allclose(
        line(ax, "objective").get_xydata(), [(1, 0.0), (2, 0.5), (3, 0.5)], atol=1e-12
    )


def test_very_low_scores_leave_the_others_readable():
    """Near an observation log EI falls below −1000: the panel shows the upper nine tenths."""
    shape = lambda x: jnp.where(  # noqa: E731
        jnp.abs(x[:, 0] - 0.5) < 0.04,
        -1000.0,
        jnp.where(x[:, 0] < 0.01, -jnp.inf, x[:, 0]),
    )
    _, below = plots.posterior_slice(
        SURROGATE, None, SPACE, parameter="rate", at=AT, acquisition=shape
    )
    low, high = below.get_ylim()
    assert -1.0 < low < 0.1
    assert 1.0 < high < 1.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "parameter must be one of rate, kind, depth, width; got None"),
        ({"parameter": "momentum"}, "got 'momentum'"),
        (
            {"parameter": "width", "at": {"rate": 0.1, "kind": "p", "depth": 1}},
            "parameter 'width' is inactive at",
        ),
        (
            {"parameter": "rate", "at": np.zeros((2, 4))},
            r"an array of shape \(4,\); got \(2, 4\)",
        ),
        (
            {"parameter": "kind", "acquisition": lambda x: x},
            r"scores of shape \(3,\) for points of shape \(3, 4\); got \(3, 4\)",
        ),
        (
            {"parameter": "kind", "acquisition": lambda x: jnp.nan * x[:, 0]},
            "no finite score",
        ),
    ],
)
def test_invalid_slices_are_refused_before_drawing(settings, message):
    with pytest.raises(ValueError, match=message):
        plots.posterior_slice(SURROGATE, None, SPACE, **settings)
    assert not plt.get_fignums()


def test_too_few_axes_are_refused():
    _, ax = plt.subplots()
    with pytest.raises(
        ValueError, match="this figure needs 2 axes, one per panel; got 1"
    ):
        plots.posterior_slice(
            SURROGATE, None, SPACE, parameter="rate", at=AT, acquisition=score, axes=ax
        )
