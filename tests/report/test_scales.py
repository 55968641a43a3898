"""Axes of figures: places of values, round ticks, short numbers."""

import math

import pytest

import bonas
from bonas.report.drawing import Panel
from bonas.report.scales import Scale, format_value, parameter_scale, value_scale


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.000123456, "0.0001235"),
        (1e-7, "1e−7"),
        (-2.5, "−2.5"),
        (12, "12"),
        (3.0, "3"),
        (10190.4, "10190"),
        (-123456.0, "−123456"),
        (2.5e6, "2.5e6"),
        (1234567.0, "1.235e6"),
        (math.nan, "nan"),
        (True, "True"),
        ("relu", "relu"),
    ],
)
def test_numbers_are_short(value, text):
    assert format_value(value) == text


@pytest.mark.parametrize(
    ("scale", "value", "fraction"),
    [
        (Scale(2.0, 4.0), 3.0, 0.5),
        (Scale(1e-4, 1.0, log=True), 1e-3, 0.25),
        (Scale(0.0, 1.0, options=("a", "b")), "b", 0.75),
        (Scale(2.0, 4.0), 9.0, 1.0),
        (Scale(2.0, 2.0), 2.0, 0.5),
        (Scale(1.0, 10.0, log=True), -1.0, 0.0),
    ],
)
def test_the_place_of_a_value_on_an_axis(scale, value, fraction):
    assert scale.place(value) == pytest.approx(fraction)


@pytest.mark.parametrize(
    ("scale", "labels"),
    [
        (Scale(0.0, 1.0), ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (Scale(1.0, 4.0, whole=True), ["1", "2", "3", "4"]),
        (Scale(1e-4, 1.0, log=True), ["0.0001", "0.001", "0.01", "0.1", "1"]),
        (Scale(4.0, 256.0, log=True), ["5", "10", "20", "50", "100", "200"]),
        (Scale(7.0, 7.0), ["7"]),
        (Scale(0.0, 1.0, options=("x", 3)), ["x", "3"]),
    ],
)
def test_ticks_are_round(scale, labels):
    assert [label for _, label in scale.ticks(5)] == labels


@pytest.mark.parametrize(
    "scale",
    [
        Scale(1e-30, 1e8, log=True),
        Scale(-1e9, 1e9),
        Scale(3.0, 3.0 + 1e-12),
        Scale(0.99, 1.01, log=True),
    ],
)
def test_ticks_are_few_and_inside_the_axis(scale):
    ticks = scale.ticks(4)
    assert 1 <= len(ticks) <= 8
    assert all(0.0 <= place <= 1.0 for place, _ in ticks)


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
