"""What the `bonas` command does; each function returns an exit code.

Nothing heavy is imported before a command runs: `bonas --help` answers at once.
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bonas.study.display import Silent
    from bonas.study.job import Job
    from bonas.study.study import Study
    from bonas.tabular.prepared import Prepared

TRIALS = 40  # by default
INTERRUPTED = 130  # exit code: Ctrl-C
_PATIENCE = 10  # seconds to wait for a cluster to answer


def search(args: argparse.Namespace) -> int:
    """Search for a network on a table of data, and keep the best ones."""
    from bonas.tabular.table import read

    read(args.data)  # a file that is not there, or no table, is refused before anything heavy is loaded
    path = args.study or Path(Path(args.data).name).with_suffix("").with_suffix(".db")
    if path.exists() and path.resolve() == Path(args.data).resolve():
        raise ValueError(f"--study {path} is the data themselves: name another file")
    import bonas

    bonas.configure()
    from bonas.study.job import open_study

    if args.trials is None and args.seconds is None:
        args.trials = TRIALS
    job = _job(args)
    _check_places(job, args)
    with open_study(path, job) as study:
        return 0 if _has_all(study, job, args) else _run(study, job, args)


def _job(args: argparse.Namespace) -> "Job":
    from bonas.study.job import Job
    from bonas.tabular.table import digest

    return Job(
        data=str(Path(args.data).resolve()) if Path(args.data).suffix else args.data,
        sha256=digest(args.data),
        target=args.target,
        task=args.task,
        space=args.space,
        method=args.method,
        seed=args.seed,
        impute=args.impute,
        categorical=tuple(args.categorical),
        drop=tuple(args.drop),
    )


def resume(args: argparse.Namespace) -> int:
    """Go on with a search that was stopped."""
    from dataclasses import replace

    import bonas

    bonas.configure()
    from bonas.study.job import checked, job_of, open_study
    from bonas.study.study import Study

    with Study(args.study) as study:
        job, budget = job_of(study), study.notes.get("budget", {})
        if _has_all(study, job, args):
            return 0
    moved = checked(replace(job, data=str(Path(args.data).resolve())) if args.data else job)
    if args.trials is None and args.seconds is None:
        args.trials, args.seconds = budget.get("trials"), budget.get("seconds")
    _check_places(job, args)
    with open_study(args.study, job, moved) as study:
        return _run(study, moved, args)


def _check_study(path: Path) -> None:
    """Refuse what is no study, in the words of the file itself."""
    from bonas.study.file import File

    File(path, create=False).close()


def predict(args: argparse.Namespace) -> int:
    """Predict with the networks that a search kept."""
    from bonas.tabular.kept import load
    from bonas.tabular.written import write_predictions

    if args.out and args.out.exists() and args.out.resolve() in (Path(args.new).resolve(), args.study.resolve()):
        raise ValueError(f"--out {args.out} would overwrite what is read: name another file")
    if args.study.suffix != ".npz":
        _check_study(args.study)
    found = load(args.study)
    predictions = found.predict(args.new, drop=args.drop)
    write_predictions(args.out, found, predictions)
    return 0


def report(args: argparse.Namespace) -> int:
    """Write the HTML report of a study."""
    import bonas

    bonas.configure()
    from bonas.study.report import write_report
    from bonas.study.study import Study

    out = args.out or args.study.with_suffix(".html")
    with Study(args.study) as study:
        write_report(study, out)
    print(out)
    return 0


# A search, new or resumed


def _has_all(study: "Study", job: "Job", args: argparse.Namespace) -> bool:
    """Whether the study is finished and no more is asked of it, which is then said."""
    from bonas.study.job import STAGES, idle
    from bonas.study.result import ended, finished

    result, total, counts = finished(study), _total(job, args), ended(study)
    done = sum(counts.values()) - (idle(study) if job.method == "curves" else 0)
    more = args.seconds is not None if total is None else total > done
    if result is None or more:
        return False
    if not (args.quiet or args.json):
        had = f"{counts['told']} trials told" + (f" and {counts['failed']} failed" if counts["failed"] else "")
        until = f"N whole networks' training is spent, now {done // STAGES}" if job.method == "curves" else "there are N"
        print(f"{study.path} is finished, with {had}: bonas resume {study.path} --trials N goes on until {until}")
    _close(study, job, args, result)
    return True


def _total(job: "Job", args: argparse.Namespace) -> int | None:
    """How many trials the study shall have in the end."""
    from bonas.study.job import STAGES

    return args.trials and args.trials * (STAGES if job.method == "curves" else 1)


def _run(study: "Study", job: "Job", args: argparse.Namespace) -> int:
    from bonas.study.job import prepared
    from bonas.study.result import finish

    study.note("budget", {"trials": args.trials, "seconds": args.seconds})
    total = _total(job, args)
    table = prepared(job)
    try:
        with _display(args, study, job, total) as display:
            for line in _opening(table, study, job, total):
                display.say(line)
            display.turn_to("compiling the search")
            _optimise(study, job, args, total, display)
            display.turn_to("training the networks to keep, and their rivals")
            result = finish(study, job)
    except KeyboardInterrupt:
        told = sum(record.state == "told" for record in study.trials)
        print(f"stopped after {told} trials, which are kept: bonas resume {study.path} goes on", file=sys.stderr)
        return INTERRUPTED
    _close(study, job, args, result)
    return 0


def _check_places(job: "Job", args: argparse.Namespace) -> None:
    if job.method == "curves" and (args.parallel > 1 or args.workers or args.scheduler):
        raise ValueError("--method curves keeps networks in memory between checkpoints: it trains one at a time")


def _optimise(study: "Study", job: "Job", args: argparse.Namespace, total: int | None, display: "Silent") -> None:
    from bonas.study.job import Objective, StageObjective, optimise_stages

    objective = Objective(job)
    limits = {"seconds": args.seconds, "trial_seconds": args.trial_seconds, "progress": False, "watch": display.watch}
    if job.method == "curves":
        optimise_stages(study, StageObjective(job, study), total, **limits)
        return
    if args.scheduler:
        from dask.distributed import Client

        with Client(args.scheduler, timeout=_PATIENCE) as client:
            places = sum(client.nthreads().values())
            if not places:
                raise ValueError(f"the cluster at {args.scheduler} has no workers")
            study.optimise(objective, total, executor=client.get_executor(), workers=places, **limits)
    elif args.parallel > 1:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(args.parallel) as executor:
            study.optimise(objective, total, executor=executor, **limits)
    else:
        study.optimise(objective, total, workers=args.workers, **limits)


def _display(args: argparse.Namespace, study: "Study", job: "Job", total: int | None) -> "Silent":
    from bonas.study.display import Lines, Live, Silent
    from bonas.study.job import network_of, trainer
    from bonas.tabular.look import NAMES

    if args.quiet or args.json:
        return Silent()
    score, words = NAMES[trainer(job).family.score], partial(network_of, job, study)
    return Live(total, words, score, len(study.trials), args.seconds) if sys.stdout.isatty() else Lines(total, words, score)


def _opening(table: "Prepared", study: "Study", job: "Job", total: int | None) -> list[str]:
    from bonas.study.job import shown

    columns, train, test = table.columns, len(table.whole.train.x), len(table.whole.test.x)
    kinds = f" of {len(columns.classes)} classes" if columns.classes else ""
    inferred = "" if job.task else " (inferred; --task says otherwise)"
    folds = f"validation by {len(table.folds)} folds" if len(table.folds) > 1 else "one in five of these validates"
    before = len(study.trials)
    return [
        f"{shown(job.data)}: {columns.task}{kinds} of {columns.target!r}{inferred}, from {len(columns.names)} inputs",
        f"{train} rows to search on, {folds}; {test} rows for the test",
        *table.notices,
        *_trials_in_words(job, columns.target, total),
        f"study {study.path}" + (f", which has {before} trials already" if before else ""),
    ]


def _trials_in_words(job: "Job", target: str, total: int | None) -> list[str]:
    """What the value of a trial is and, where it trains a part of a network, how many there are."""
    from bonas.study.job import STAGES, trainer
    from bonas.tabular.look import NAMES

    score = trainer(job).family.score
    unit = f"in the units of {target!r}" if score == "rmse" else "in nats a row"
    value = f"the value of a trial is its validation {NAMES[score]}, {unit}: the lower, the better"
    if job.method != "curves":
        return [value]
    whole = f": {total} trials cost as much as {total // STAGES} whole networks" if total else ""
    return [value, f"each trial trains one network by one part of {STAGES}{whole}"]


def _close(study: "Study", job: "Job", args: argparse.Namespace, result: dict[str, Any]) -> None:
    from bonas.study.report import write_report
    from bonas.study.result import lines
    from bonas.tabular.kept import path_of

    network, page = path_of(study.path), study.path.with_suffix(".html")
    if not page.exists() or page.stat().st_mtime < network.stat().st_mtime:
        write_report(study, page)
    places = {"study": str(study.path), "network": str(network), "report": str(page)}
    if args.json:
        print(json.dumps({**places, "data": job.data, "seed": job.seed, **result}))
    elif not args.quiet:
        print("\n".join(["", *lines(result), "", *(f"{name:<8} {place}" for name, place in places.items())]))
        print(f"predict  bonas predict {study.path} NEW.csv")
