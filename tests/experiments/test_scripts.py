"""Every experiment runs with --smoke and writes its numbers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "experiments").glob("*/*.py"))
SCRIPTS = [
    f"{path.parent.name}.{path.stem}"
    for path in FILES
    if "parser(" in path.read_text(encoding="utf-8")
]
each_script = pytest.mark.parametrize("script", SCRIPTS)


def run(script, *arguments, folder):
    """Run a script in a new process with the given working folder."""
    settings = {
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
    }
    return subprocess.run(
        [sys.executable, "-m", f"experiments.{script}", *arguments],
        cwd=folder,
        env=os.environ | settings | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )


def refuse(constant):
    """Refuse NaN and Infinity, which Python's parser accepts."""
    raise ValueError(f"{constant} is not JSON")


def numbers(node):
    """Return all numbers in a tree of dicts and lists."""
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, list):
        return [number for part in node for number in numbers(part)]
    return (
        [node] if isinstance(node, (int, float)) and not isinstance(node, bool) else []
    )


def test_there_are_scripts():
    assert "twist.posteriors" in SCRIPTS


@pytest.mark.slow
@each_script
def test_a_smoke_run_writes_numbers_to_the_output_folder(script, tmp_path):
    done = run(script, "--smoke", "--out", str(tmp_path / "out"), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    records = list((tmp_path / "out").glob("*.json"))
    assert records, "no JSON was written"
    for record in records:
        assert numbers(
            json.loads(record.read_text(encoding="utf-8"), parse_constant=refuse)
        )
    assert [path.name for path in tmp_path.iterdir()] == ["out"], (
        "something was written elsewhere"
    )


@pytest.mark.slow
@each_script
def test_help_names_the_flags(script, tmp_path):
    done = run(script, "--help", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(flag in done.stdout for flag in ("--smoke", "--seeds", "--out"))


@pytest.mark.slow
@each_script
def test_unknown_flags_are_refused(script, tmp_path):
    done = run(script, "--nonsense", folder=tmp_path)
    assert done.returncode == 2
    assert "--nonsense" in done.stderr
