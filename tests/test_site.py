"""Check that the site documents names under paths that exist, and that its pages run."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "notebooks" / "site"))
from extension import api, docstrings, pages

SITE = Path(pages.__file__).parents[1]
# pages whose code is executed
RUN = [SITE / "index.md", *sorted((SITE / "concepts").glob("*.md"))]
NAMES = [
    name
    for package in api.packages()
    for module in api.modules_of(package)
    for name in api.names_of(module)
]


@pytest.mark.slow
def test_documented_names_are_reachable_after_importing_bonas():
    code = """
import json, sys
from operator import attrgetter
import bonas
missing = []
for path in json.load(sys.stdin):
    try:
        attrgetter(path.removeprefix("bonas."))(bonas)
    except AttributeError as problem:
        missing.append(f"{path}: {problem}")
print(json.dumps(missing))
"""
    offered = json.dumps([name.shown for name in NAMES if not name.inside])
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=offered,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


def test_no_two_names_have_one_path():
    assert [
        path
        for path, times in Counter(name.shown for name in NAMES).items()
        if times > 1
    ] == []


@pytest.mark.parametrize(
    ("module", "name", "shown", "inside"),
    [
        ("bonas.search.bayesian", "bayes", "bonas.bayes", False),
        ("bonas.gp.exact", "condition", "bonas.gp.condition", False),
        ("bonas.linalg", "factorize", "bonas.linalg.factorize", False),
        ("bonas.nets.bnn_hmc", "sample", "bonas.nets.bnn_hmc.sample", False),
        ("bonas.problems.functions", "Problem", "bonas.problems.Problem", False),
    ],
)
def test_names_are_documented_under_their_shortest_path(module, name, shown, inside):
    found = next(each for each in NAMES if (each.module, each.name) == (module, name))
    assert (found.shown, found.inside) == (shown, inside)


class Sized:
    """A class to document."""

    step: float = max  # a field whose default is a function

    def size(self):
        """Return the size."""

    def silent(self):
        pass


class Larger(Sized):
    """A subclass that overrides a method."""

    def size(self):
        return 2


@pytest.mark.parametrize(
    ("owner", "name", "shown", "warns"),
    [
        (Sized, "size", True, False),
        (Sized, "step", False, False),
        (Sized, "silent", False, True),
        (Larger, "size", False, False),
    ],
)
def test_a_method_without_a_docstring_is_a_warning(owner, name, shown, warns, caplog):
    skipped = pages.skip(None, "class", name, getattr(owner, name), False, None)
    assert (skipped is None) == shown
    assert ("has no docstring" in caplog.text) == warns


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_code_on_a_page_runs_when_the_site_is_built(page):
    text = page.read_text(encoding="utf-8")
    assert text.startswith("---\nfile_format: mystnb\n")
    assert "```{code-cell}" in text
    assert "```python" not in text


def test_every_concept_is_on_the_front_page():
    front = RUN[0].read_text(encoding="utf-8")
    assert [
        page.stem
        for page in RUN[1:]
        if f"(concepts/{page.name})" not in front
        or f"\nconcepts/{page.stem}\n" not in front
    ] == []


@pytest.mark.parametrize("between", ["", "\n"], ids=["at once", "after an empty line"])
def test_a_list_in_a_docstring_is_a_list(between):
    text = (
        f"Two ways:\n{between}- one, which\n  is long;\n- another.\n{between}And so on."
    )
    made = docstrings.to_rst(text.splitlines(), (), lambda code: None)
    assert [line for line in made if line] == [
        "Two ways:",
        "- one, which",
        "  is long;",
        "- another.",
        "And so on.",
    ]
    assert (
        made[made.index("- one, which") - 1] == "" == made[made.index("- another.") + 1]
    )


def test_google_style_arguments_become_fields():
    text = "Fit a model.\n\nArgs:\n    steps: updates,\n        at least one.\n    rate: `gp.se` or so.\n\nReturns:\n    The fit."  # noqa: E501
    made = docstrings.to_rst(text.splitlines(), (), lambda code: None)
    assert [line for line in made if line] == [
        "Fit a model.",
        ":param steps: updates, at least one.",
        ":param rate: \\ ``gp.se``\\  or so.",
        ":returns: The fit.",
    ]


def labels(diagram):
    """Return the texts of a diagram."""
    drawing = (SITE / "static" / diagram).read_text(encoding="utf-8")
    return re.findall(r"<text[^>]*>([^<]*)</text>", drawing)


def test_the_diagram_of_packages_shows_every_package():
    packages = {path.parent.name for path in (api.ROOT / "bonas").glob("*/__init__.py")}
    assert packages - set(labels("packages.svg")) == set()


def test_the_diagram_of_an_observation_names_files_that_exist():
    files = [
        place
        for label in labels("observation.svg")
        for place in label.split(", ")
        if "/" in place
    ]
    assert len(files) >= 6
    assert [file for file in files if not (api.ROOT / "bonas" / file).exists()] == []
