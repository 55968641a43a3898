"""What the site says of the code is so: the names that it offers can be had under the paths that it shows."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "notebooks" / "site"))
from extension import docstrings, house, pages

SITE = Path(pages.__file__).parents[1]
RUN = [SITE / "index.md", *sorted((SITE / "concepts").glob("*.md"))]  # pages for those who begin
NAMES = [name for room in house.rooms() for module in house.modules_of(room) for name in house.names_of(module)]


@pytest.mark.slow
def test_what_is_offered_can_be_had_after_importing_bonas():
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
    done = subprocess.run([sys.executable, "-c", code], input=offered, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


def test_no_two_names_have_one_path():
    assert [path for path, times in Counter(name.shown for name in NAMES).items() if times > 1] == []


@pytest.mark.parametrize(
    ("module", "name", "shown", "inside"),
    [
        ("bonas.search.bayes", "bayes", "bonas.bayes", False),
        ("bonas.gp.additive", "additive", "bonas.gp.additive", False),
        ("bonas.gp.additive", "grouped", "bonas.gp.additive.grouped", True),  # the function is in the way of the module
        ("bonas.configure", "user_cache", "bonas.configure.user_cache", True),
        ("bonas.linalg", "factorise", "bonas.linalg.factorise", False),
        ("bonas.nets.bnn_hmc", "sample", "bonas.nets.bnn_hmc.sample", False),
        ("bonas.problems.examples", "split", "bonas.problems.datasets.split", False),
        ("bonas.problems.uci", "digest", "bonas.problems.uci.digest", True),
    ],
)
def test_names_are_shown_under_a_path_that_leads_to_them(module, name, shown, inside):
    found = next(each for each in NAMES if (each.module, each.name) == (module, name))
    assert (found.shown, found.inside) == (shown, inside)


class Sized:
    """A class as Sphinx meets them."""

    step: float = max  # a field whose default is a function

    def size(self):
        """How large it is."""

    def silent(self):
        pass


class Larger(Sized):
    """Another, which takes the place of a method."""

    def size(self):
        return 2


@pytest.mark.parametrize(
    ("owner", "name", "shown", "told"),
    [
        (Sized, "size", True, False),
        (Sized, "step", False, False),
        (Sized, "silent", False, True),
        (Larger, "size", False, False),
    ],
)
def test_a_method_of_which_nothing_is_said_is_a_warning(owner, name, shown, told, caplog):
    skipped = pages.skip(None, "class", name, getattr(owner, name), False, None)
    assert (skipped is None) == shown
    assert ("has no docstring" in caplog.text) == told


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_python_on_a_page_is_run_when_the_site_is_built(page):
    text = page.read_text(encoding="utf-8")
    assert text.startswith("---\nfile_format: mystnb\n")
    assert "```{code-cell}" in text
    assert "```python" not in text


def test_every_concept_is_on_the_front_page():
    front = RUN[0].read_text(encoding="utf-8")
    assert [
        page.stem for page in RUN[1:] if f"(concepts/{page.name})" not in front or f"\nconcepts/{page.stem}\n" not in front
    ] == []


@pytest.mark.parametrize("between", ["", "\n"], ids=["at once", "after an empty line"])
def test_a_list_in_a_docstring_is_a_list(between):
    said = f"Two ways:\n{between}- one, which\n  is long;\n- another.\n{between}And so on."
    made = docstrings.to_rst(said.splitlines(), (), lambda code: None)
    assert [line for line in made if line] == ["Two ways:", "- one, which", "  is long;", "- another.", "And so on."]
    assert made[made.index("- one, which") - 1] == "" == made[made.index("- another.") + 1]
