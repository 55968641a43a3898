"""Figures of searches: lines, bands, markers and labels, compared with independent numbers."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from plots.figure_contents import SPACE, edges, labels, line

from bonas import Float, Space, Study, minimize, plots
from bonas.search import History, random
from bonas.search.search import ask_info

RNG = np.random.default_rng(0)
CURVES = {
    "ours": np.minimum.accumulate(RNG.exponential(1.0, (7, 5)), axis=1),
    "theirs": np.minimum.accumulate(RNG.exponential(2.0, (5, 4)), axis=1),
}


# efficiency


@pytest.mark.parametrize("name", ["ours", "theirs"])
def test_the_line_is_the_median_at_every_evaluation(name):
    drawn = line(plots.efficiency(CURVES), name)
    np.testing.assert_array_equal(
        drawn.get_xdata(), np.arange(1, CURVES[name].shape[1] + 1)
    )
    np.testing.assert_allclose(
        drawn.get_ydata(), np.median(CURVES[name], axis=0), rtol=1e-12
    )


@pytest.mark.parametrize(("i", "name"), list(enumerate(CURVES)))
def test_the_band_is_between_the_quartiles(i, name):
    low, high = np.percentile(CURVES[name], [25, 75], axis=0)
    drawn = edges(plots.efficiency(CURVES), i)
    np.testing.assert_allclose(
        list(drawn.values()), np.stack([low, high], axis=1), rtol=1e-12
    )


def test_with_spread_error_the_band_is_one_standard_error_about_the_mean():
    ax, values = plots.efficiency(CURVES, spread="error"), CURVES["ours"]
    mean, error = (
        values.mean(axis=0),
        np.sqrt(((values - values.mean(axis=0)) ** 2).sum(axis=0) / 6 / 7),
    )
    np.testing.assert_allclose(line(ax, "ours").get_ydata(), mean, rtol=1e-12)
    np.testing.assert_allclose(
        list(edges(ax).values()),
        np.stack([mean - error, mean + error], axis=1),
        rtol=1e-12,
    )


def test_regret_is_the_distance_to_the_optimum_on_a_logarithmic_scale():
    ax = plots.efficiency(CURVES, optimum=-2.0)
    np.testing.assert_allclose(
        line(ax, "ours").get_ydata(),
        np.median(CURVES["ours"], axis=0) + 2.0,
        rtol=1e-12,
    )
    assert ax.get_yscale() == "log"


@pytest.mark.parametrize(
    ("optimum", "logarithmic", "scale"),
    [(None, None, "linear"), (None, True, "log"), (0.0, False, "linear")],
)
def test_the_y_scale_follows_the_settings(optimum, logarithmic, scale):
    assert (
        plots.efficiency(CURVES, optimum=optimum, logarithmic=logarithmic).get_yscale()
        == scale
    )


def test_a_curve_holds_its_value_until_the_next_evaluation_ends():
    """Two runs: from second 2, when both have a value, means of (5, 9), (5, 4), (1, 4), (1, 3)."""
    values, times = (
        np.array([[5.0, 1.0, 1.0], [9.0, 4.0, 3.0]]),
        np.array([[1.0, 4.0, 5.0], [2.0, 3.0, 8.0]]),
    )
    drawn = line(
        plots.efficiency({"a": values}, seconds={"a": times}, spread="error"), "a"
    )
    np.testing.assert_array_equal(drawn.get_xdata(), [2.0, 3.0, 4.0, 5.0, 8.0])
    np.testing.assert_array_equal(drawn.get_ydata(), [7.0, 4.5, 2.5, 2.5, 2.0])
    assert drawn.get_drawstyle() == "steps-post"


def test_steps_without_a_value_in_every_run_are_left_out():
    values = np.array([[np.inf, 2.0, 1.0], [3.0, 3.0, 3.0], [4.0, 4.0, 4.0]])
    np.testing.assert_array_equal(
        line(plots.efficiency({"a": values}), "a").get_ydata(), [np.nan, 3.0, 3.0]
    )


@pytest.mark.parametrize("many", [True, False])
def test_a_history_is_plotted_by_its_best_values(many):
    best = CURVES["ours"] if many else CURVES["ours"][0]
    history = History(x=None, y=None, best=jnp.asarray(best), info=None, state=None)
    np.testing.assert_allclose(
        line(plots.efficiency({"a": history}), "a").get_ydata(),
        np.median(np.atleast_2d(best), axis=0),
        rtol=1e-12,
    )


def test_efficiency_has_axis_labels_and_a_legend():
    ax = plots.efficiency(CURVES)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("evaluations", "best value so far")
    assert labels(ax) == ["ours", "theirs"]
    assert (
        ax.get_legend().get_title().get_text() == "median and quartiles of 5 to 7 runs"
    )


def test_efficiency_over_seconds_has_its_own_labels():
    seconds = {
        name: np.cumsum(np.ones_like(values), axis=1) for name, values in CURVES.items()
    }
    ax = plots.efficiency(CURVES, seconds=seconds, optimum=-1.0, spread="error")
    assert (ax.get_xlabel(), ax.get_ylabel()) == (
        "seconds",
        "regret: best value so far − optimum",
    )
    assert (
        ax.get_legend().get_title().get_text() == "mean ± standard error of 5 to 7 runs"
    )


def test_twelve_methods_have_different_lines():
    ax = plots.efficiency({str(i): CURVES["ours"] + i for i in range(12)})
    assert len({(drawn.get_color(), drawn.get_linestyle()) for drawn in ax.lines}) == 12


@pytest.mark.typed
def test_given_axes_are_used():
    _, ax = plt.subplots()
    assert plots.efficiency(CURVES, ax=ax) is ax
    assert plt.get_fignums() == [1]


@pytest.mark.parametrize(
    ("curves", "settings", "message"),
    [
        ({}, {}, "curves of at least one method"),
        (
            {"a": np.zeros(3)},
            {},
            r"curves\['a'\] must have shape \(seeds, steps\), one row per run; got \(3,\)",
        ),
        ({"a": np.zeros((2, 0))}, {}, r"got \(2, 0\)"),
        (
            {"a": np.zeros((2, 3))},
            {"spread": "range"},
            "spread must be one of quartiles, error; got 'range'",
        ),
        (
            {"a": np.zeros((2, 3))},
            {"seconds": {"b": np.zeros((2, 3))}},
            "seconds has no entry for 'a'",
        ),
        (
            {"a": np.zeros((2, 3))},
            {"seconds": {"a": np.zeros((2, 2))}},
            r"must have the shape of its curve, \(2, 3\); got \(2, 2\)",
        ),
        (
            {"a": np.zeros((1, 3))},
            {"seconds": {"a": [[1.0, 3.0, 2.0]]}},
            "decreases within a run",
        ),
    ],
)
def test_invalid_curves_are_refused_before_drawing(curves, settings, message):
    with pytest.raises(ValueError, match=message):
        plots.efficiency(curves, **settings)
    assert not plt.get_fignums()


# Inference regret


def true_bowl(u):
    return 2.0 + (u[0] - 0.5) ** 2


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("many", [True, False])
def test_inference_regret_is_that_of_the_recommended_point(sign, many):
    rows = jnp.array([[[0.5], [0.1], [0.1]], [[0.4], [0.9], [0.7]]])
    rows = rows if many else rows[1]
    history = History(
        x=rows,
        y=jnp.full(rows.shape[:-1], -100.0 * sign),
        best=jnp.full(rows.shape[:-1], -100.0 * sign),  # far better, by noise
        info=None,
        state=None,
        sign=jnp.full(rows.shape[:-2], sign),
        record={"incumbent": rows[..., 0], "incumbent_x": rows},
    )
    ax = plots.efficiency(
        {"a": history},
        optimum=2.0 * sign,
        truth=lambda u: sign * true_bowl(u),
        spread="error",
    )
    expected = (np.array([[0.0, 0.4, 0.4], [0.1, 0.4, 0.2]]) ** 2)[0 if many else 1 :]
    drawn = line(ax, "a").get_ydata()
    np.testing.assert_allclose(drawn, expected.mean(axis=0), atol=1e-12)
    value = "true value of recommended point"
    label = f"{value} − optimum" if sign > 0.0 else f"optimum − {value}"
    assert ax.get_ylabel() == f"regret: {label}"


def test_the_true_value_is_drawn_without_an_optimum_and_from_the_first_success():
    rows = jnp.array([[jnp.nan], [0.1], [0.5]])
    record = {"incumbent": rows[:, 0], "incumbent_x": rows}
    history = History(rows, None, None, None, None, record=record)
    ax = plots.efficiency({"a": history}, truth=true_bowl)
    np.testing.assert_allclose(line(ax, "a").get_ydata(), [np.nan, 2.16, 2.0])
    assert ax.get_ylabel() == "true value of recommended point"


def noisy_history():
    """Two runs that maximize: recommended points, and best values that noise improves."""
    rows = jnp.array([[[0.5], [0.1], [0.1]], [[0.4], [0.9], [0.7]]])
    best = jnp.array([[1.0, 2.0, 3.0], [2.0, 2.0, 5.0]])
    record = {"incumbent": rows[..., 0], "incumbent_x": rows}
    sign = jnp.full(2, -1.0)
    return History(rows, best, best, None, None, sign=sign, record=record)


@pytest.mark.parametrize("timed", [False, True])
def test_best_observed_values_are_drawn_beside_the_true_ones(timed):
    history = noisy_history()
    times = {"a": np.tile([1.0, 2.0, 4.0], (2, 1))} if timed else None
    settings = {"optimum": 6.0, "truth": true_bowl, "spread": "error"}
    ax = plots.efficiency({"a": history}, observed=True, seconds=times, **settings)
    assert labels(ax) == ["a (recommended)", "a (best observed)"]
    true, observed = (line(ax, label) for label in labels(ax))
    alone = plots.efficiency({"a": history}, seconds=times, **settings)
    np.testing.assert_array_equal(true.get_xydata(), line(alone, "a").get_xydata())
    np.testing.assert_allclose(observed.get_ydata(), [4.5, 4.0, 2.0])
    np.testing.assert_array_equal(observed.get_xdata(), true.get_xdata())
    assert true.get_color() == observed.get_color()
    assert true.get_linestyle() != observed.get_linestyle()
    assert true.get_drawstyle() == observed.get_drawstyle()
    assert len(ax.collections) == 1
    assert ax.get_ylabel() == "regret: optimum − value"


def test_best_observed_values_beside_none_are_refused():
    with pytest.raises(ValueError, match="pass truth= too"):
        plots.efficiency(CURVES, observed=True)


@pytest.mark.parametrize(
    ("record", "truth", "message"),
    [
        (None, true_bowl, r"curves\['a'\]: this history has no recommended points"),
        (
            {"incumbent": jnp.zeros(3), "incumbent_x": jnp.zeros((3, 1))},
            lambda u: u,
            r"truth must map a point \(d,\) to a number; got values of shape \(1,\)",
        ),
    ],
)
def test_inference_regret_without_recommended_points_is_refused(record, truth, message):
    history = History(None, jnp.zeros(3), None, None, None, record=record)
    with pytest.raises(ValueError, match=message):
        plots.efficiency({"a": history}, truth=truth)
    with pytest.raises(ValueError, match="got an object of type ndarray"):
        plots.efficiency({"a": np.zeros((1, 3))}, truth=truth)


# choices

CONFIGS = [
    {"rate": 1e-4, "kind": "p", "depth": 1},
    {"rate": 1e-3, "kind": "q", "depth": 2, "width": 12.0},
    {"rate": 1e-2, "kind": "r", "depth": 3, "width": 14.0},
    {"rate": 1e-1, "kind": "p", "depth": 1},
    {"rate": 1.0, "kind": "q", "depth": 3, "width": 16.0},
]
# The second evaluation failed; the first, third and last improve on all before.
VALUES = [3.0, np.nan, 2.0, 2.5, 1.0]


def one_history():
    x = jnp.stack([SPACE.encode(config) for config in CONFIGS])
    return History(x=x, y=jnp.array(VALUES), best=None, info=ask_info(x), state=None)


@pytest.fixture
def chosen():
    return plots.choices(one_history(), SPACE)


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
def test_every_panel_shows_the_values_of_active_parameters(chosen, i, label, points):
    np.testing.assert_allclose(
        line(chosen[i], label).get_xydata(), np.reshape(points, (-1, 2)), rtol=1e-9
    )


def test_choices_have_labels_and_a_legend(chosen):
    assert [ax.get_ylabel() for ax in chosen] == ["rate", "kind", "depth", "width"]
    assert chosen[-1].get_xlabel() == "evaluations"
    assert [tick.get_text() for tick in chosen[1].get_yticklabels()] == ["p", "q", "r"]
    assert labels(chosen[0]) == ["evaluation", "best so far", "failed"]


def test_panels_show_the_whole_range_of_a_parameter(chosen):
    assert chosen[0].get_yscale() == "log"
    low, high = chosen[3].get_ylim()
    assert low < 10.0 < 20.0 < high


@pytest.mark.typed
def test_choices_of_several_runs_are_refused():
    many = jax.tree.map(lambda leaf: leaf[None], one_history())
    with pytest.raises(
        ValueError,
        match=r"one run, with x of shape \(steps, 4\); got x of shape \(1, 5, 4\)",
    ):
        plots.choices(many, SPACE)


# Results of minimize, and studies


def bumpy(config):
    if config["a"] > 0.9:
        raise ArithmeticError
    return (config["a"] - 0.3) ** 2


@pytest.fixture(scope="module")
def small():
    return Space(a=Float(0.0, 1.0))


@pytest.fixture(scope="module")
def results(small):
    found = [
        minimize(
            bumpy,
            small,
            trials=6,
            seed=seed,
            search=random(small),
            catch=(ArithmeticError,),
            progress=False,
        )
        for seed in range(3)
    ]
    assert any(each.error for result in found for each in result.evaluations)
    return found


def running_best(values):
    best, curve = np.inf, []
    for value in values:
        best = min(best, value) if np.isfinite(value) else best
        curve.append(best)
    return curve


def test_results_of_minimize_are_plotted_by_their_running_best(results):
    curves = np.array(
        [
            running_best([each.value for each in result.evaluations])
            for result in results
        ]
    )
    drawn = line(plots.efficiency({"random": results}), "random")
    np.testing.assert_allclose(
        drawn.get_ydata(),
        np.where(np.isfinite(curves).all(axis=0), np.median(curves, axis=0), np.nan),
    )


def test_one_result_is_one_run(results):
    drawn = line(plots.efficiency({"one": results[0]}), "one")
    np.testing.assert_allclose(
        drawn.get_ydata(),
        np.array(running_best([each.value for each in results[0].evaluations])),
    )


def test_results_of_unequal_length_are_refused(small, results):
    short = minimize(
        bumpy,
        small,
        trials=2,
        search=random(small),
        catch=(ArithmeticError,),
        progress=False,
    )
    with pytest.raises(ValueError, match="same number of evaluations; got 2 to 6"):
        plots.efficiency({"random": [*results, short]})


def test_choices_of_a_result_are_its_configurations(small, results):
    (panel,) = plots.choices(results[0], small)
    drawn = sorted(x for each in panel.get_lines() for x in each.get_ydata())
    np.testing.assert_allclose(
        drawn, sorted(each.config["a"] for each in results[0].evaluations), atol=1e-12
    )


@pytest.mark.parametrize(
    ("direction", "better"), [("minimize", min), ("maximize", max)]
)
def test_a_study_is_drawn_in_its_own_direction(tmp_path, small, direction, better):
    values = [0.5, 0.2, 0.9, 0.1]
    with Study(
        tmp_path / "runs.db", small, search=random(small), direction=direction
    ) as study:
        for value in values:
            study.tell(study.ask(), value)
        study.fail(study.ask(), "out of memory")
        drawn = line(plots.efficiency({"study": study}), "study").get_ydata()
        rows = [trial.config["a"] for trial in study.trials]
        (panel,) = plots.choices(study, small)
    np.testing.assert_allclose(
        drawn, [better(values[: i + 1]) for i in range(4)] + [better(values)]
    )
    best = next(each for each in panel.get_lines() if each.get_label() == "best so far")
    first_best = [i for i in range(4) if values[i] == better(values[: i + 1])]
    np.testing.assert_allclose(
        best.get_ydata(), [rows[i] for i in first_best], atol=1e-12
    )


def test_choices_of_another_type_are_refused(small):
    with pytest.raises(
        ValueError,
        match="a History, a Study, or the result of minimize; got an object of type list",
    ):
        plots.choices([1.0], small)
