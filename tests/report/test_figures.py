"""Figures: the trials that they show and leave out."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import bonas
from bonas.report import figures, parallel_coordinates
from bonas.report.drawing import Panel, Scale
from bonas.report.figures import parameter_scale, value_scale
from bonas.report.study_facts import Subject
from bonas.report.text_sections import trial_table
from bonas.study import TrialRecord

SPACE = bonas.Space(
    rate=bonas.Float(1e-3, 1.0, log=True),
    kind=bonas.Choice("a", "b"),
    slope=bonas.Float(0.0, 1.0, when={"kind": "a"}),
)


def complete(number, value, reports=(), /, **config):
    return TrialRecord(
        number=number,
        state="complete",
        config=config,
        u=(),
        value=value,
        reports=tuple(reports),
    )


COMPLETE = [
    complete(0, 3.0, [(1, 5.0), (2, 4.0)], rate=0.1, kind="a", slope=0.5),
    complete(1, 2.0, [(1, 5.0)], rate=0.01, kind="b"),
    complete(3, 2.5, [(1, 4.0), (2, float("nan")), (3, 3.0)], rate=0.2, kind="b"),
]
FAILED = TrialRecord(
    number=2,
    state="failed",
    config={"rate": 1.0, "kind": "b"},
    u=(),
    error="out of memory",
)
SCALE = value_scale([record.value for record in COMPLETE], 1.0)


def wide(figure):
    return figure.split('<div class="narrow">')[0]


def heights(svg, kind):
    """Return the heights in pixels at which a line bends."""
    way = re.search(rf'class="{kind}" d="([^"]*)"', svg).group(1)
    return [float(y) for y in re.findall(r"(?:V|M[\d.]+ )([\d.]+)", way)]


@pytest.mark.parametrize(("sign", "falls"), [(1.0, True), (-1.0, False)])
def test_the_best_so_far_never_gets_worse(sign, falls):
    values = [3.0, 2.0, 2.5, 5.0, 1.0]
    records = [complete(i, value, rate=0.1, kind="b") for i, value in enumerate(values)]
    best = min(records, key=lambda record: sign * record.value)
    drawn = heights(
        figures.progress(records, best, value_scale(values, sign), sign), "line"
    )
    assert drawn == sorted(drawn, reverse=not falls)  # pixels go down the page
    assert len(set(drawn)) == (3 if falls else 2)  # 3, 2, 1; and 3, 5


def test_failed_trials_are_shown_with_their_reason():
    svg = figures.progress(
        [*COMPLETE[:2], FAILED, COMPLETE[2]], COMPLETE[1], SCALE, 1.0
    )
    assert "trial 2 failed: out of memory" in svg


def test_slices_leave_out_trials_without_the_parameter():
    rate, kind, slope = figures.slices(COMPLETE, COMPLETE[1], SPACE, SCALE)
    assert [svg.count('class="dot"') for svg in (rate, kind, slope)] == [3, 3, 1]
    assert [svg.count('class="best"') for svg in (rate, kind, slope)] == [1, 1, 0]


def test_every_trial_is_a_line_across_all_axes():
    svg = wide(parallel_coordinates.coordinates(COMPLETE, SPACE, SCALE, 1.0))
    ways = re.findall(r'class="(?:other|good|best-line)" d="([^"]*)"', svg)
    assert len(ways) == 3
    # four axes: three parameters and the value
    assert all(way.count("L") == 3 for way in ways)
    assert svg.count("best-line") == 1
    assert "inactive" in svg


def test_a_parameter_may_be_called_value():
    space = bonas.Space(value=bonas.Float(0.0, 1.0))
    records = [complete(i, 100.0 + i, value=0.5) for i in range(3)]
    svg = wide(
        parallel_coordinates.coordinates(
            records, space, value_scale([100.0, 101.0, 102.0], 1.0), 1.0
        )
    )
    first = {
        re.match(r"M([\d.]+ [\d.]+)", way).group(1)
        for way in re.findall(r'class="(?:good|best-line)" d="([^"]*)"', svg)
    }
    assert len(first) == 1  # all at 0.5


def test_learning_curves_are_of_trials_that_reported_twice():
    svg, n_shown, n_outside = figures.curves(COMPLETE, COMPLETE[1], 1.0)
    assert n_outside == 0
    assert n_shown == 2
    assert wide(svg).count('class="curve"') == 2
    assert "nan" not in svg


def test_values_of_learning_curves_outside_the_axis_are_counted():
    values = [*(1.0 + 0.01 * i for i in range(20)), 50.0]
    record = replace(
        complete(0, 1.0, rate=0.1, kind="b"), reports=tuple(enumerate(values))
    )
    assert figures.curves([record], record, 1.0)[1:] == (1, 1)


def test_without_reports_there_are_no_learning_curves():
    assert figures.curves([complete(0, 1.0, rate=0.1, kind="b")], COMPLETE[1], 1.0) == (
        "",
        0,
        0,
    )


def test_values_over_decades_have_a_logarithmic_axis():
    assert value_scale([1e-3, 0.5, 20.0], 1.0).log
    assert not value_scale([-1.0, 0.5, 20.0], 1.0).log


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_value_far_worse_than_the_others_does_not_hide_them(sign):
    values = [sign * value for value in (-1.0, 0.0, 0.5, 0.7, 1.0, 1e9)]
    scale = value_scale(values, sign)
    assert abs(scale.high - scale.low) < 10.0
    records = [complete(i, value, rate=0.1, kind="b") for i, value in enumerate(values)]
    assert figures.count_outside(records, scale) == 1
    assert all(scale.contains(value) for value in values[:4])


@pytest.mark.parametrize("values", [[2.0], [0.0, 0.0], [-3.0, -3.0]])
def test_equal_values_have_an_axis_around_them(values):
    scale = value_scale(values, 1.0)
    assert scale.low < values[0] < scale.high


def test_the_report_of_a_thousand_trials_is_small():
    """With 12 parameters and learning curves, all figures and the table take less than 2.5 MB."""
    rng = np.random.default_rng(0)
    space = bonas.Space(**{f"parameter_{i}": bonas.Float(0.0, 1.0) for i in range(12)})
    values = rng.uniform(0.0, 1.0, 1000)
    records = [
        complete(
            i,
            float(values[i]),
            [(s, float(values[i]) + 1 / s) for s in range(1, 200)],
            **dict(zip(space.names, row, strict=True)),
        )
        for i, row in enumerate(rng.uniform(0.0, 1.0, (1000, 12)).tolist())
    ]
    scale, best = value_scale(values.tolist(), 1.0), records[int(values.argmin())]
    drawn = [
        figures.progress(records, best, scale, 1.0),
        parallel_coordinates.coordinates(records, space, scale, 1.0),
    ]
    drawn += [
        *figures.slices(records, best, space, scale),
        figures.curves(records, best, 1.0)[0],
        trial_table(records, space, Subject()),
    ]
    assert sum(map(len, drawn)) < 2_500_000


# Axes


def test_the_axis_of_a_parameter_is_its_range():
    assert parameter_scale(bonas.Int(4, 64, log=True)) == Scale(
        4.0, 64.0, log=True, whole=True
    )
    assert parameter_scale(bonas.Choice("a", "b")).options == ("a", "b")


@pytest.mark.parametrize(
    "values",
    [
        [-1.7e308, 1e300, 1.7e308],
        [1.6e308, 1.7e308],
        [-1.7e308, -1.6e308],
        [5e-324, 1.0, 1.7e308],
        [-1e-320, 3e-324],
    ],
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.filterwarnings("error")
def test_the_axis_of_extreme_values_is_finite(values, sign):
    scale = value_scale(values, sign)
    assert math.isfinite(scale.high - scale.low)
    places = [scale.place(value) for value in values]
    assert places == sorted(places)
    assert 0.0 <= places[0] <= places[-1] <= 1.0
    assert scale.ticks(5)
    Panel(scale, scale).dots([(value, value) for value in values], "dot")
