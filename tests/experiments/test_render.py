"""The page of results: it matches the committed files, and a template shows the right numbers."""

import json
import re
import shutil

import pytest

from experiments import render
from experiments.render import Place

FILES = sorted(render.RESULTS.glob("*.json"))
EXAMPLE = "raiders_missing.json"


def listed():
    """Return the commands in experiments/README.md by script, without flags for other libraries."""
    text = (render.HOME / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `((\w+\.\w+)[^`]*)`", text, re.M)
    return {script: re.sub(r" --rivals \S+", "", row) for row, script in rows}


def scripts():
    """Return the names of all scripts that take flags."""
    files = render.HOME.glob("*/*.py")
    taking = [file for file in files if "parser(" in file.read_text(encoding="utf-8")]
    return {f"{file.parent.name}.{file.stem}" for file in taking}


def load(file):
    return json.loads(file.read_text(encoding="utf-8"))


def test_the_committed_page_is_up_to_date():
    assert render.PAGE.read_text(encoding="utf-8") == render.page(render.RESULTS), (
        "run `make page`"
    )


def test_every_script_is_listed():
    assert set(listed()) == scripts()


def test_every_file_is_on_the_page():
    page = render.page(render.RESULTS)
    assert [file.name for file in FILES if f"[{file.name}]" not in page] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_has_the_listed_command(file):
    """The two experiments of wilton.search may run one by one."""
    stem = re.sub(r"_\d$", "", file.stem)
    command = re.sub(r" --experiment \d$", "", load(file)["command"])
    assert command == f"python -m experiments.{listed()[stem.replace('_', '.', 1)]}"


def test_a_file_without_a_command_is_refused(tmp_path):
    record = load(render.RESULTS / EXAMPLE)
    del record["command"]
    (tmp_path / EXAMPLE).write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(ValueError, match=r"raiders_missing\.json has no command"):
        render.page(tmp_path)


def test_missing_results_are_named_at_the_end(tmp_path):
    shutil.copy(render.RESULTS / EXAMPLE, tmp_path)
    page = render.page(tmp_path)
    assert re.findall(r"^### (.+)$", page, re.M) == ["raiders.missing"]
    end = page.split("## Missing")[1]
    assert set(re.findall(r"\w+\.\w+", end)) == scripts() - {"raiders.missing"}


def test_the_page_follows_the_file(tmp_path):
    record = load(render.RESULTS / EXAMPLE)
    shutil.copy(render.RESULTS / EXAMPLE, tmp_path)
    before = render.page(tmp_path).splitlines()
    record["results"]["ways"]["arc"]["squared_error"] = {
        "mean": 0.12345,
        "standard_error": 0.00067,
    }
    (tmp_path / EXAMPLE).write_text(json.dumps(record), encoding="utf-8")
    after = render.page(tmp_path).splitlines()
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert len(changed) == 1
    assert "| 0.12345 ± 0.00067 |" in changed[0]


def test_every_field_of_the_definitions_exists_in_a_file():
    """A column that is empty in every row would not appear: its path is probably misspelled."""
    page = render.page(render.RESULTS)
    heads = re.findall(
        r'^"([^"*{$]+)" = "\{', (render.HOME / "tables.toml").read_text(), re.M
    )
    assert [head for head in heads if f"| {head} |" not in page] == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (0.32, "0.320"),
        (-0.014, "−0.0140"),
        (232.4, "232"),
        (3574.1, "3,574"),
        (2.78e8, "2.78e+08"),
    ],
)
def test_numbers_have_three_significant_digits(value, shown):
    assert render.number(value, "3") == shown


def test_a_mean_has_the_digits_of_its_error():
    assert render.fill("{a±b}", Place({"a": -0.00831, "b": 0.0162})) == "−0.008 ± 0.016"
    assert render.fill("{a±b:3}", Place({"a": -0.00831})) == "−0.00831"


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("{a/b/1:%1}", "25.0%"),
        ("{a/b/0:+2*100}", "+50"),
        ("{yes} {a/c:n}", "yes 1,234"),
        ("{^g:2}, {/r}, $0", "3.0, root, key"),
        ("{a/b/0÷a/b/1:2}", "2.0"),
        ("{a/missing:3} and {yes}", ""),
    ],
)
def test_templates(template, shown):
    row = {"a": {"b": [0.5, 0.25], "c": 1234.3}, "yes": True}
    assert (
        render.fill(template, Place(row, ("key",), {"g": 3.0}, {"r": "root"})) == shown
    )
