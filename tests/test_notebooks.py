"""The notebooks run from top to bottom, without extra data or a network, and show their figures."""

import os
import re
from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
COLUMNS = 90  # as in notebooks/ruff.toml, which does not break strings
# Data that a reader may not have, and a backend that shows no figures.
UNSET = ("BONAS_DATA", "MPLBACKEND")


@pytest.mark.slow
@each
def test_a_notebook_runs_and_shows_its_figures(path, tmp_path):
    book = jupytext.read(path)
    environment = {
        name: value for name, value in os.environ.items() if name not in UNSET
    }
    place = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(book, timeout=600, resources=place).execute(env=environment)
    for cell in book.cells:
        if "plt.show()" in cell.source:
            assert any(
                "image/png" in output.get("data", {}) for output in cell.outputs
            ), cell.source


def test_notebooks_are_numbered_in_order():
    assert NOTEBOOKS
    assert [path.name[:3] for path in NOTEBOOKS] == [
        f"{i:02d}_" for i in range(1, len(NOTEBOOKS) + 1)
    ]


@each
def test_a_notebook_starts_with_what_the_reader_will_learn(path):
    first = jupytext.read(path).cells[0]
    assert first.cell_type == "markdown"
    assert re.match(r"# .+\n\nAfter this notebook you can ", first.source)


@each
def test_code_fits_the_width_of_the_site(path):
    code = [
        line
        for cell in jupytext.read(path).cells
        if cell.cell_type == "code"
        for line in cell.source.splitlines()
    ]
    assert [line for line in code if len(line) > COLUMNS] == []


@each
def test_links_between_notebooks_exist(path):
    for name in re.findall(r"\]\((\w+)\.ipynb\)", path.read_text(encoding="utf-8")):
        assert (FOLDER / f"{name}.py").exists(), name
