"""What the scripts share: flags and the settings they choose, records, and runs that are kept."""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
from script import flags, record
from script.runs import Runs


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["/a/b/wilton.py"], "python experiments/wilton.py"),
        (["wilton.py", "--out", "/tmp/x", "--seeds", "3"], "python experiments/wilton.py --seeds 3"),
        (["bench_nets.py", "--rivals=/a/python", "--core", "1", "--smoke"], "python experiments/bench_nets.py --smoke"),
        (["make_bnn_table.py", "--install", "--at-once", "1"], "python experiments/make_bnn_table.py"),
    ],
)
def test_the_command_names_no_place(given, kept):
    assert record.command(given) == kept


@pytest.mark.parametrize("text", ["0", "-3"])
def test_counts_start_at_one(text):
    with pytest.raises(argparse.ArgumentTypeError, match="at least 1"):
        flags.positive(text)


def test_a_record_refuses_what_is_no_number(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        record.write(tmp_path / "a.json", {"x": float("nan")})


@dataclass(frozen=True)
class Config:
    seeds: int = 20
    repeats: int = 7


@pytest.mark.parametrize(
    ("given", "counted", "config"),
    [
        ([], "seeds", Config()),
        (["--smoke"], "seeds", Config(2)),
        (["--seeds", "3"], "seeds", Config(3)),
        (["--smoke", "--seeds", "3"], "repeats", Config(2, 3)),
    ],
)
def test_flags_choose_the_settings(monkeypatch, given, counted, config):
    monkeypatch.setattr(sys, "argv", ["wilton.py", *given])
    parser = flags.parser(None, "wilton", smoke="small", seeds="how many")
    assert flags.read(parser, Config(), Config(2), counted=counted)[1] == config


def test_runs_are_found_again_with_the_settings_that_made_them(tmp_path):
    runs = Runs(tmp_path / "new" / "runs.jsonl", {"steps": 5})
    for seed in (2, 0):
        runs.keep({"seed": seed, "values": [1.0]})
    again = Runs(runs.path, {"steps": 5})
    assert [row["seed"] for row in again.of(3)] == [0, 2]
    assert again.missing(4) == [1, 3]
    assert Runs(runs.path, {"steps": 6}).missing(4) == [0, 1, 2, 3]


def test_lines_are_found_again_by_the_settings_that_made_them(tmp_path):
    file = tmp_path / "rows.jsonl"
    record.add(file, {"job": 1})  # of a script that kept none
    record.add(file, {"job": 2}, {"checkpoints": (10, 20)})
    record.add(file, {"job": 3}, {"checkpoints": (10, 30)})
    assert [row["job"] for row in record.lines(file)] == [1, 2, 3]
    assert [row["job"] for row in record.lines(file, {"checkpoints": (10, 30)})] == [3]
    assert record.lines(file, {"checkpoints": (10,)}) == []
