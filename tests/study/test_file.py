"""Files that are no studies, cannot be written to, or come from another version: one clear error, and nothing changed."""

import multiprocessing
import os
import re
import sqlite3
import subprocess
import sys
import textwrap
from concurrent.futures import ProcessPoolExecutor

import pytest
from study import objectives
from study.objectives import SPACE, loss

import bonas
from bonas.search import random
from bonas.study import StudyError
from bonas.study.file import APPLICATION, MIGRATIONS, File

BY_CHANCE = random(SPACE)


def begin(path, **settings):
    return bonas.Study(path, SPACE, search=BY_CHANCE, **settings)


def refused(path, words, space=SPACE):
    """Opening is refused in these words, which name the file, and its content stays."""
    before = path.read_bytes()
    with pytest.raises(StudyError, match=words) as caught:
        bonas.Study(path, space)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_text_is_no_study(tmp_path):
    path = tmp_path / "runs.db"
    path.write_text("dear diary, " * 1000)
    refused(path, "nor any SQLite file")


def test_a_file_of_another_program_is_left_alone(tmp_path):
    path = tmp_path / "runs.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE songs (name TEXT)")
    db.close()
    refused(path, "SQLite file of another program")


def test_a_damaged_study_is_not_written_to(tmp_path):
    path = tmp_path / "runs.db"
    with begin(path) as study:
        study.optimise(loss, trials=20, progress=False)
    content = bytearray(path.read_bytes())
    content[4096 : len(content) // 2] = os.urandom(len(content) // 2 - 4096)
    path.write_bytes(content)
    refused(path, "damaged")


def test_a_study_of_a_newer_bonas_is_left_alone(tmp_path):
    path = tmp_path / "runs.db"
    begin(path).close()
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.execute("PRAGMA journal_mode = DELETE")
    db.close()
    refused(path, "newer bonas.*update bonas")


def test_places_where_no_study_can_be_are_named(tmp_path):
    with pytest.raises(StudyError, match="is a folder"):
        begin(tmp_path)
    with pytest.raises(StudyError, match=r"no folder .*make it first"):
        begin(tmp_path / "none" / "runs.db")
    with pytest.raises(StudyError, match=r"no study at .*begins one"):
        bonas.Study(tmp_path / "runs.db")
    assert not list(tmp_path.iterdir())


def test_an_empty_file_can_become_a_study_where_a_space_is_given(tmp_path):
    path = tmp_path / "runs.db"
    path.touch()
    refused(path, "give a space", space=None)
    begin(path).close()
    assert bonas.Study(path).space == SPACE


@pytest.mark.parametrize("name", [":memory:", "a?b#c%20.db", "runs.db?mode=memory", "Σ.db"])
def test_a_name_is_a_name(name, tmp_path):
    begin(tmp_path / name).close()
    assert (tmp_path / name).exists()
    assert bonas.Study(tmp_path / name).seed == 0


def test_the_file_says_what_it_is(tmp_path):
    file = File(tmp_path / "runs.db", create=True)
    pragmas = ("application_id", "user_version", "journal_mode", "foreign_keys", "synchronous")
    found = [file.row(f"PRAGMA {name}")[0] for name in pragmas]
    assert found == [APPLICATION, len(MIGRATIONS), "wal", 1, 2]  # 2 is FULL


def test_a_study_of_the_first_version_is_brought_up_to_date(tmp_path):
    """Its trials stay, and it goes on with the points that it would have asked for."""
    path, whole = tmp_path / "runs.db", tmp_path / "whole.db"
    with begin(whole) as study:
        study.optimise(loss, trials=9, progress=False)
        expected = [record.u for record in study.trials]
    with begin(path) as study:
        study.optimise(loss, trials=5, progress=False)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("ALTER TABLE trial DROP COLUMN begun")
    db.execute("ALTER TABLE search DROP COLUMN used")
    db.execute("DELETE FROM setting WHERE name = 'id'")
    db.execute("PRAGMA user_version = 1")
    db.close()
    with begin(path) as study:
        study.optimise(loss, trials=9, progress=False)
        assert [record.u for record in study.trials] == expected
        assert study.about["id"]


def test_every_version_makes_the_tables_of_the_last(tmp_path):
    db = sqlite3.connect(tmp_path / "old.db")
    for script in MIGRATIONS[:1]:
        db.executescript(script)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute("PRAGMA user_version = 1")
    db.close()
    old, new = (File(tmp_path / name, create=True) for name in ("old.db", "new.db"))

    def columns(file):
        tables = [row["name"] for row in file.rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return {table: [row["name"] for row in file.rows(f"PRAGMA table_info({table})")] for table in tables}

    assert columns(old) == columns(new)


def test_a_transaction_is_all_or_nothing(tmp_path):
    file = File(tmp_path / "runs.db", create=True)

    def fail_halfway():
        with file.writing() as db:
            db.execute("INSERT INTO note VALUES ('a', '1')")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_halfway()
    assert not file.rows("SELECT * FROM note")


def child(code, *arguments):
    """A process of its own, for limits that hold for a whole process."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    path = os.pathsep.join(sys.path)
    return subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=300)


FULL = """
    import resource, sys
    import bonas
    from bonas.search import random
    from study.objectives import SPACE, loss
    bonas.configure()
    study = bonas.Study(sys.argv[1], SPACE, search=random(SPACE))
    study.optimise(loss, trials=10, progress=False)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    def watch(event):
        if event.kind == "told":
            print(event.trial.value)
    try:
        study.optimise(loss, trials=100_000, progress=False, watch=watch)
    except bonas.study.StudyError as problem:
        print(problem, file=sys.stderr)
"""


@pytest.mark.slow
def test_a_full_disk_is_said_and_loses_nothing(tmp_path):
    path = tmp_path / "runs.db"
    done = child(FULL, path, 2_000_000)
    assert done.returncode == 0, done.stderr
    assert re.search(r"runs\.db: the disk .*full.*go on", done.stderr)
    kept = [record.value for record in bonas.Study(path).trials if record.state == "told"]
    shown = [float(each) for each in done.stdout.split()]
    assert len(shown) > 10
    assert kept[10:] == shown
    with begin(path) as study:  # there is room again
        study.optimise(loss, trials=len(kept) + 3, progress=False)
        assert len(study.trials) == len(kept) + 3


READ_ONLY = """
    import os, sys
    import bonas
    from bonas.search import random
    from study.objectives import SPACE
    bonas.configure()
    folder, existing, elsewhere = sys.argv[1:]
    by_chance = random(SPACE)
    bonas.Study(elsewhere, SPACE, search=by_chance).ask()  # loads everything, which the next user may not be able to
    if os.getuid() == 0:
        os.setuid(65534)  # permissions do not hold for root
    for call in (
        lambda: bonas.Study(os.path.join(folder, "new.db"), SPACE),
        lambda: print(len(bonas.Study(existing).trials), bonas.Study(existing).best.value),
        lambda: bonas.Study(existing, SPACE, search=by_chance).ask(),
        lambda: bonas.Study(existing).tell(0, 1.0),
    ):
        try:
            call()
        except bonas.study.StudyError as problem:
            print(problem)
"""


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_to_can_be_read(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readonly")
    path = folder / "runs.db"
    with begin(path) as study:
        study.optimise(loss, trials=5, progress=False)
        best = study.best.value
    for place in folder.parents:
        if "pytest" in str(place):  # pytest lets nobody else look in
            place.chmod(0o755)
    path.chmod(0o444)
    folder.chmod(0o555)
    try:
        done = child(READ_ONLY, folder, path, tmp_path_factory.mktemp("other") / "runs.db")
    finally:
        folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    new, read, asked, told = done.stdout.splitlines()
    assert "may not be written to" in new
    assert read == f"5 {best}"
    assert "can only be read" in asked
    assert "can only be read" in told
    assert [each.name for each in folder.iterdir()] == ["runs.db"]


@pytest.mark.slow
def test_many_may_begin_a_study_at_once(tmp_path):
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        for i in range(30):
            assert all(pool.map(objectives.made, [tmp_path / f"{i}.db"] * 4))
