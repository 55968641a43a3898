"""Type checkers accept the README, the site and the notebooks, and find mistakes in calls."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SITE = ROOT / "notebooks" / "site"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))
PAGES = [SITE / "index.md", *sorted((SITE / "concepts").glob("*.md"))]
# Each line after the first has one mistake.
MISTAKES = """\
from bonas import Float, Space, bayes, minimize, surrogates
surrogates.gp(infre="map")
surrogates.gp(infer="mapp")
bayes(Space(x=Float(0, 1)), failures="wurst")
bayes(Space(x=Float(0, 1)), output=("plain", "tail"))
minimize(lambda config: 0.0, Space(x=Float(0, 1)), direction="max")
"""
EXPECTED = [("mistakes", line) for line in range(2, 2 + MISTAKES.count("\n") - 1)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a module per page or notebook, of its code, and one with mistakes."""
    folder = tmp_path_factory.mktemp("examples")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    texts = {"readme": re.findall(r"```python\n(.*?)```", readme, re.S)}
    for page in PAGES:
        cells = re.findall(
            r"```\{code-cell\}[^\n]*\n(.*?)```", page.read_text(encoding="utf-8"), re.S
        )
        texts[f"page_{page.stem}"] = [
            re.sub(r"^:[^\n]*\n", "", cell, flags=re.M) for cell in cells
        ]
    for name, blocks in texts.items():
        assert blocks, name
        (folder / f"{name}.py").write_text("\n".join(blocks), encoding="utf-8")
    for path in NOTEBOOKS:  # a name of a module does not begin with a digit
        copy = folder / f"notebook_{path.name}"
        copy.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "mistakes.py").write_text(MISTAKES, encoding="utf-8")
    return folder


def run(*arguments, folder):
    return subprocess.run(
        [sys.executable, "-m", *map(str, arguments)],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )


def why_pyright_is_missing(folder):
    """Return why pyright cannot run, or an empty string if it can."""
    if importlib.util.find_spec("pyright") is None:
        return "pyright is not installed"
    done = run("pyright", "--version", folder=folder)
    return f"pyright does not run: {done.stderr[-500:]}" if done.returncode else ""


@pytest.mark.slow
def test_mypy_accepts_the_examples_and_finds_mistakes(folder):
    pytest.importorskip("mypy")
    settings = ("--config-file", ROOT / "pyproject.toml", "--follow-imports=silent")
    cache = ("--cache-dir", ROOT / ".mypy_cache")
    done = run("mypy", *settings, *cache, *sorted(folder.glob("*.py")), folder=folder)
    found = re.findall(r"^(?:.*/)?(\w+)\.py:(\d+): error", done.stdout, re.M)
    assert [(name, int(line)) for name, line in found] == EXPECTED, (
        done.stdout + done.stderr
    )


@pytest.mark.slow
def test_pyright_accepts_the_examples_and_finds_mistakes(folder):
    missing = why_pyright_is_missing(folder)
    if missing:
        expected = os.environ.get("CI") == "true" and shutil.which("node")
        (pytest.fail if expected else pytest.skip)(missing)
    settings = {"extraPaths": [str(ROOT)], "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    python = ("--pythonpath", sys.executable)
    done = run("pyright", "--outputjson", "-p", ".", *python, folder=folder)
    reports = json.loads(done.stdout)["generalDiagnostics"]
    errors = [each for each in reports if each["severity"] == "error"]
    found = [
        (Path(each["file"]).stem, each["range"]["start"]["line"] + 1) for each in errors
    ]
    assert sorted(found) == EXPECTED, errors
