"""Wrong values in a study file give one line that names the file, the trial and the column."""

import sqlite3
from contextlib import closing

import pytest
from study.objectives import SPACE, loss

import bonas
from bonas.cli import main
from bonas.search import random
from bonas.study import StudyError

SEARCH = random(SPACE)


@pytest.fixture
def path(tmp_path):
    """A study with three finished trials, one that is running and one that waits."""
    file = tmp_path / "runs.db"
    with bonas.Study(file, SPACE, search=SEARCH) as study:
        study.optimize(loss, trials=3, progress=False)
        study.ask().report(4, 0.5)
        study.enqueue({"a": 0.5, "b": 0.5})
    return file


def edit(path, statement, *values):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute(statement, values)


def check_refused(path, capsys, *words):
    """Check the error of `Study.trials`, and the line and exit code of `bonas report`."""
    with pytest.raises(StudyError) as caught, bonas.Study(path) as study:
        study.trials  # noqa: B018
    assert main(["report", str(path)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == f"bonas report: {caught.value}\n"
    assert "\n" not in str(caught.value)
    for word in (str(path), *words):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("config", "{", "expected JSON; got '{'"),
        ("config", b"{}", "expected JSON; got b'{}'"),
        ("config", "[" * 100_000, "expected JSON; got '[[[["),
        ("config", "[1]", "expected a JSON object; got '[1]'"),
        ("config", '{"c": 1}', "unknown parameter 'c'"),
        ("config", '{"a": "x", "b": 0.1}', "parameter 'a'"),
        ("config", '{"a": [1], "b": 0.1}', "parameter 'a'"),
        ("config", '{"a": 0.1, "b": 7.0}', "parameter 'b'"),
        ("u", "text", "expected 2 numbers from 0 to 1, 8 bytes each; got 'text'"),
        ("u", b"1234567", "expected 2 numbers"),
        ("u", b"\0" * 24, "expected 2 numbers"),
        ("u", b"\xff" * 16, "expected 2 numbers"),
        ("value", "low", "expected a finite number; got 'low'"),
        ("value", None, "expected a finite number; got NULL"),
        ("value", float("inf"), "expected a finite number; got inf"),
        ("value", b"\1", r"expected a finite number; got b'\x01'"),
        ("cost", "x", "expected a finite number or NULL; got 'x'"),
        ("noise", "x", "expected a finite number or NULL; got 'x'"),
        ("asked_time", "now", "expected a Unix time or NULL; got 'now'"),
        ("end_time", 1e300, "expected a Unix time or NULL; got 1e+300"),
        ("start_time", b"", "expected a Unix time or NULL; got b''"),
        ("error", b"bad", "expected a string; got b'bad'"),
        ("worker", b"\n", "expected a string"),
        ("info", "no", "expected JSON; got 'no'"),
        ("info", "7", "expected a JSON object; got '7'"),
    ],
)
def test_a_wrong_value_of_a_trial_is_named(path, capsys, column, value, words):
    edit(path, f"UPDATE trial SET {column} = ? WHERE number = 1", value)
    check_refused(path, capsys, f"trial 1, column {column!r}: ", words)


@pytest.mark.parametrize(
    ("column", "number", "value", "words"),
    [
        ("asked_time", 3, "now", "trial 3, column 'asked_time': expected a Unix time"),
        ("asked_time", 3, -1.0, "trial 3, column 'asked_time': expected a Unix time"),
        ("asked_time", 3, float("inf"), "trial 3, column 'asked_time': expected a"),
        ("number", 3, 17, "has no trial 3"),
        ("finish_order", 1, "x", "column 'finish_order': expected an integer from"),
        ("finish_order", 1, 2**60, "column 'finish_order': expected an integer from"),
    ],
)
def test_tell_names_a_wrong_value_and_stores_nothing(
    path, column, number, value, words
):
    edit(path, "DELETE FROM report")
    edit(path, f"UPDATE trial SET {column} = ? WHERE number = ?", value, number)
    with bonas.Study(path, SPACE, search=SEARCH) as study:
        with pytest.raises(StudyError) as caught:
            study.tell(3, 1.0)
        assert words in str(caught.value)
        rows = study._database.rows("SELECT * FROM trial WHERE value = 1.0")
        assert rows == []


def test_a_second_result_is_refused_and_a_pruned_trial_keeps_its_info(path):
    with bonas.Study(path, SPACE, search=SEARCH) as study:
        before = study.trials[3]
        outcome = {"value": 0.5, "cost": None, "pruned_step": 4}
        assert study._storage.finish(3, **outcome)
        assert not study._storage.finish(3, **outcome)
        after = study.trials[3]
    assert after.state == "pruned"
    assert after.info == before.info | {"pruned_step": 4}
    assert after.cost == after.end_time - after.asked_time


def test_a_trial_that_has_no_value_may_not_have_one(path, capsys):
    edit(path, "UPDATE trial SET value = 1.0 WHERE number = 3")
    words = "expected NULL, because the trial is running; got 1.0"
    check_refused(path, capsys, "trial 3, column 'value': ", words)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [("value", "x", "a number or NULL; got 'x'"), ("step", 2**60, "an integer from")],
)
def test_a_wrong_report_is_named(path, capsys, column, value, words):
    edit(path, f"UPDATE report SET {column} = ?", value)
    check_refused(path, capsys, f"a report of trial 3, column {column!r}: ", words)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("space", '"x"', "expected parameters by name; got 'x'"),
        ("space", '{"a": 1}', "expected parameters by name"),
        ("space", "{}", "expected parameters by name"),
        ("space", '{"a": {"kind": "Flat"}}', "Flat"),
        ("space", '{"a": {"kind": "Float", "low": "x"}}', "setting 'space'"),
        ("space", "{", "expected JSON; got '{'"),
        ("seed", "1.5", "expected an integer; got 1.5"),
        ("seed", "99999999999999999999", "expected an integer; got 9999"),
        ("direction", '"up"', "expected minimize or maximize; got 'up'"),
        ("capacity", "1e9", "expected an integer from 1 to"),
        ("capacity", "1000000000", "expected an integer from 1 to"),
        ("versions", "{}", 'expected versions by name, and "precision"'),
        ("extra", "[]", "expected a JSON object; got []"),
        ("created", '"now"', "expected a Unix time; got 'now'"),
        ("id", "3", "expected a string; got 3"),
    ],
)
def test_a_wrong_setting_is_named(path, capsys, name, value, words):
    edit(path, "UPDATE setting SET value = ? WHERE name = ?", value, name)
    check_refused(path, capsys, f"setting {name!r}", words)


def test_a_missing_setting_is_named(path, capsys):
    edit(path, "DELETE FROM setting WHERE name = 'seed'")
    check_refused(path, capsys, "setting 'seed': expected an integer; got NULL")


def test_a_condition_with_an_unknown_comparison_is_refused(path, capsys):
    terms = '[["b", "~", 1.0], ["b", "<", 2.0]]'
    edit(
        path,
        "UPDATE setting SET value = replace(value, '\"log\": false}}', ?) "
        "WHERE name = 'space'",
        f'"log": false}}, "c": {{"kind": "Int", "low": 1, "high": 2, "log": false, '
        f'"when": {terms}}}}}',
    )
    check_refused(
        path,
        capsys,
        "setting 'space': a stored condition has an invalid term ['b', '~'",
    )


@pytest.mark.parametrize("column", ["u", "info", "end_time"])
def test_a_missing_column_is_named(path, capsys, column):
    edit(path, f"ALTER TABLE trial RENAME COLUMN {column} TO other")
    check_refused(path, capsys, f"has no column {column!r}")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW other AS SELECT * FROM trial",
        "CREATE TRIGGER t AFTER UPDATE ON trial BEGIN DELETE FROM trial; END",
    ],
)
def test_a_file_with_code_is_refused(path, capsys, statement):
    edit(path, statement)
    check_refused(path, capsys, "has views or triggers")


def refuses(path, call, words):
    """Check that a call on the study raises a StudyError that names the file."""
    with (
        pytest.raises(StudyError, match=words) as caught,
        bonas.Study(path, search=SEARCH) as study,
    ):
        call(study)
    assert str(path) in str(caught.value)


def test_a_study_without_its_search_row_says_so(path):
    edit(path, "DELETE FROM search")
    edit(path, "DELETE FROM trial WHERE state = 'waiting'")
    words = r"no row in its table 'search'; the file is damaged: restore a backup"
    refuses(path, bonas.Study.ask, words)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("asks", "x", "the search, column 'asks': expected an integer from 0"),
        ("asks", 1000, "does not fit the trials"),
        ("observed", 1000, "does not fit the trials"),
        ("capacity", 2**40, "does not fit the trials"),
        ("capacity", 0, "does not fit the trials"),
        ("points", 2**40, "does not fit the trials"),
        ("points", 0, "does not fit the trials"),
    ],
)
def test_a_wrong_position_of_the_search_is_named(path, column, value, words):
    edit(path, "DELETE FROM trial WHERE state = 'waiting'")
    edit(path, f"UPDATE search SET {column} = ?", value)
    refuses(path, bonas.Study.ask, words)


@pytest.mark.parametrize(
    ("column", "value"),
    [("lease", "x"), ("worker", "nobody"), ("worker", "host:12345678901234567890:x")],
)
def test_a_running_trial_of_no_process_is_named(path, column, value):
    edit(path, f"UPDATE trial SET {column} = ? WHERE number = 3", value)
    refuses(path, bonas.Study.ask, f"trial 3, column '{column}': expected")


def test_a_value_is_stored_beside_a_wrong_info(path):
    edit(path, "UPDATE trial SET info = 'x' WHERE number = 3")
    with bonas.Study(path, search=SEARCH) as study:
        study.tell(3, 1.0)
        (row,) = study._database.rows("SELECT * FROM trial WHERE value = 1.0")
    assert (row["number"], row["state"], row["info"]) == (3, "complete", "x")
    refuses(path, lambda study: study.trials, "trial 3, column 'info'")
    refuses(
        path, lambda study: study._storage.finish(3, value=1.0, cost=None), "'info'"
    )


def test_a_note_that_is_no_json_is_named(path):
    with bonas.Study(path) as study:
        study.note("remark", [1])
    edit(path, "UPDATE note SET value = 'no'")
    refuses(path, lambda study: study.notes, "note 'remark', column 'value'")
