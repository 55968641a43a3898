"""Every experiment runs, small, and leaves numbers behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "experiments"
PLAIN = "readme_example.py"  # takes no flags and writes nothing
PAGE = "results_page.py"  # no experiment: see test_results_page.py
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py") if path.name not in (PLAIN, PAGE))
each_script = pytest.mark.parametrize("script", SCRIPTS)


def run(script, *arguments, folder):
    """The script in a fresh process whose working folder is `folder`."""
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    command = [sys.executable, str(FOLDER / script), *arguments]
    return subprocess.run(command, cwd=folder, env=os.environ | one_thread, capture_output=True, text=True, timeout=600)


def refuse(constant):
    """NaN and Infinity, which Python would let pass."""
    raise ValueError(f"{constant} is not JSON")


def numbers(node):
    """All numbers in a tree of dicts and lists."""
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, list):
        return [number for part in node for number in numbers(part)]
    return [node] if isinstance(node, (int, float)) and not isinstance(node, bool) else []


def test_there_are_scripts():
    assert "twist_posteriors.py" in SCRIPTS


@pytest.mark.slow
@each_script
def test_a_smoke_run_leaves_numbers_where_it_is_told(script, tmp_path):
    done = run(script, "--smoke", "--out", str(tmp_path / "out"), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    records = list((tmp_path / "out").glob("*.json"))
    assert records, "no JSON was written"
    for record in records:
        assert numbers(json.loads(record.read_text(encoding="utf-8"), parse_constant=refuse))
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "something was written elsewhere"


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


@pytest.mark.slow
def test_the_example_of_the_readme_runs(tmp_path):
    done = run(PLAIN, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Best:" in done.stdout
