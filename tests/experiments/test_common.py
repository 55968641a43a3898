"""Flags, records and saved runs of the experiments."""

import argparse
import sys
from dataclasses import dataclass

import pytest

from experiments import common
from experiments.common import SavedRuns


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        ([], ""),
        (["--out", "/tmp/x", "--seeds", "3"], " --seeds 3"),
        (["--rivals=/a/python", "--core", "1", "--smoke"], " --smoke"),
        (["--install", "--at-once", "1"], ""),
    ],
)
def test_the_recorded_command_has_no_machine_specific_flags(flags, kept):
    arguments = ["/a/experiments/wilton/search.py", *flags]
    assert common.command(arguments) == f"python -m experiments.wilton.search{kept}"


@pytest.mark.parametrize("text", ["0", "-3"])
def test_counts_start_at_one(text):
    with pytest.raises(argparse.ArgumentTypeError, match="at least 1"):
        common.positive_int(text)


def test_nan_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        common.write_json(tmp_path / "a.json", {"x": float("nan")})


@dataclass(frozen=True)
class Config:
    seeds: int = 20
    repeats: int = 7


@pytest.mark.parametrize(
    ("given", "seeds_field", "config"),
    [
        ([], "seeds", Config()),
        (["--smoke"], "seeds", Config(2)),
        (["--seeds", "3"], "seeds", Config(3)),
        (["--smoke", "--seeds", "3"], "repeats", Config(2, 3)),
    ],
)
def test_flags_choose_the_settings(monkeypatch, given, seeds_field, config):
    monkeypatch.setattr(sys, "argv", ["wilton.py", *given])
    parser = common.parser(None, "wilton_search", smoke="small", seeds="how many")
    assert (
        common.parse(parser, Config(), Config(2), seeds_field=seeds_field)[1] == config
    )


def test_saved_runs_are_loaded_for_the_same_settings(tmp_path):
    runs = SavedRuns(tmp_path / "new" / "runs.jsonl", {"steps": 5})
    for seed in (2, 0):
        runs.save({"seed": seed, "values": [1.0]})
    again = SavedRuns(runs.path, {"steps": 5})
    assert [row["seed"] for row in again.first(3)] == [0, 2]
    assert again.missing(4) == [1, 3]
    assert SavedRuns(runs.path, {"steps": 6}).missing(4) == [0, 1, 2, 3]


def test_lines_are_filtered_by_settings(tmp_path):
    file = tmp_path / "rows.jsonl"
    common.append_line(file, {"job": 1})  # without settings
    common.append_line(file, {"job": 2}, {"checkpoints": (10, 20)})
    common.append_line(file, {"job": 3}, {"checkpoints": (10, 30)})
    assert [row["job"] for row in common.read_lines(file)] == [1, 2, 3]
    assert [
        row["job"] for row in common.read_lines(file, {"checkpoints": (10, 30)})
    ] == [3]
    assert common.read_lines(file, {"checkpoints": (10,)}) == []
