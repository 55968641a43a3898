"""What the scripts share: the command that a record names, and numbers that must be at least 1."""

import argparse
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
from script import flags, record


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["/a/b/wilton.py"], "python experiments/wilton.py"),
        (["wilton.py", "--out", "/tmp/x", "--seeds", "3"], "python experiments/wilton.py --seeds 3"),
        (["bench_nets.py", "--rivals=/a/python", "--core", "1", "--smoke"], "python experiments/bench_nets.py --smoke"),
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
