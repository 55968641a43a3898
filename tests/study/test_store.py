"""Trials in SQLite: what a study asks of its file takes no longer while it grows."""

import math

from study.objectives import SPACE, loss

import bonas
from bonas.search import random


def plans(study, call):
    """How SQLite finds what each query of a call is about: {query: plan}."""
    said = []
    study._file._db.set_trace_callback(said.append)
    call()
    study._file._db.set_trace_callback(None)
    queries = {each for each in said if each.startswith(("SELECT", "UPDATE"))}
    return {query: [row[3] for row in study._file.rows(f"EXPLAIN QUERY PLAN {query}")] for query in queries}


def test_no_query_of_a_search_reads_every_trial(tmp_path):
    study = bonas.Study(tmp_path / "runs.db", SPACE, search=random(SPACE))
    study.enqueue({"a": 0.5, "b": 0.5})
    study.tell(study.ask(), math.nan)
    found = plans(study, lambda: study.optimise(loss, 4, progress=False, watch=lambda event: None))
    assert any("state = 'queued'" in query for query in found)  # what waits, of which there is nothing
    of_trials = {query: plan for query, plan in found.items() if any("SCAN" in step and "trial" in step for step in plan)}
    assert [query for query in of_trials if "ORDER BY value" not in query] == []  # the best one is the first of an index


def test_the_trials_of_each_state_are_counted(tmp_path):
    study = bonas.Study(tmp_path / "runs.db", SPACE, search=random(SPACE))
    for config in ({"a": 0.1, "b": 0.1}, {"a": 0.2, "b": 0.2}, {"a": 0.3, "b": 0.3}, {"a": 0.4, "b": 0.4}):
        study.enqueue(config)
    told, failed, asked = study.ask(), study.ask(), study.ask()
    study.tell(told, 1.0)
    study.fail(failed, "too large")
    assert study._store.counts() == {"queued": 1, "asked": 1, "running": 0, "told": 1, "failed": 1}
    study._store.begin(asked.number, "first")
    assert repr(study).endswith("1 queued, 1 running, 1 told, 1 failed)")
