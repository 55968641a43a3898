"""What is in the figures: lines, bands, marks and labels against numbers computed beside them."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import pytest

import bonas
from bonas import plots
from bonas.gp import Prediction
from bonas.search import History
from bonas.search.types import ask_info

mpl.use("Agg")
plt = mpl.pyplot

RNG = np.random.default_rng(0)
CURVES = {
    "ours": np.minimum.accumulate(RNG.exponential(1.0, (7, 5)), axis=1),
    "theirs": np.minimum.accumulate(RNG.exponential(2.0, (5, 4)), axis=1),
}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def edges(ax, i=0):
    """The lower and upper edge of the i-th band: {x: (low, high)}."""
    x, y = ax.collections[i].get_paths()[0].vertices.T
    return {place: (y[x == place].min(), y[x == place].max()) for place in np.unique(x)}


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def line(ax, label):
    return next(line for line in ax.lines if line.get_label() == label)


# Efficiency


@pytest.mark.parametrize("name", ["ours", "theirs"])
def test_the_line_is_the_median_at_every_evaluation(name):
    drawn = line(plots.efficiency(CURVES), name)
    np.testing.assert_array_equal(drawn.get_xdata(), np.arange(1, CURVES[name].shape[1] + 1))
    np.testing.assert_allclose(drawn.get_ydata(), np.median(CURVES[name], axis=0), rtol=1e-12)


@pytest.mark.parametrize(("i", "name"), list(enumerate(CURVES)))
def test_the_band_is_between_the_quartiles(i, name):
    low, high = np.percentile(CURVES[name], [25, 75], axis=0)
    drawn = edges(plots.efficiency(CURVES), i)
    np.testing.assert_allclose(list(drawn.values()), np.stack([low, high], axis=1), rtol=1e-12)


def test_the_other_band_is_one_standard_error_about_the_mean():
    ax, values = plots.efficiency(CURVES, spread="error"), CURVES["ours"]
    mean, error = values.mean(axis=0), np.sqrt(((values - values.mean(axis=0)) ** 2).sum(axis=0) / 6 / 7)
    np.testing.assert_allclose(line(ax, "ours").get_ydata(), mean, rtol=1e-12)
    np.testing.assert_allclose(list(edges(ax).values()), np.stack([mean - error, mean + error], axis=1), rtol=1e-12)


def test_regret_is_the_distance_to_the_optimum_on_a_logarithmic_scale():
    ax = plots.efficiency(CURVES, optimum=-2.0)
    np.testing.assert_allclose(line(ax, "ours").get_ydata(), np.median(CURVES["ours"], axis=0) + 2.0, rtol=1e-12)
    assert ax.get_yscale() == "log"


@pytest.mark.parametrize(
    ("optimum", "logarithmic", "scale"), [(None, None, "linear"), (None, True, "log"), (0.0, False, "linear")]
)
def test_the_scale_can_be_chosen(optimum, logarithmic, scale):
    assert plots.efficiency(CURVES, optimum=optimum, logarithmic=logarithmic).get_yscale() == scale


def test_a_curve_holds_its_value_until_the_next_evaluation_ends():
    """Two runs by hand: from second 2, when both have a value, means of (5, 9), (5, 4), (1, 4) and, held, (1, 3)."""
    values, times = np.array([[5.0, 1.0, 1.0], [9.0, 4.0, 3.0]]), np.array([[1.0, 4.0, 5.0], [2.0, 3.0, 8.0]])
    drawn = line(plots.efficiency({"a": values}, seconds={"a": times}, spread="error"), "a")
    np.testing.assert_array_equal(drawn.get_xdata(), [2.0, 3.0, 4.0, 5.0, 8.0])
    np.testing.assert_array_equal(drawn.get_ydata(), [7.0, 4.5, 2.5, 2.5, 2.0])
    assert drawn.get_drawstyle() == "steps-post"


def test_steps_without_a_value_in_every_run_are_left_out():
    values = np.array([[np.inf, 2.0, 1.0], [3.0, 3.0, 3.0], [4.0, 4.0, 4.0]])
    np.testing.assert_array_equal(line(plots.efficiency({"a": values}), "a").get_ydata(), [np.nan, 3.0, 3.0])


@pytest.mark.parametrize("many", [True, False])
def test_a_history_stands_for_its_best_values(many):
    best = CURVES["ours"] if many else CURVES["ours"][0]
    history = History(x=None, y=None, best=jnp.asarray(best), info=None, state=None)
    np.testing.assert_allclose(
        line(plots.efficiency({"a": history}), "a").get_ydata(), np.median(np.atleast_2d(best), axis=0), rtol=1e-12
    )


def test_efficiency_says_what_it_shows():
    ax = plots.efficiency(CURVES)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("evaluations", "best value so far")
    assert labels(ax) == ["ours", "theirs"]
    assert ax.get_legend().get_title().get_text() == "median and quartiles of 5 to 7 runs"


def test_efficiency_over_time_says_so():
    seconds = {name: np.cumsum(np.ones_like(values), axis=1) for name, values in CURVES.items()}
    ax = plots.efficiency(CURVES, seconds=seconds, optimum=-1.0, spread="error")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("seconds", "regret: best value so far − optimum")
    assert ax.get_legend().get_title().get_text() == "mean ± standard error of 5 to 7 runs"


def test_twelve_methods_look_different():
    ax = plots.efficiency({str(i): CURVES["ours"] + i for i in range(12)})
    assert len({(drawn.get_color(), drawn.get_linestyle()) for drawn in ax.lines}) == 12


def test_axes_that_are_given_are_drawn_into():
    _, ax = plt.subplots()
    assert plots.efficiency(CURVES, ax=ax) is ax
    assert plt.get_fignums() == [1]


@pytest.mark.parametrize(
    ("curves", "settings", "says"),
    [
        ({}, {}, "curves is empty"),
        ({"a": np.zeros(3)}, {}, r"curves\['a'\] must have shape \(seeds, steps\), a row a run; got \(3,\)"),
        ({"a": np.zeros((2, 0))}, {}, r"got \(2, 0\)"),
        ({"a": np.zeros((2, 3))}, {"spread": "range"}, "spread is one of quartiles, error; got 'range'"),
        ({"a": np.zeros((2, 3))}, {"seconds": {"b": np.zeros((2, 3))}}, "seconds has no entry for 'a'"),
        ({"a": np.zeros((2, 3))}, {"seconds": {"a": np.zeros((2, 2))}}, r"shaped as its curve, \(2, 3\); got \(2, 2\)"),
        ({"a": np.zeros((1, 3))}, {"seconds": {"a": [[1.0, 3.0, 2.0]]}}, "goes down along a run"),
    ],
)
def test_wrong_curves_are_refused_before_anything_is_drawn(curves, settings, says):
    with pytest.raises(ValueError, match=says):
        plots.efficiency(curves, **settings)
    assert not plt.get_fignums()


# Slices of a surrogate, here one whose two samples are known functions of the columns

SPACE = bonas.Space(
    rate=bonas.Float(1e-4, 1.0, log=True),
    kind=bonas.Choice("p", "q", "r"),
    depth=bonas.Int(1, 3),
    width=bonas.Float(10.0, 20.0, when={"depth": (">=", 2)}),
)
AT = {"rate": 1e-2, "kind": "q", "depth": 2, "width": 15.0}


def predict(state, x):
    mean, std = jnp.stack([x[:, 0], 3.0 * x[:, 0]]), jnp.stack([0.3 + 0.0 * x[:, 0], 0.4 + x[:, 1]])
    return Prediction(mean, std)


SURROGATE = SimpleNamespace(predict=predict)  # all that a slice asks of a surrogate


def score(x):
    return -((x[:, 0] - 0.7) ** 2)


def observed():
    """On the slice through AT, off it, where width is inactive, and failed."""
    rows = [AT, AT | {"rate": 1.0, "kind": "p"}, {"rate": 0.1, "kind": "q", "depth": 1}, AT | {"rate": 1e-3}]
    data = bonas.dataset(jnp.stack([SPACE.encode(row) for row in rows]), jnp.array([1.0, 2.0, 3.0, 4.0]), capacity=6)
    return data._replace(mask=data.mask.at[3].set(False))


@pytest.fixture
def panels():
    return plots.posterior_slice(
        SURROGATE,
        None,
        SPACE,
        name_of_parameter="rate",
        at=AT,
        data=observed(),
        objective=lambda key, u: 2.0 * u[0] - u[3],
        acquisition=score,
    )


def test_samples_are_mixed_by_the_law_of_total_variance(panels):
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
    ("label", "points"), [("observed", [(1e-2, 1.0)]), ("observed off the slice", [(1.0, 2.0), (0.1, 3.0)])]
)
def test_observations_are_told_apart_by_whether_they_are_on_the_slice(panels, label, points):
    np.testing.assert_allclose(line(panels[0], label).get_xydata(), points, rtol=1e-9)


def test_the_highest_acquisition_is_marked(panels):
    curve, mark = panels[1].lines
    u = np.log10(curve.get_xdata()) / 4 + 1
    np.testing.assert_allclose(curve.get_ydata(), -((u - 0.7) ** 2), atol=1e-12)
    np.testing.assert_allclose(mark.get_xydata(), [[10 ** (4 * (0.7 - 1)), 0.0]], atol=1e-9)


def test_a_slice_says_what_it_shows(panels):
    assert [panels[0].get_ylabel(), panels[1].get_ylabel(), panels[1].get_xlabel()] == ["value", "acquisition", "rate"]
    assert set(labels(panels[0])) == {
        "mean ± 2 standard deviations",
        "objective",
        "observed",
        "observed off the slice",
        "highest acquisition",
    }


def test_standardised_values_are_drawn_in_their_own_units():
    (ax,) = plots.posterior_slice(SURROGATE, None, SPACE, name_of_parameter="rate", at=AT, scale=(jnp.asarray(10.0), 5.0))
    drawn = line(ax, "mean ± 2 standard deviations")
    u = np.log10(drawn.get_xdata()) / 4 + 1
    np.testing.assert_allclose(drawn.get_ydata(), 10 + 5 * 2 * u, atol=1e-12)
    low, high = np.array(list(edges(ax).values())).T
    np.testing.assert_allclose(high - low, 5 * 4 * np.sqrt(u**2 + 0.45), rtol=1e-9)


def test_options_have_names_and_no_line_between_them():
    (ax,) = plots.posterior_slice(SURROGATE, None, SPACE, name_of_parameter="kind", at=AT)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["p", "q", "r"]
    drawn = ax.containers[0].lines[0]
    np.testing.assert_array_equal(drawn.get_xdata(), [0, 1, 2])
    assert drawn.get_linestyle() == "None"


def test_a_slice_goes_through_the_best_observation_unless_told_otherwise():
    (ax,) = plots.posterior_slice(SURROGATE, None, SPACE, name_of_parameter="kind", data=observed())
    np.testing.assert_allclose(ax.containers[0].lines[0].get_ydata(), 2 * 0.5, atol=1e-12)  # the best is AT


def test_a_parameter_that_becomes_active_along_the_slice_is_in_its_middle():
    (ax,) = plots.posterior_slice(
        SURROGATE,
        None,
        SPACE,
        name_of_parameter="depth",
        at={"rate": 0.1, "kind": "p", "depth": 1},
        objective=lambda key, u: u[3],
    )
    np.testing.assert_allclose(line(ax, "objective").get_xydata(), [(1, 0.0), (2, 0.5), (3, 0.5)], atol=1e-12)


def test_scores_without_bottom_leave_the_rest_readable():
    """Near a known value log EI falls to −1000 and below: the panel shows what the nine tenths above are like."""
    shape = lambda x: jnp.where(jnp.abs(x[:, 0] - 0.5) < 0.04, -1000.0, jnp.where(x[:, 0] < 0.01, -jnp.inf, x[:, 0]))  # noqa: E731
    _, below = plots.posterior_slice(SURROGATE, None, SPACE, name_of_parameter="rate", at=AT, acquisition=shape)
    low, high = below.get_ylim()
    assert -1.0 < low < 0.1
    assert 1.0 < high < 1.5


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "name_of_parameter is one of rate, kind, depth, width; got None"),
        ({"name_of_parameter": "momentum"}, "got 'momentum'"),
        ({"name_of_parameter": "width", "at": {"rate": 0.1, "kind": "p", "depth": 1}}, "parameter 'width' has no meaning at"),
        ({"name_of_parameter": "rate", "at": np.zeros((2, 4))}, r"one row of 4 columns; got shape \(2, 4\)"),
        ({"name_of_parameter": "kind", "acquisition": lambda x: x}, r"here \(3,\); got shape \(3, 4\)"),
        ({"name_of_parameter": "kind", "acquisition": lambda x: jnp.nan * x[:, 0]}, "no finite score"),
    ],
)
def test_wrong_slices_are_refused_before_anything_is_drawn(settings, says):
    with pytest.raises(ValueError, match=says):
        plots.posterior_slice(SURROGATE, None, SPACE, **settings)
    assert not plt.get_fignums()


def test_too_few_axes_are_refused():
    _, ax = plt.subplots()
    with pytest.raises(ValueError, match="this figure has 2 panels; axes has 1"):
        plots.posterior_slice(SURROGATE, None, SPACE, name_of_parameter="rate", at=AT, acquisition=score, axes=ax)


# Choices of a run

CONFIGS = [
    {"rate": 1e-4, "kind": "p", "depth": 1},
    {"rate": 1e-3, "kind": "q", "depth": 2, "width": 12.0},
    {"rate": 1e-2, "kind": "r", "depth": 3, "width": 14.0},
    {"rate": 1e-1, "kind": "p", "depth": 1},
    {"rate": 1.0, "kind": "q", "depth": 3, "width": 16.0},
]
VALUES = [3.0, np.nan, 2.0, 2.5, 1.0]  # the second failed; the first, third and last are better than all before


def history_of_a_run():
    x = jnp.stack([SPACE.encode(config) for config in CONFIGS])
    return History(x=x, y=jnp.array(VALUES), best=None, info=ask_info(x), state=None)


@pytest.fixture
def chosen():
    return plots.choices(history_of_a_run(), SPACE)


@pytest.mark.parametrize(
    ("i", "label", "points"),
    [
        (0, "evaluation", [(4, 1e-1)]),
        (0, "best so far", [(1, 1e-4), (3, 1e-2), (5, 1.0)]),
        (0, "failed", [(2, 1e-3)]),
        (1, "best so far", [(1, 0), (3, 2), (5, 1)]),
        (2, "best so far", [(1, 1), (3, 3), (5, 3)]),
        (3, "evaluation", []),
        (3, "best so far", [(3, 14.0), (5, 16.0)]),
        (3, "failed", [(2, 12.0)]),
    ],
)
def test_every_panel_shows_the_values_chosen_where_they_matter(chosen, i, label, points):
    np.testing.assert_allclose(line(chosen[i], label).get_xydata(), np.reshape(points, (-1, 2)), rtol=1e-9)


def test_choices_say_what_they_show(chosen):
    assert [ax.get_ylabel() for ax in chosen] == ["rate", "kind", "depth", "width"]
    assert chosen[-1].get_xlabel() == "evaluations"
    assert [tick.get_text() for tick in chosen[1].get_yticklabels()] == ["p", "q", "r"]
    assert labels(chosen[0]) == ["evaluation", "best so far", "failed"]


def test_panels_show_the_whole_range_of_a_parameter(chosen):
    assert chosen[0].get_yscale() == "log"
    low, high = chosen[3].get_ylim()
    assert low < 10.0 < 20.0 < high


def test_choices_of_many_runs_at_once_are_refused():
    many = jax.tree.map(lambda leaf: leaf[None], history_of_a_run())
    with pytest.raises(ValueError, match=r"that of one run, with x \(steps, 4\); its x has shape \(1, 5, 4\)"):
        plots.choices(many, SPACE)
