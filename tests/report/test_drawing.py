"""Scales, panels and SVG elements: known places and pixels, round ticks, escaped text."""

import math
import re

import pytest

import bonas
from bonas.report.drawing import (
    Panel,
    Scale,
    dots,
    format_value,
    label_text,
    path,
    shorten,
)
from bonas.report.figures import parameter_scale


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


def test_the_corners_of_a_panel():
    panel = Panel(Scale(0.0, 10.0), Scale(0.0, 1.0), 340, 200)
    (left, floor), (right, top) = panel.at(0.0, 0.0), panel.at(10.0, 1.0)
    assert 0 < left < right < 340
    assert 0 < top < floor < 200
    assert panel.at(5.0, 0.5) == pytest.approx(((left + right) / 2, (top + floor) / 2))


def test_a_stepped_line_is_level_up_to_the_next_point():
    assert 'd="M0.0 5.0H2.0V3.0"' in path([(0, 5), (2, 3)], "line", stepped=True)


def test_very_many_marks_are_one_path():
    many = dots([(i, i) for i in range(1000)], "dot", ["x"] * 1000)
    assert many.count("<") == 2
    assert many.count("h0") == 1000


NASTY = '<script>alert("1")</script>'


@pytest.mark.parametrize(
    "drawn",
    [
        label_text(0, 0, NASTY, title=NASTY + "!"),
        dots([(0, 0)], "dot", [NASTY]),
        path([(0, 0)], "line", title=NASTY),
        Panel(
            parameter_scale(bonas.Choice(NASTY)),
            Scale(0, 1),
            x_label=NASTY,
            y_label=NASTY,
        ).svg(NASTY),
    ],
)
def test_text_is_escaped(drawn):
    assert "<script" not in drawn
    assert "&lt;script" in drawn
    assert re.search(r"<title>", drawn)


def test_long_text_is_cut():
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("abcd", 4) == "abcd"
