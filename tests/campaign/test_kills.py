"""Ten kills, two of each kind; `python -m campaign.kills --kills 1000` makes many of all kinds."""

import sqlite3
from contextlib import closing

import pytest
from campaign.kills import Campaign, check_end, check_snapshot, read_rows, run_campaign
from campaign.scenarios import SCENARIOS

KILLS = 10
# The others compile for longer.
NAMES = tuple(name for name, each in SCENARIOS.items() if not each.is_costly)


@pytest.mark.slow
def test_ten_kills_lose_no_value_and_change_no_point(tmp_path):
    assert run_campaign(tmp_path, KILLS, names=NAMES, most=2) == KILLS
    past = Campaign(tmp_path).past()
    assert {each["scenario"] for each in past} == set(NAMES)
    assert run_campaign(tmp_path, KILLS) == KILLS, "it goes on after its end"
    assert Campaign(tmp_path).past() == past


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """The folder of a complete study, its log and its rows."""
    name = "sobol, failing"
    folder = tmp_path_factory.mktemp("complete")
    lives = []
    Campaign(folder)._live(name, folder, lives, None)
    return name, folder, lives, read_rows(folder)


def edited(complete, tmp_path, statement):
    name, folder, lives, rows = complete
    with (
        closing(sqlite3.connect(folder / "runs.db")) as old,
        closing(sqlite3.connect(tmp_path / "runs.db", isolation_level=None)) as db,
    ):
        old.backup(db)
        db.execute(statement)
    return name, tmp_path, lives, rows


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM trial WHERE number = 23",
        "DELETE FROM trial WHERE number = 3",
        "UPDATE trial SET value = value + 1e-12 WHERE state = 'complete'",
        "UPDATE trial SET u = zeroblob(24) WHERE number = 5",
        "UPDATE trial SET state = 'waiting', finish_order = NULL WHERE number = 7",
        "UPDATE trial SET finish_order = 99 WHERE number = 7",
        "UPDATE trial SET error = 'another' WHERE state = 'failed'",
    ],
)
def test_the_checks_notice_a_lost_or_changed_value(complete, tmp_path, statement):
    check_end(*complete)
    with pytest.raises(AssertionError):
        check_end(*edited(complete, tmp_path, statement))


@pytest.mark.slow
def test_the_checks_notice_a_trial_that_changed_after_it_had_finished(
    complete, tmp_path
):
    before = check_snapshot(complete[1], {})
    assert check_snapshot(complete[1], before) == before
    statement = "UPDATE trial SET end_time = end_time + 1 WHERE number = 2"
    edited(complete, tmp_path, statement)
    with pytest.raises(AssertionError, match="trial 2 has changed"):
        check_snapshot(tmp_path, before)


@pytest.mark.slow
def test_the_checks_notice_a_value_that_was_recorded_twice(complete, tmp_path):
    name, folder, lives, rows = complete
    twice = tmp_path / "log"
    twice.write_text(lives[0].read_text().splitlines(keepends=True)[0])
    with pytest.raises(AssertionError, match="twice"):
        check_end(name, folder, [*lives, twice], rows)
