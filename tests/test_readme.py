"""The README is short, and its Python blocks run in order, as a reader would paste them."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.S)


@pytest.mark.slow
def test_the_code_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the study's file and the figure go here
    names = {}
    for block in BLOCKS:
        exec(block, names)
    shown = capsys.readouterr().out
    assert "Best:" in shown
    assert "Best trial:" in shown
    assert (tmp_path / "branin.png").exists()


def test_it_has_at_most_800_words():
    assert len(README.split()) <= 800


def test_links_lead_to_files():
    root = Path(__file__).parent.parent
    links = re.findall(r"\]\((?!http)([^)#]+)", README)
    assert [link for link in links if not (root / link).exists()] == []
