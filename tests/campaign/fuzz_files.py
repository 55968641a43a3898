"""Open mutated study files and network files, and check that every call works or explains itself.

Every call either works, or raises a StudyError or a ValueError with one clear line, and a command
prints that line and returns 2. Nothing else is raised, nothing hangs, and no code of a file runs.

    python -m campaign.fuzz_files --inputs 20000 --seed 1    (in tests/)

shows its progress and prints each failure with the number that makes it again (`--only 123`).
"""

import argparse
import contextlib
import io
import json
import os
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
from campaign.mutations import mutate_networks, mutate_study

import bonas
from bonas.cli import main as run_command
from bonas.search import progress_bar, random

SPACE = bonas.Space(
    depth=bonas.Int(1, 3),
    rate=bonas.Float(1e-4, 1.0, log=True),
    kind=bonas.Choice("a", None, (1, "b")),
    size=bonas.Ordinal((16, 32, 64)),
    width=bonas.Int(1, 64, log=True, when={"depth": (">=", 2), "kind": "a"}),
)
SEARCH = random(SPACE)
_DATA = Path(__file__).parents[1] / "study" / "data"
_SECONDS = 60  # for one call; more than a busy machine needs
_MEMORY = 3_000_000_000  # bytes that a call may take
# Events of Python that mean that a file made us run something.
_FORBIDDEN = {
    "os.exec",
    "os.posix_spawn",
    "os.system",
    "pickle.find_class",
    "socket.connect",
    "sqlite3.enable_load_extension",
    "sqlite3.load_extension",
    "subprocess.Popen",
}


class Hang(BaseException):
    """A call took too long."""


# The files to mutate


def make_bases(folder):
    """Write the files to mutate; few trials have values, so that no model is fitted to them."""
    with bonas.Study(folder / "plain.db", SPACE, search=SEARCH, seed=1) as study:
        study.note("remark", {"a": [1, "b"]})
        study.enqueue({"depth": 2, "rate": 0.1, "kind": "a", "size": 32, "width": 8})
        for value in (0.5, -0.25):
            trial = study.ask()
            trial.report(1, 2.0)
            trial.report(2, value)
            study.tell(trial, value)
        study.fail(study.ask(), "MemoryError: too wide", "Traceback: ...")
        study.ask()
        study.enqueue({"depth": 1, "rate": 0.2, "kind": None, "size": 16})
    shutil.copy(_DATA / "tabular_schema_2.db", folder / "table.db")
    shutil.copy(_DATA / "tabular_schema_2.network.npz", folder / "table.network.npz")
    bonas.Study(folder / "table.db").close()  # bring it up to date
    with closing(sqlite3.connect(folder / "table.db", isolation_level=None)) as db:
        db.execute("DELETE FROM trial WHERE number IN (0, 1)")
        _edit(db, "setting", "extra", lambda extra: extra["job"].update(data="no.csv"))
        _edit(db, "note", "result", lambda note: note.update(trials={"complete": 2}))
    shutil.copy(_DATA / "study_schema_2.db", folder / "old.db")
    with closing(sqlite3.connect(folder / "old.db", isolation_level=None)) as db:
        db.execute("DELETE FROM trial WHERE number BETWEEN 3 AND 9")
    for path in folder.glob("*.db"):
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = DELETE")  # everything in one file
    rows = np.random.default_rng(0).normal(0.0, 0.05, (3, 10))
    names = "age,sex,bmi,bp,s1,s2,s3,s4,s5,s6"
    np.savetxt(folder / "new.csv", rows, "%.4f", ",", header=names, comments="")


def _edit(db, table, name, change):
    query = f"SELECT value FROM {table} WHERE name = ?"
    value = json.loads(db.execute(query, (name,)).fetchone()[0])
    change(value)
    text = json.dumps(value)
    db.execute(f"UPDATE {table} SET value = ? WHERE name = ?", (text, name))


# What is called


def _read(path):
    with bonas.Study(path) as study:
        assert repr(study)
        study.trials  # noqa: B018
        study.best  # noqa: B018
        study.notes  # noqa: B018


def _tables(path):
    with bonas.Study(path) as study:
        study.csv(path.with_suffix(".csv"))
        study.frame()
        if sum(trial.value is not None for trial in study.trials) < 4:
            study.importance()


def _continue(path):
    with bonas.Study(path, SPACE, search=SEARCH, seed=1) as study:
        trial = study.ask()
        trial.report(1, 0.5)
        trial.should_prune()
        study.tell(trial, 0.5)
        study.fail(study.ask(), "failed")


def _continue_as_stored(path):
    """Claim what waits; the searches of these files are not compiled."""
    with bonas.Study(path) as study:
        trial = study._storage.claim(600.0)
        if trial is not None:
            study.tell(trial.number, 0.5)


def _load(path):
    model = bonas.load(path)
    assert repr(model)
    model.predict(path.with_name("new.csv"))


def _command(*arguments):
    def call(path):
        output = io.StringIO()
        errors = io.StringIO()
        words = [str(path) if word == "STUDY" else word for word in arguments]
        with (
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(errors),
            contextlib.chdir(path.parent),
        ):
            code = run_command(words)
        text = errors.getvalue()
        assert code in (0, 2), f"exit code {code}"
        if code == 2:
            assert text.startswith(f"bonas {words[0]}: "), text
            assert text.count("\n") == 1, text
            assert len(text) > len(f"bonas {words[0]}: .\n"), "an empty message"
            raise ValueError(text.strip())
        assert text == "", text

    return call


CALLS = {
    "read": _read,
    "report": _command("report", "STUDY"),
    "tables": _tables,
    "continue as stored": _continue_as_stored,
    "continue": _continue,
    "resume": _command("resume", "STUDY"),
    "load": _load,
    "predict": _command("predict", "STUDY", "new.csv", "--out", "predictions.csv"),
}
BASES = {
    "plain.db": ("read", "report", "tables", "continue as stored", "continue"),
    "table.db": ("read", "report", "resume", "predict"),
    "old.db": ("read", "report", "continue as stored"),
    "table.network.npz": ("load", "predict"),
}
_NETWORKS = "table.network.npz"


# Checks


class Guard:
    """While active, notes events that mean that code of a file runs."""

    def __init__(self):
        self.is_active = False
        self.events = []
        sys.addaudithook(self._note)

    def _note(self, event, arguments):
        if self.is_active and event in _FORBIDDEN:
            self.events.append(f"{event} {arguments}")


GUARD = Guard()


def problem_of(call, path):
    """Make a call; return what it did that it may not do, and the line of its error."""
    GUARD.events.clear()
    GUARD.is_active = True
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        call(path)
        line = ""
    except Hang:
        return f"took more than {_SECONDS} s", ""
    except ValueError as error:
        line = str(error)
        if not line.strip() or "\n" in line or "\r" in line:
            return f"{type(error).__name__} is not one line: {line!r}", line
    except Exception:
        return traceback.format_exc(), ""
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        GUARD.is_active = False
    return f"ran {GUARD.events}" if GUARD.events else "", line


def fuzz_one(number, seed, bases, folder):
    """Mutate one file and make all its calls; return problems, and the lines of errors."""
    rng = np.random.default_rng([seed, number])
    names = tuple(BASES)
    base = names[int(rng.choice(len(names), p=(0.4, 0.3, 0.15, 0.15)))]
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(bases, folder)
    path = folder / base
    mutate = mutate_networks if base == _NETWORKS else mutate_study
    mutations = mutate(path, rng)
    problems = []
    lines = []
    for name in BASES[base]:
        problem, line = problem_of(CALLS[name], path)
        if problem:
            problems.append(f"input {number}, {base}, {mutations}, {name}: {problem}")
        lines.append(line)
    return problems, lines


@contextlib.contextmanager
def memory_limit():
    """Limit the memory of this process, where the system tells how much it uses."""
    status = Path("/proc/self/statm")
    if not status.exists():
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(status.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextlib.contextmanager
def time_limits():
    """Raise Hang when the timer of a call has run out."""

    def interrupt(*_):
        raise Hang

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, previous)


def fuzz(numbers, seed=0, update=lambda done, text: None):
    """Fuzz with these numbers; return the problems, and how often each outcome was."""
    problems = []
    outcomes = Counter()
    fast = Path("/dev/shm")  # no disk has to be waited for
    where = fast if fast.is_dir() and os.access(fast, os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="fuzz-", dir=where) as folder,
        time_limits(),
        memory_limit(),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("error", module="bonas")
        bases = Path(folder, "bases")
        bases.mkdir()
        make_bases(bases)
        for base, calls in BASES.items():  # what is not mutated works
            shutil.copytree(bases, Path(folder, "whole"), dirs_exist_ok=True)
            for name in calls:
                problem, line = problem_of(CALLS[name], Path(folder, "whole", base))
                known = line.startswith("bonas resume")  # there is no table to search
                assert not problem, problem
                assert known or not line, line
        for done, number in enumerate(numbers, start=1):
            found, lines = fuzz_one(number, seed, bases, Path(folder, "mutated"))
            problems += found
            for problem in found:
                print(problem, flush=True)
            outcomes.update("explained" if line else "worked" for line in lines)
            update(done, f"{len(problems)} problems")
    return problems, outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="one input, by its number")
    args = parser.parse_args()
    bonas.configure()
    numbers = range(args.inputs) if args.only is None else [args.only]
    with progress_bar(len(numbers)) as update:
        problems, outcomes = fuzz(numbers, args.seed, update)
    print(f"{len(numbers)} inputs, {len(problems)} problems, calls: {dict(outcomes)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
