"""Files that were written by bonas before schema version 3 open, keep everything, and continue."""

import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

import bonas
from bonas.study.database import StudyError
from bonas.study.migrations import MIGRATIONS
from bonas.tabular.job import read_job
from bonas.tabular.result import stored_result

DATA = Path(__file__).parent / "data"

# The next five trials of each file: number and point. Computed by the version that wrote the files,
# with `trial = study.ask(); study.tell(trial, 0.1 * i, cost=1.0)` for i = 0, ..., 4 on a copy, on a
# CPU for which OpenBLAS has the kernels "SkylakeX". They are equal bit for bit where OpenBLAS uses
# those kernels (OPENBLAS_CORETYPE=SkylakeX); with kernels for other CPUs, both versions deviate
# from them by about 1e-14.
NEXT_STUDY = {
    10: ["0x0.0p+0", "0x1.6f794a7e190d1p-2", "0x1.0000000000000p+0", "0x0.0p+0"],
    11: [
        "0x1.0000000000000p-2",
        "0x1.e12cade5673cdp-1",
        "0x0.0p+0",
        "0x1.675767f54042dp-2",
    ],
    12: ["0x1.0000000000000p-2", "0x1.3a9a314b9d019p-4", "0x0.0p+0", "0x0.0p+0"],
    13: [
        "0x1.0000000000000p-2",
        "0x1.626e9b8706888p-2",
        "0x0.0p+0",
        "0x1.95c01a39fbd69p-3",
    ],
    14: [
        "0x1.0000000000000p-2",
        "0x1.978c792c14b27p-3",
        "0x0.0p+0",
        "0x1.4ae00d1cfdeb4p-2",
    ],
}
# The first five columns (depth, three widths, activation) and the last three.
NEXT_TABULAR = {
    4: [
        *["0x0.0p+0"] * 5,
        "0x1.229fb5b1e19d0p-4",
        "0x1.c84722306bd52p-1",
        "0x1.72df1fb536d60p-4",
    ],
    5: [
        *["0x0.0p+0"] * 5,
        "0x1.62b93b4520f39p-5",
        "0x1.0000000000000p+0",
        "0x1.e36dd98823637p-4",
    ],
    6: [*["0x0.0p+0"] * 6, "0x1.0000000000000p+0", "0x0.0p+0"],
    7: [
        *["0x0.0p+0"] * 4,
        "0x1.0000000000000p+0",
        "0x1.be4ce638b1892p-1",
        "0x1.e869bc983360ep-1",
        "0x1.4aa96bd04c342p-1",
    ],
    8: [
        "0x1.0000000000000p+0",
        "0x0.0p+0",
        "0x1.a934f0979a372p-1",
        "0x1.ceaecfea8085ap-1",
        "0x0.0p+0",
        "0x1.586a41496257ap-1",
        "0x1.fb974cf59d108p-1",
        "0x1.a0537313edeaap-2",
    ],
}
# Deviations that kernels of BLAS for another CPU can cause.
ROUNDING = 1e-9


@pytest.fixture
def old_study(tmp_path):
    """A study that was maximized, with pruned, failed, running and waiting trials."""
    return Path(shutil.copy(DATA / "study_schema_2.db", tmp_path / "runs.db"))


@pytest.fixture
def old_tabular(tmp_path):
    """A finished study of `bonas search diabetes`, with its networks."""
    shutil.copy(DATA / "tabular_schema_2.network.npz", tmp_path / "runs.network.npz")
    return Path(shutil.copy(DATA / "tabular_schema_2.db", tmp_path / "runs.db"))


def raw(path, query):
    db = sqlite3.connect(path)
    try:
        return db.execute(query).fetchall()
    finally:
        db.close()


def ask_five(study):
    """Ask for five trials, tell their values, and return their points by number."""
    points = {}
    for i in range(5):
        trial = study.ask()
        points[trial.number] = trial.u.tolist()
        study.tell(trial, 0.1 * i, cost=1.0)
    return points


def assert_points(points, expected):
    """Check the numbers of trials, and their points up to rounding."""
    assert points.keys() == expected.keys()
    for number, row in expected.items():
        exact = [float.fromhex(each) for each in row]
        assert points[number] == pytest.approx(exact, rel=0.0, abs=ROUNDING)


def make_first_version(path):
    """Turn a file of schema version 2 into one of version 1."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("ALTER TABLE trial DROP COLUMN begun")
    db.execute("ALTER TABLE search DROP COLUMN used")
    db.execute("DELETE FROM setting WHERE name = 'id'")
    db.execute("PRAGMA user_version = 1")
    db.close()


def test_states_and_direction_are_converted(old_study):
    with bonas.Study(old_study) as study:
        states = [record.state for record in study.trials]
        assert states.count("pruned") == 5
        assert states.count("complete") == 4
        assert states[2] == "failed"
        assert states[10:] == ["running", "waiting"]
        assert study.direction == "maximize"
        assert study.best.number == 5
        assert study.best.info["pruned_step"] == 2
        assert "stopped" not in study.best.info


def test_trials_reports_and_notes_are_kept(old_study):
    columns = "number, config, u, value, cost, error, traceback, asked, begun, ended, told, worker"
    trials = raw(old_study, f"SELECT {columns} FROM trial ORDER BY number")
    reports = raw(old_study, "SELECT * FROM report ORDER BY trial, step")
    with bonas.Study(old_study) as study:
        assert study.notes == {"remark": {"a": 1}}
        assert study.about["extra"] == {"note": "made by the version before 0.1.0"}
        assert sum(len(record.reports) for record in study.trials) == len(reports) == 27
    columns = columns.replace(
        "asked, begun, ended, told", "asked_time, start_time, end_time, "
    )
    columns = columns.replace("end_time, ", "end_time, finish_order")
    assert raw(old_study, f"SELECT {columns} FROM trial ORDER BY number") == trials
    assert raw(old_study, "SELECT * FROM report ORDER BY trial, step") == reports
    assert raw(old_study, "PRAGMA foreign_key_check") == []


@pytest.mark.slow
def test_a_study_asks_for_the_same_next_points(old_study, tmp_path):
    first = Path(shutil.copy(old_study, tmp_path / "first.db"))
    make_first_version(first)
    with bonas.Study(old_study) as study:
        points = ask_five(study)
    assert_points(points, NEXT_STUDY)
    with bonas.Study(first) as study:
        assert ask_five(study) == points
        assert study.about["id"]


@pytest.mark.slow
def test_a_study_of_a_table_asks_for_the_same_next_points(old_tabular):
    with bonas.Study(old_tabular) as study:
        assert_points(ask_five(study), NEXT_TABULAR)


def test_a_finished_search_on_a_table_is_still_finished(old_tabular):
    with bonas.Study(old_tabular) as study:
        assert study.direction == "minimize"
        assert read_job(study).data == "diabetes"
        assert stored_result(study)["trials"] == {"complete": 4, "failed": 0}


@pytest.mark.parametrize(
    "note",
    ["7", "{}", '{"trials": {"complete": 4}, "best": {"in_words": "", "value": "x"}}'],
)
def test_a_note_that_is_not_the_result_of_a_search_is_named(old_tabular, note):
    with bonas.Study(old_tabular) as study:
        study.note("result", json.loads(note))
        with pytest.raises(
            StudyError, match="note 'result' is not the result"
        ) as error:
            stored_result(study)
    assert str(old_tabular) in str(error.value)


def test_networks_saved_by_an_older_version_predict_the_same(old_tabular):
    """The expected predictions were computed by the version that saved the networks."""
    names = ["age", "sex", "bmi", "bp", *(f"s{i}" for i in range(1, 7))]
    model = bonas.load(old_tabular)
    found = model.predict([dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.05)])
    assert found.value == pytest.approx([144.68200804, 210.08979075], rel=1e-9)
    assert found.std == pytest.approx([54.9275476, 55.76782718], rel=1e-8)


def test_a_read_only_file_of_an_old_version_can_be_read(old_study, monkeypatch):
    """It is migrated in memory; the file stays as it was."""
    before = old_study.read_bytes()
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with bonas.Study(old_study) as study:
        assert [record.state for record in study.trials].count("pruned") == 5
        with pytest.raises(bonas.study.StudyError, match="is read-only"):
            study.tell(10, 1.0)
    assert old_study.read_bytes() == before
    assert raw(old_study, "PRAGMA user_version") == [(2,)]


def test_a_migrated_file_is_of_the_current_version(old_study):
    bonas.Study(old_study).close()
    assert raw(old_study, "PRAGMA user_version") == [(len(MIGRATIONS),)]
