"""The page of studies with few trials or none, and the escaping of text from users."""

import re

import pytest

import bonas
from bonas.report import render_page, write_report

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
    """Return a function that makes a study with these values; None is a failed trial."""
    opened = []

    def made(
        values,
        space=SPACE,
        config=lambda i: {"rate": 0.01 * (i + 1), "kind": "ab"[i % 2]},
        **settings,
    ):
        study = bonas.Study(tmp_path / "some.db", space, **settings)
        opened.append(study)
        for i, value in enumerate(values):
            study.enqueue(config(i))
            trial = study.ask()
            study.fail(trial, "out of memory") if value is None else study.tell(
                trial, value
            )
        return study

    yield made
    for study in opened:
        study.close()


@pytest.mark.parametrize(
    "values", [[], [None, None], [1.0], [1.0, None, 1.0], [3.0, 2.0, 4.0, 1.0]]
)
def test_every_section_is_there_with_any_number_of_trials(make, values):
    assert re.findall(r'<section id="(\w+)">', render_page(make(values))) == SECTIONS


def test_a_study_without_values_has_no_figures(make):
    text = render_page(make([]))
    assert "There are no trials yet" in text
    assert "<figure" not in text


def test_too_few_values_for_a_model_are_reported(make):
    assert (
        render_page(make([3.0, 2.0, 4.0, 1.0])).count("A model needs at least 5 values")
        == 3
    )


def test_the_best_trial_is_the_headline(make):
    text = render_page(make([3.0, 2.0, 4.0]))
    assert '<p class="value">2</p><p class="lead">the best value, trial 1</p>' in text
    assert "<dt>rate</dt><dd>0.02</dd>" in text
    assert "3 trials complete" in text


def test_a_maximized_study_has_its_greatest_value_as_the_best(make):
    text = render_page(make([3.0, 2.0, 4.0], direction="maximize"))
    assert '<p class="value">4</p>' in text
    assert "Higher is better" in text


def test_failed_trials_are_grouped_by_reason(make):
    text = render_page(make([None, 1.0, None]))
    assert "2 trials of 3 failed" in text
    assert "<b>2 trials</b> out of memory" in text
    assert "trial 0: rate 0.01, kind a" in text


def test_a_traceback_is_folded(make):
    study = make([])
    study.enqueue({"rate": 0.5, "kind": "a"})
    study.fail(study.ask(), "ValueError: no", traceback="Traceback:\n  line 3 & more")
    assert re.search(
        r"<details><summary>.*ValueError: no</summary><pre>Traceback:\n  line 3 &amp; more</pre>",
        render_page(study),
    )


def test_text_from_users_is_escaped(make):
    space = bonas.Space(
        **{
            NASTY: bonas.Choice(NASTY, "b"),
            "rate": bonas.Float(0.0, 1.0, when={NASTY: NASTY}),
        }
    )
    study = make(
        [1.0, 2.0, None],
        space=space,
        config=lambda i: {NASTY: NASTY, "rate": 0.1 * i} if i < 2 else {NASTY: "b"},
        extra={NASTY: NASTY},
    )
    study.note(NASTY, NASTY)
    study.note(
        "result",
        {"best": {"number": 0, "in_words": NASTY}, "test": {NASTY: {NASTY: NASTY}}},
    )
    study.enqueue({NASTY: NASTY, "rate": 0.5})
    study.fail(study.ask(), NASTY, traceback=NASTY)
    text = render_page(study)
    assert text.count("<script>") == 1  # the page's own
    assert NASTY not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_the_page_makes_no_requests(make):
    text = render_page(make([3.0, 2.0, None, 1.0]))
    assert not re.search(r'(?:src|href)\s*=\s*"(?!#|data:,")', text)
    assert not re.search(r"url\(|@import|https?://", text)
    assert "default-src 'none'" in text


def test_a_study_with_unknown_conditions_asks_for_its_space(tmp_path):
    space = bonas.Space(
        depth=bonas.Int(1, 3), width=bonas.Int(1, 9, when=lambda p: p["depth"] >= 2)
    )
    with bonas.Study(tmp_path / "f.db", space) as study:
        for i in range(6):
            study.enqueue({"depth": 2, "width": i + 1} if i % 2 else {"depth": 1})
            study.tell(study.ask(), float(i))
    with bonas.Study(tmp_path / "f.db") as alone:
        text = render_page(alone)
    assert text.count("Open it with its space") == 3
    assert "by a function" in text
    assert 'id="figure-slices"' in text


def test_noted_scores_and_calibration_are_shown(make):
    study = make([1.0])
    scores = {
        "bonas": {"rmse": 54.21, "rmse_error": 3.0, "within_90": 0.87},
        "linear": {"rmse": 55.0, "rmse_error": 3.1},
    }
    study.note(
        "result",
        {
            "best": {"number": 0, "in_words": "2 layers of 32"},
            "validation": scores,
            "test": scores,
        },
    )
    text = render_page(study)
    assert "the best value, trial 0: 2 layers of 32" in text
    assert "54.21 ± 3</td>" in text
    assert "The 90% intervals contain 87% of the test values" in text


def test_models_have_the_same_names_as_in_the_terminal(make):
    study = make([1.0])
    row = {"rmse": 1.0, "r2": 0.5}
    scores = {
        "bonas": row | {"within_90": 0.871, "nats": 2.0},
        "linear": row,
        "mlp": row,
    }
    study.note("result", {"task": "regression", "test": scores})
    text = render_page(study)
    for words in ("found by bonas", "ridge regression", "default MLP, 2×64"):
        assert f"<tr><th>{words}</th>" in text
    for words in ("RMSE", "R²", "in 90% intervals", "negative log density"):
        assert f'<th class="n">{words}</th>' in text
    assert '<td class="n">87%</td>' in text


def test_noted_intervals_are_drawn(make):
    study = make([1.0])
    study.note("result", {"test": {"bonas": {"within_90": 0.87}}})
    assert 'id="figure-intervals"' not in render_page(study)
    study.note("intervals", {"rows": 30, "held": {"50": 0.4, "90": 0.87}})
    assert 'id="figure-intervals"' in render_page(study)


JOB = {"data": "/there/houses.csv", "target": None, "space": "mlp", "method": "bayes"}
TABLE = {
    "data": "/there/houses.csv",
    "target": "price & <b>",
    "task": "regression",
    "score": "rmse",
}


def test_a_search_on_a_table_names_its_values(make):
    study = make([3.0, 2.0], extra={"job": JOB})
    study.note("table", TABLE)
    text = render_page(study)
    assert "the best validation RMSE of price &amp; &lt;b&gt;, trial 1" in text
    assert "Validation RMSE of price &amp; &lt;b&gt; against each parameter" in text
    assert ">value<" not in text
    for name, value in (
        ("data set", "/there/houses.csv"),
        ("target", "price &amp; &lt;b&gt;"),
        ("task", "regression"),
    ):
        assert f"<tr><th>{name}</th><td>{value}</td></tr>" in text
    assert '<button type="button">seconds</button>' in text


def test_values_are_named_by_the_result_without_other_notes(make):
    study = make([3.0], extra={"job": JOB})
    study.note(
        "result", {"score": "log_loss", "target": "kind", "task": "classification"}
    )
    assert "the best validation log loss of kind, trial 0" in render_page(study)


def test_costs_that_may_not_be_seconds_are_explained(make):
    text = render_page(make([3.0]))
    assert '<button type="button">cost</button>' in text
    assert "Costs are seconds unless the objective returns others" in text


def test_trials_of_one_network_are_merged(make):
    """Ten parts of two networks: too few for a model, and one curve per network."""
    study = make([], extra={"job": JOB | {"method": "curves"}})
    for i in range(10):
        study.enqueue({"rate": (0.01, 0.1)[i % 2], "kind": "a"})
        trial = study.ask()
        trial.report(2 * (i // 2), 3.0 - 0.1 * i)
        trial.report(2 * (i // 2) + 1, 2.9 - 0.1 * i)
        study.tell(trial, 2.9 - 0.1 * i)
    text = render_page(study)
    assert text.count("A model needs at least 5 networks") == 3
    assert "Values that 2 networks reported while training" in text
    curves = text.partition('id="figure-curves"')[2].partition("</figure>")[0]
    assert (
        len(re.findall(r'<path class="(?:curve|best-line)"[^>]*><title>', curves))
        == 2 * 2
    )  # desktop and phone
    slices = text.partition('id="figure-slices"')[2].partition("</figure>")[0]
    assert (
        slices.count('<circle class="dot"') == 2 * 2 + 1
    )  # two networks in two panels, and the key
    assert re.search(
        r'<button type="button">value</button></th><th class="n"><button type="button">part</button>',  # noqa: E501
        text,
    )
    assert (
        '<td class="n">9</td><td>complete</td><td class="n" data-value="2.0">2</td><td class="n">5</td>'  # noqa: E501
        in text
    )


def test_inactive_parameters_have_the_same_label_at_any_width(make):
    space = bonas.Space(depth=bonas.Int(1, 2), width=bonas.Int(1, 9, when={"depth": 2}))
    text = render_page(
        make(
            [1.0, 2.0],
            space=space,
            config=lambda i: {"depth": 1} if i else {"depth": 2, "width": 3},
        )
    )
    drawn = text.partition('id="figure-coordinates"')[2].partition("</figure>")[0]
    assert drawn.count(">inactive</text>") == 2
    assert ">off<" not in drawn


def test_a_description_of_another_trial_is_not_used(make):
    study = make([1.0, 0.5])
    study.note("result", {"best": {"number": 0, "in_words": "2 layers of 32"}})
    assert '<p class="lead">the best value, trial 1</p>' in render_page(study)


@pytest.mark.parametrize(
    "note", [5, "text", None, [], {"test": 3}, {"test": {}}, {"best": 1}]
)
def test_notes_may_have_any_form(make, note):
    study = make([1.0], extra={"job": JOB})
    for name in ("result", "table", "intervals"):
        study.note(name, note)
    assert "<h1>some</h1>" in render_page(study)


def test_reports_are_written_beside_the_study_by_default(make, tmp_path):
    study = make([1.0])
    assert write_report(study) == tmp_path / "some.html"
    other = write_report(study, str(tmp_path / "other.html"))
    assert other.read_text("utf-8") == (tmp_path / "some.html").read_text("utf-8")
    assert other.read_text("utf-8").startswith("<!DOCTYPE html>")


def test_a_missing_folder_is_an_error(make, tmp_path):
    with pytest.raises(FileNotFoundError):
        write_report(make([1.0]), tmp_path / "no" / "report.html")


@pytest.mark.parametrize(
    "name",
    ["some.db", "some.network.npz", "data.csv", "page.html", "other.html", "link.html"],
)
def test_only_reports_are_overwritten(make, tmp_path, name):
    """Not the study under any name, its networks, data, another page or another study."""
    study = make([1.0])
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    (tmp_path / "page.html").write_text("<!DOCTYPE html><title>another page</title>")
    (tmp_path / "link.html").symlink_to(tmp_path / "some.db")
    bonas.Study(tmp_path / "other.html", SPACE).close()
    before = (tmp_path / name).read_bytes() if (tmp_path / name).exists() else None
    with pytest.raises(ValueError, match="is not a report and would be overwritten"):
        write_report(study, tmp_path / name)
    assert before is None or (tmp_path / name).read_bytes() == before
    # an earlier report is overwritten
    assert write_report(study) == write_report(study)


def test_a_study_with_the_name_of_its_report_is_not_overwritten(tmp_path):
    with (
        bonas.Study(tmp_path / "some.html", SPACE) as study,
        pytest.raises(ValueError, match="is not a report and would be overwritten"),
    ):
        write_report(study)
