"""Kill processes that work on studies, at random moments, and check what is left.

A scenario runs to its end through some kills. Then no value may be lost or recorded twice, every
value must be that of its configuration, and a sequential search must be identical to one that was
not killed, to the last value.

    python -m campaign.kills --kills 1000 --folder kills    (in tests/)

shows its progress, and started again with the same folder it continues. A failure leaves the
folder of its scenario as it is.
"""

import argparse
import json
import math
import multiprocessing
import os
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
from campaign.scenarios import SCENARIOS, TABLE, live, make_table, read_log

# Kills of one run of a scenario, at most.
MOST_KILLS = 6
_POLL_SECONDS = 0.005
_LONGEST_LIFE = 600.0  # seconds
_FIELDS = "number, state, config, hex(u), value, error"


class Campaign:
    """Runs of scenarios in a folder, with the kills that each had."""

    def __init__(self, folder, seed=0):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.record = self.folder / "kills.jsonl"
        self.seed = seed
        self._lock = threading.Lock()
        self._references = {}
        # One process imports everything; each life is a fork of it.
        paths = [str(Path(__file__).parents[1]), *sys.path]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["campaign.scenarios"])

    def past(self):
        """Return the runs that were completed before."""
        if not self.record.exists():
            return []
        return [json.loads(line) for line in self.record.read_text().splitlines()]

    def attack(self, name, run, kills):
        """Run a scenario to its end with at most so many kills; return how many it had."""
        rng = np.random.default_rng([self.seed, run])
        expected, seconds = self._reference(name)
        folder = self._new_folder(f"{run:04d} {name}")
        lives = []
        snapshot = {}
        struck = 0
        while True:
            is_last = struck == kills
            was_killed = self._live(
                name, folder, lives, None if is_last else _moment(rng, seconds)
            )
            snapshot = check_snapshot(folder, snapshot)
            if not was_killed:
                break
            struck += 1
        check_end(name, folder, lives, expected)
        shutil.rmtree(folder)
        with self._lock, self.record.open("a") as file:
            line = {"run": run, "scenario": name, "kills": struck}
            file.write(json.dumps(line) + "\n")
        return struck

    def _reference(self, name):
        """Return the rows of a run without kills, and how long it took."""
        with self._lock:
            lock = self._references.setdefault(name, [threading.Lock(), None])
        with lock[0]:
            if lock[1] is None:
                folder = self._new_folder(f"reference {name}")
                began = time.monotonic()
                self._live(name, folder, [], None)
                lock[1] = read_rows(folder), time.monotonic() - began
                shutil.rmtree(folder)
            return lock[1]

    def _new_folder(self, name):
        folder = self.folder / name.replace(", ", "-").replace(" ", "-")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        make_table(folder / TABLE)
        return folder

    def _live(self, name, folder, lives, moment):
        """Start the processes of a scenario; return whether the first was killed in time."""
        children = []
        for _ in range(SCENARIOS[name].processes):
            log = folder / f"log{len(lives)}"
            lives.append(log)
            child = self._context.Process(target=live, args=(name, str(folder), log))
            child.start()
            children.append(child)
        was_killed = moment is not None and _kill(children[0], lives[0].parent, moment)
        for child in children:
            child.join(_LONGEST_LIFE)
        if was_killed:
            children = children[1:]
        codes = [child.exitcode for child in children]
        texts = [log.read_text() for log in lives[-len(codes) :]] if codes else []
        assert not any(codes), f"{folder}: exit codes {codes}: {''.join(texts)[-3000:]}"
        return was_killed


def _moment(rng, seconds):
    """Choose when to kill: (finished trials to wait for, seconds to wait then)."""
    if rng.random() < 0.3:
        return 0, rng.uniform(0.0, 0.5 * seconds)
    return int(rng.integers(1, 4)), rng.uniform(0.0, 0.05)


def _kill(child, folder, moment):
    """Kill a process at a moment; return False if it had ended before."""
    trials, seconds = moment
    goal = count_finished(folder) + trials
    while trials and child.is_alive() and count_finished(folder) < goal:
        time.sleep(_POLL_SECONDS)
    child.join(seconds)
    if not child.is_alive():
        return False
    child.kill()
    child.join()
    return child.exitcode < 0


# What the file holds


def _query(folder, query):
    """Query a study with SQLite itself; no rows if there is no study yet."""
    path = folder / "runs.db"
    if not path.exists():
        return []
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            return db.execute(query).fetchall()
    except sqlite3.OperationalError:  # before its tables are created
        return []


def count_finished(folder):
    """Count the finished trials."""
    rows = _query(folder, "SELECT count(*) FROM trial WHERE finish_order IS NOT NULL")
    return rows[0][0] if rows else 0


def read_rows(folder):
    """Return what must be identical, in the order in which trials finished."""
    return _query(folder, f"SELECT {_FIELDS} FROM trial ORDER BY finish_order, number")


def check_snapshot(folder, before):
    """Check that no finished trial has changed since the last kill; return all of them."""
    now = {
        row[0]: row
        for row in _query(
            folder,
            f"SELECT {_FIELDS}, finish_order, end_time FROM trial "
            "WHERE finish_order IS NOT NULL",
        )
    }
    for number, row in before.items():
        assert now.get(number) == row, f"{folder}: trial {number} has changed"
    return now


def check_end(name, folder, lives, expected):
    """Check a study that was run to its end."""
    scenario = SCENARIOS[name]
    rows = read_rows(folder)
    numbers = sorted(row[0] for row in rows)
    assert numbers == list(range(len(rows))), f"{folder}: trials are missing"
    assert len(rows) >= scenario.trials, f"{folder}: {len(rows)} trials"
    finished = {
        row[0]: row[4] for row in rows if row[1] in ("complete", "failed", "pruned")
    }
    assert len(finished) >= scenario.trials
    orders = _query(folder, "SELECT finish_order FROM trial WHERE finish_order > 0")
    assert sorted(order for (order,) in orders) == list(range(1, len(finished) + 1))
    if scenario.sequential:
        assert rows == expected, f"{folder}: other points or values than without kills"
    else:
        assert len({row[3] for row in rows}) == len(rows), f"{folder}: a point twice"
    if scenario.expected:
        check_values(scenario, folder, rows)
    check_logs(folder, lives, finished)


def check_values(scenario, folder, rows):
    """Check that every value is that of its configuration."""
    for number, state, config, _, value, error in rows:
        known = scenario.expected(json.loads(config))
        if math.isnan(known):
            assert (state, value) == ("failed", None), f"{folder}: trial {number}"
            assert error
        else:
            assert (state, value) == ("complete", known), f"{folder}: trial {number}"


def check_logs(folder, lives, finished):
    """Check that what processes reported as recorded is there, and was recorded once."""
    logged = [entry for log in lives for entry in read_log(log)]
    assert len({number for number, _ in logged}) == len(logged), f"{folder}: twice"
    for number, value in logged:
        assert finished[number] == value, f"{folder}: trial {number} was {value}"


# The command


def schedule(names, past, total, most):
    """Yield (run, scenario, kills) in turn until the kills that are left are given out."""
    run = max((each["run"] for each in past), default=-1) + 1
    while total > 0:
        kills = min(most, total)
        yield run, names[run % len(names)], kills
        total -= kills
        run += 1


def run_campaign(
    folder,
    kills,
    *,
    names=tuple(SCENARIOS),
    most=MOST_KILLS,
    jobs=2,
    seed=0,
    update=lambda done, name: None,
):
    """Kill so many processes in all, counting those of earlier calls; return the number.

    Args:
        folder: Where the scenarios run, and where the campaign is recorded.
        kills: The number of kills.
        names: The scenarios, which take turns.
        most: Kills of one run of a scenario, at most.
        jobs: Scenarios to run at once.
        seed: The random seed of the moments.
        update: Called with the number of kills and the name of every scenario that has ended.
    """
    campaign = Campaign(folder, seed)
    while True:
        past = campaign.past()
        done = sum(each["kills"] for each in past)
        if done >= kills:
            return done
        with ThreadPoolExecutor(jobs) as pool:
            planned = list(schedule(names, past, kills - done, most))
            futures = [
                pool.submit(campaign.attack, name, run, number)
                for run, name, number in planned
            ]
            try:
                for future, (_, name, _) in zip(futures, planned, strict=True):
                    done += future.result()
                    update(done, name)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise


def main():
    from bonas.search import progress_bar

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--folder", default=None, help="default: a temporary folder")
    parser.add_argument("--jobs", type=int, default=2, help="scenarios at once")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", action="append", choices=SCENARIOS, help="may be repeated"
    )
    args = parser.parse_args()
    folder = Path(args.folder or tempfile.mkdtemp(prefix="kills-")).resolve()
    print(f"folder: {folder}")
    done = sum(each["kills"] for each in Campaign(folder).past())
    with progress_bar(args.kills, done) as update:
        run_campaign(
            folder,
            args.kills,
            names=tuple(args.only or SCENARIOS),
            jobs=args.jobs,
            seed=args.seed,
            update=update,
        )
    print(f"{args.kills} kills: no value was lost or recorded twice")


if __name__ == "__main__":
    main()
