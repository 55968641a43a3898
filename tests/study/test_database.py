"""Files that are not studies, are read-only or have another version give one clear error."""

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
from bonas.study.database import APPLICATION_ID, Database
from bonas.study.migrations import MIGRATIONS

RANDOM = random(SPACE)


def open_study(path, **settings):
    return bonas.Study(path, SPACE, search=RANDOM, **settings)


def refused(path, words, space=SPACE):
    """Check that opening fails with a message that names the file, and leaves it unchanged."""
    before = path.read_bytes()
    with pytest.raises(StudyError, match=words) as caught:
        bonas.Study(path, space)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_text_file_is_refused(tmp_path):
    path = tmp_path / "runs.db"
    path.write_text("dear diary, " * 1000)
    refused(path, "nor an SQLite file")


def test_an_sqlite_file_of_another_program_is_refused(tmp_path):
    path = tmp_path / "runs.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE songs (name TEXT)")
    db.close()
    refused(path, "SQLite file of another program")


def test_a_damaged_study_is_not_written_to(tmp_path):
    path = tmp_path / "runs.db"
    with open_study(path) as study:
        study.optimize(loss, trials=20, progress=False)
    content = bytearray(path.read_bytes())
    content[4096 : len(content) // 2] = os.urandom(len(content) // 2 - 4096)
    path.write_bytes(content)
    refused(path, "damaged")


def test_a_study_of_a_newer_bonas_is_refused(tmp_path):
    path = tmp_path / "runs.db"
    open_study(path).close()
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.execute("PRAGMA journal_mode = DELETE")
    db.close()
    refused(path, "newer bonas.*update bonas")


def test_paths_that_cannot_hold_a_study_are_named(tmp_path):
    with pytest.raises(StudyError, match="is a folder"):
        open_study(tmp_path)
    with pytest.raises(StudyError, match=r"folder .* does not exist; create it"):
        open_study(tmp_path / "none" / "runs.db")
    with pytest.raises(StudyError, match=r"no study at .*creates one"):
        bonas.Study(tmp_path / "runs.db")
    assert not list(tmp_path.iterdir())


def test_an_empty_file_becomes_a_study_if_a_space_is_given(tmp_path):
    path = tmp_path / "runs.db"
    path.touch()
    refused(path, "pass a space", space=None)
    open_study(path).close()
    assert bonas.Study(path).space == SPACE


@pytest.mark.parametrize(
    "name", [":memory:", "a?b#c%20.db", "runs.db?mode=memory", "Σ.db"]
)
def test_file_names_have_no_special_meaning(name, tmp_path):
    open_study(tmp_path / name).close()
    assert (tmp_path / name).exists()
    assert bonas.Study(tmp_path / name).seed == 0


def test_the_header_and_pragmas_of_a_new_file(tmp_path):
    file = Database(tmp_path / "runs.db", create=True)
    pragmas = (
        "application_id",
        "user_version",
        "journal_mode",
        "foreign_keys",
        "synchronous",
    )
    found = [file.row(f"PRAGMA {name}")[0] for name in pragmas]
    assert found == [APPLICATION_ID, len(MIGRATIONS), "wal", 1, 2]  # 2 is FULL


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_migrations_give_the_tables_of_a_new_file(tmp_path, version):
    db = sqlite3.connect(tmp_path / "old.db")
    for script in MIGRATIONS[:version]:
        db.executescript(script)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {version}")
    db.close()
    old, new = (Database(tmp_path / name, create=True) for name in ("old.db", "new.db"))

    def columns(file):
        tables = [
            row["name"]
            for row in file.rows(
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            )
        ]
        return {
            table: [row["name"] for row in file.rows(f"PRAGMA table_info({table})")]
            for table in tables
        }

    assert columns(old) == columns(new)


def test_a_transaction_is_all_or_nothing(tmp_path):
    file = Database(tmp_path / "runs.db", create=True)

    def fail_halfway():
        with file.write_transaction() as db:
            db.execute("INSERT INTO note VALUES ('a', '1')")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_halfway()
    assert not file.rows("SELECT * FROM note")


def child(code, *arguments):
    """Run code in another process, for limits that hold for a whole process."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    path = os.pathsep.join(sys.path)
    return subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )


FULL = """
    import resource, sys
    import bonas
    from bonas.search import random
    from study.objectives import SPACE, loss
    bonas.configure()
    study = bonas.Study(sys.argv[1], SPACE, search=random(SPACE))
    study.optimize(loss, trials=10, progress=False)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    def callback(event):
        if event.state == "complete":
            print(event.trial.value)
    try:
        study.optimize(loss, trials=100_000, progress=False, callback=callback)
    except bonas.study.StudyError as problem:
        print(problem, file=sys.stderr)
"""


@pytest.mark.slow
def test_a_full_disk_is_reported_and_no_value_is_lost(tmp_path):
    path = tmp_path / "runs.db"
    done = child(FULL, path, 2_000_000)
    assert done.returncode == 0, done.stderr
    assert re.search(r"runs\.db: the disk .*full.*continue", done.stderr)
    kept = [
        record.value
        for record in bonas.Study(path).trials
        if record.state == "complete"
    ]
    shown = [float(each) for each in done.stdout.split()]
    assert len(shown) > 10
    assert kept[10:] == shown
    with open_study(path) as study:  # the limit is gone
        study.optimize(loss, trials=len(kept) + 3, progress=False)
        assert len(study.trials) == len(kept) + 3


READ_ONLY = """
    import os, sys
    import bonas
    from bonas.search import random
    from study.objectives import SPACE
    bonas.configure()
    folder, existing, elsewhere = sys.argv[1:]
    by_chance = random(SPACE)
    bonas.Study(elsewhere, SPACE, search=by_chance).ask()  # import everything while permitted
    if os.getuid() == 0:
        os.setuid(65534)  # root ignores permissions
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
def test_a_study_in_a_read_only_folder_can_be_read(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readonly")
    path = folder / "runs.db"
    with open_study(path) as study:
        study.optimize(loss, trials=5, progress=False)
        best = study.best.value
    for place in folder.parents:
        if "pytest" in str(place):  # pytest's folders are private
            place.chmod(0o755)
    path.chmod(0o444)
    folder.chmod(0o555)
    try:
        done = child(
            READ_ONLY, folder, path, tmp_path_factory.mktemp("other") / "runs.db"
        )
    finally:
        folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    new, read, ask, tell = done.stdout.splitlines()
    assert "is read-only" in new
    assert read == f"5 {best}"
    assert "is read-only" in ask
    assert "is read-only" in tell
    assert [each.name for each in folder.iterdir()] == ["runs.db"]


@pytest.mark.slow
def test_several_processes_can_create_a_study_at_once(tmp_path):
    with ProcessPoolExecutor(
        4, mp_context=multiprocessing.get_context("spawn")
    ) as pool:
        for i in range(30):
            assert all(pool.map(objectives.made, [tmp_path / f"{i}.db"] * 4))
