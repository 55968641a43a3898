"""The README's Python blocks run as they stand, one after the other, as a reader would paste them."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_readme_blocks_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the study's file goes
    blocks = runpy.run_path(str(ROOT / "experiments" / "readme_example.py"))["blocks"]()
    assert len(blocks) >= 2
    names = {}
    for block in blocks:
        exec(block, names)
    shown = capsys.readouterr().out
    assert "Best so far:" in shown
    assert "Best:" in shown
    assert "Believed best:" in shown


def test_the_example_has_twenty_lines_of_code():
    blocks = runpy.run_path(str(ROOT / "experiments" / "readme_example.py"))["blocks"]()
    assert 15 <= sum(bool(line.strip()) for line in blocks[0].splitlines()) <= 25
