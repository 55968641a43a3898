"""The page of results: what is committed is what the script writes, its numbers come out of files, and gaps are named."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
import results_page
from pages import text

SCRIPTS = {script for sections in results_page.PARTS.values() for script in sections}
NO_NUMBERS = {"readme_example.py", "results_page.py"}


def test_the_page_is_what_the_script_writes():
    assert results_page.PAGE.read_text(encoding="utf-8") == results_page.page(results_page.RESULTS), "`make page` is due"


def test_every_script_has_a_section():
    assert {path.name for path in results_page.HOME.glob("*.py")} == SCRIPTS | NO_NUMBERS


def test_every_file_is_on_the_page():
    shown = results_page.page(results_page.RESULTS)
    assert [file.name for file in results_page.RESULTS.glob("*.json") if f"[{file.name}]" not in shown] == []


@pytest.mark.parametrize("file", sorted(results_page.RESULTS.glob("*.json")), ids=lambda file: file.stem)
def test_a_file_was_made_by_the_command_in_the_list(file):
    """`make results` would make the same numbers; the two experiments of wilton.py may have been run one by one."""
    found = json.loads(file.read_text(encoding="utf-8"))
    script, _, part = re.fullmatch(r"(\D\w*?)(_(\d))?", file.stem).groups()
    due = results_page.listed()[f"{script}.py"]
    assert results_page.recorded(file, found) in ({due, f"{due} --experiment {part}"} if part else {due})


def test_a_file_that_does_not_say_its_command_is_refused(tmp_path):
    record = json.loads((results_page.RESULTS / "raiders_missing.json").read_text(encoding="utf-8"))
    del record["command"]
    (tmp_path / "raiders_missing.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(ValueError, match=r"raiders_missing\.json does not say which command"):
        results_page.page(tmp_path)


def test_what_is_missing_is_left_out_and_named_at_the_end(tmp_path):
    shutil.copy(results_page.RESULTS / "raiders_missing.json", tmp_path)
    shown = results_page.page(tmp_path)
    assert re.findall(r"^### (\w+)$", shown, re.M) == ["raiders_missing"]
    last = shown.split("## What is not here")[1]
    assert set(re.findall(r"\{script\}`(\w+\.py)`", last)) == SCRIPTS - {"raiders_missing.py"}


def test_a_section_follows_its_file(tmp_path):
    """Another number in the file is another number on the page, and nothing else changes."""
    record = json.loads((results_page.RESULTS / "raiders_missing.json").read_text(encoding="utf-8"))
    shutil.copy(results_page.RESULTS / "raiders_missing.json", tmp_path)
    before = results_page.page(tmp_path)
    record["results"]["ways"]["arc"]["squared_error"] = {"mean": 0.12345, "standard_error": 0.00067}
    (tmp_path / "raiders_missing.json").write_text(json.dumps(record), encoding="utf-8")
    after = results_page.page(tmp_path)
    changed = [new for old, new in zip(before.splitlines(), after.splitlines(), strict=True) if old != new]
    assert len(changed) == 1
    assert "| 0.12345 ± 0.00067 |" in changed[0]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (None, ""), (0.32, "0.320"), (-0.014, "−0.0140"), (232.4, "232"), (3574.1, "3,574"), (2.78e8, "2.78e+08")],
)
def test_numbers_have_three_digits_that_count(value, shown):
    assert text.written(value) == shown


def test_a_mean_has_the_digits_of_its_error():
    row = {"mean": -0.00831, "error": 0.0162}
    assert text.with_error("mean", "error")(row) == "−0.008 ± 0.016"
    assert text.with_error("mean", "nothing")(row) == "−0.00831"


def test_columns_without_a_number_are_left_out_aloud(caplog):
    made = text.table("way", {"a": {"x": 1.0}, "b": {}}, {"x": text.number("x"), "y": text.number("y")})
    assert "'y' by 'way'" in caplog.text
    assert made == "| way | x |\n| --- | --- |\n| a | 1.00 |\n| b |  |"
