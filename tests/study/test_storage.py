"""Queries for trials use an index, so that they stay fast as a study grows."""

import math

from study.objectives import SPACE, loss

import bonas
from bonas.search import random


def plans(study, call):
    """Return SQLite's query plan of every query of a call: {query: plan}."""
    said = []
    study._database._db.set_trace_callback(said.append)
    call()
    study._database._db.set_trace_callback(None)
    queries = {each for each in said if each.startswith(("SELECT", "UPDATE"))}
    return {
        query: [row[3] for row in study._database.rows(f"EXPLAIN QUERY PLAN {query}")]
        for query in queries
    }


def test_no_query_during_optimize_scans_all_trials(tmp_path):
    study = bonas.Study(tmp_path / "runs.db", SPACE, search=random(SPACE))
    study.enqueue({"a": 0.5, "b": 0.5})
    study.tell(study.ask(), math.nan)
    found = plans(
        study,
        lambda: study.optimize(loss, 4, progress=False, callback=lambda event: None),
    )
    # the query for waiting trials
    assert any("state = 'waiting'" in query for query in found)
    of_trials = {
        query: plan
        for query, plan in found.items()
        if any("SCAN" in step and "trial" in step for step in plan)
    }
    assert [
        query for query in of_trials if "ORDER BY value" not in query
    ] == []  # the best one is the first row of an index


def test_trials_are_counted_by_state(tmp_path):
    study = bonas.Study(tmp_path / "runs.db", SPACE, search=random(SPACE))
    for config in (
        {"a": 0.1, "b": 0.1},
        {"a": 0.2, "b": 0.2},
        {"a": 0.3, "b": 0.3},
        {"a": 0.4, "b": 0.4},
    ):
        study.enqueue(config)
    complete, failed, running = study.ask(), study.ask(), study.ask()
    study.tell(complete, 1.0)
    study.fail(failed, "too large")
    assert study._storage.counts() == {
        "waiting": 1,
        "running": 1,
        "complete": 1,
        "failed": 1,
        "pruned": 0,
    }
    study._storage.start(running.number, "first")
    assert repr(study).endswith("1 waiting, 1 running, 1 complete, 1 failed)")
