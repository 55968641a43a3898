"""Panels and SVG elements: known pixels, escaped text."""

import re

import pytest

import bonas
from bonas.report.drawing import Panel, dots, label_text, path, shorten
from bonas.report.scales import Scale, parameter_scale


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
