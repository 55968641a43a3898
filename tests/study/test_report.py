"""The report of studies with few trials or none, and text of users that must stay text; no model is fitted here."""

import re

import pytest

import bonas
from bonas.study.report import page, write_report

NASTY = "<script>alert(1)</script>"
SECTIONS = [
    "progress",
    "coordinates",
    "slices",
    "importance",
    "curves",
    "posterior",
    "calibration",
    "failures",
    "trials",
    "settings",
]
SPACE = bonas.Space(rate=bonas.Float(1e-3, 1.0, log=True), kind=bonas.Choice("a", "b"))


@pytest.fixture
def make(tmp_path):
    """make(values): a study that was told these at enqueued points; None is a failed trial."""
    opened = []

    def made(values, space=SPACE, config=lambda i: {"rate": 0.01 * (i + 1), "kind": "ab"[i % 2]}, **settings):
        study = bonas.Study(tmp_path / "some.db", space, **settings)
        opened.append(study)
        for i, value in enumerate(values):
            study.enqueue(config(i))
            trial = study.ask()
            study.fail(trial, "out of memory") if value is None else study.tell(trial, value)
        return study

    yield made
    for study in opened:
        study.close()


@pytest.mark.parametrize("values", [[], [None, None], [1.0], [1.0, None, 1.0], [3.0, 2.0, 4.0, 1.0]])
def test_every_section_is_there_however_few_trials_there_are(make, values):
    assert re.findall(r'<section id="(\w+)">', page(make(values))) == SECTIONS


def test_a_study_without_values_says_so(make):
    text = page(make([]))
    assert "There are no trials yet" in text
    assert "<figure" not in text


def test_too_few_values_for_a_model_are_said_to_be_too_few(make):
    assert page(make([3.0, 2.0, 4.0, 1.0])).count("A model is fitted from 5 values on") == 3


def test_the_best_trial_is_the_headline(make):
    text = page(make([3.0, 2.0, 4.0]))
    assert '<p class="value">2</p><p class="lead">the best value, trial 1</p>' in text
    assert "<dt>rate</dt><dd>0.02</dd>" in text
    assert "3 trials told" in text


def test_a_maximised_study_has_its_greatest_value_as_the_best(make):
    text = page(make([3.0, 2.0, 4.0], direction="maximise"))
    assert '<p class="value">4</p>' in text
    assert "Higher is better" in text


def test_failed_trials_stand_together_by_their_reason(make):
    text = page(make([None, 1.0, None]))
    assert "2 trials of 3 failed" in text
    assert "<b>2 trials</b> out of memory" in text
    assert "trial 0: rate 0.01, kind a" in text


def test_a_traceback_is_folded(make):
    study = make([])
    study.enqueue({"rate": 0.5, "kind": "a"})
    study.fail(study.ask(), "ValueError: no", traceback="Traceback:\n  line 3 & more")
    assert re.search(r"<details><summary>.*ValueError: no</summary><pre>Traceback:\n  line 3 &amp; more</pre>", page(study))


def test_no_text_of_a_user_is_markup(make):
    space = bonas.Space(**{NASTY: bonas.Choice(NASTY, "b"), "rate": bonas.Float(0.0, 1.0, when={NASTY: NASTY})})
    study = make(
        [1.0, 2.0, None],
        space=space,
        config=lambda i: {NASTY: NASTY, "rate": 0.1 * i} if i < 2 else {NASTY: "b"},
        extra={NASTY: NASTY},
    )
    study.note(NASTY, NASTY)
    study.note("result", {"best": {"number": 0, "in words": NASTY}, "test": {NASTY: {NASTY: NASTY}}})
    study.enqueue({NASTY: NASTY, "rate": 0.5})
    study.fail(study.ask(), NASTY, traceback=NASTY)
    text = page(study)
    assert text.count("<script>") == 1  # the page's own
    assert NASTY not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_nothing_is_fetched_from_anywhere(make):
    text = page(make([3.0, 2.0, None, 1.0]))
    assert not re.search(r'(?:src|href)\s*=\s*"(?!#|data:,")', text)
    assert not re.search(r"url\(|@import|https?://", text)
    assert "default-src 'none'" in text


def test_conditions_that_are_functions_are_asked_for(tmp_path):
    space = bonas.Space(depth=bonas.Int(1, 3), width=bonas.Int(1, 9, when=lambda p: p["depth"] >= 2))
    with bonas.Study(tmp_path / "f.db", space) as study:
        for i in range(6):
            study.enqueue({"depth": 2, "width": i + 1} if i % 2 else {"depth": 1})
            study.tell(study.ask(), float(i))
    with bonas.Study(tmp_path / "f.db") as alone:
        text = page(alone)
    assert text.count("Opened with its space") == 3
    assert "by a function" in text
    assert 'id="figure-slices"' in text


def test_scores_and_calibration_of_a_network_that_was_noted(make):
    study = make([1.0])
    scores = {"bonas": {"rmse": 54.21, "rmse_error": 3.0, "within_90": 0.87}, "linear": {"rmse": 55.0, "rmse_error": 3.1}}
    study.note("result", {"best": {"number": 0, "in words": "2 layers of 32"}, "validation": scores, "test": scores})
    text = page(study)
    assert "the best value, trial 0: 2 layers of 32" in text
    assert "54.21 ± 3</td>" in text
    assert "intervals that should hold 90% of the test values hold 87%" in text


def test_words_noted_for_another_trial_are_not_those_of_the_best(make):
    study = make([1.0, 0.5])
    study.note("result", {"best": {"number": 0, "in words": "2 layers of 32"}})
    assert '<p class="lead">the best value, trial 1</p>' in page(study)


@pytest.mark.parametrize("note", [5, "text", None, [], {"test": 3}, {"test": {}}, {"best": 1}])
def test_notes_of_any_form_are_no_error(make, note):
    study = make([1.0])
    study.note("result", note)
    assert "<h1>some</h1>" in page(study)


def test_reports_are_written_beside_the_study_by_default(make, tmp_path):
    study = make([1.0])
    assert write_report(study) == tmp_path / "some.html"
    other = write_report(study, str(tmp_path / "other.html"))
    assert other.read_text("utf-8") == (tmp_path / "some.html").read_text("utf-8")
    assert other.read_text("utf-8").startswith("<!DOCTYPE html>")


def test_a_folder_that_is_not_there_is_an_error(make, tmp_path):
    with pytest.raises(FileNotFoundError):
        write_report(make([1.0]), tmp_path / "no" / "report.html")
