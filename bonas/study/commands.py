"""What the `bonas` command does; each function returns an exit code.

Nothing heavy is imported before a command runs: `bonas --help` answers at once.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bonas.study.display import Silent
    from bonas.study.job import Job
    from bonas.study.study import Study

TRIALS = 40  # by default
INTERRUPTED = 130  # exit code: Ctrl-C
_FEWEST = 5  # members of a population; else it is a quarter of the trials, so that most of them are bred
_PATIENCE = 10  # seconds to wait for a cluster to answer


def search(args: argparse.Namespace) -> int:
    """Search for a network on a table of data, and keep the best ones."""
    from bonas.tabular.table import read

    read(args.data)  # a file that is not there, or no table, is refused before anything heavy is loaded
    path = args.study or Path(Path(args.data).name).with_suffix("").with_suffix(".db")
    import bonas

    bonas.configure()
    from bonas.study.job import open_study
    from bonas.study.places import check_study_path

    check_study_path(path, Path(args.data))
    if args.trials is None and args.seconds is None:
        args.trials = TRIALS
    job = _job(args)
    _check_places(job, args)
    with _cluster(args) as client, open_study(path, job) as study:  # in this order: no study is left where there is no cluster
        return 0 if _has_all(study, job, args) else _run(study, job, args, client)


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
        **({"population": max(_FEWEST, args.trials // 4)} if args.trials else {}),
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
        moved = checked(replace(job, data=str(Path(args.data).resolve()))) if args.data else None
        if _has_all(study, job, args):
            return 0
    moved = moved or checked(job)
    if args.trials is None and args.seconds is None:
        args.trials, args.seconds = budget.get("trials"), budget.get("seconds")
    _check_places(job, args)
    with _cluster(args) as client, open_study(args.study, job, moved) as study:
        return _run(study, moved, args, client)


def _check_study(path: Path) -> None:
    """Refuse what is no study, in the words of the file itself."""
    from bonas.study.file import File

    File(path, create=False).close()


def predict(args: argparse.Namespace) -> int:
    """Predict with the networks that a search kept."""
    from bonas.study.places import write_predictions_over
    from bonas.tabular.kept import load
    from bonas.tabular.written import write_predictions

    if args.out and args.out.exists() and args.out.resolve() in (Path(args.new).resolve(), args.study.resolve()):
        raise ValueError(f"--out {args.out} would overwrite what is read: name another file")
    if args.study.suffix != ".npz":
        _check_study(args.study)
    found = load(args.study)
    predictions = found.predict(args.new, drop=args.drop, unseen=args.unseen)
    if args.out is None:
        write_predictions(None, found, predictions)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        write_predictions(Path(folder, "all.csv"), found, predictions)
        write_predictions_over(args.out, Path(folder, "all.csv").read_bytes())
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


def _run(study: "Study", job: "Job", args: argparse.Namespace, client: Any) -> int:
    from bonas.study.intervals import note_intervals
    from bonas.study.job import prepared
    from bonas.study.opening import described, opening, so_far
    from bonas.study.places import check_report
    from bonas.study.result import finish
    from bonas.study.subject import NOTE

    check_report(study.path.with_suffix(".html"), study.path)
    study.note("budget", {"trials": args.trials, "seconds": args.seconds})
    total = _total(job, args)
    table = prepared(job)
    study.note(NOTE, described(table, job))
    try:
        with _display(args, study, job, total) as display:
            for line in opening(table, study, job, total):
                display.say(line)
            display.turn_to("compiling the search")
            _optimise(study, job, args, total, display, client)
            display.turn_to("training the networks to keep, and their rivals")
            result = finish(study, job)
            note_intervals(study, job)
    except KeyboardInterrupt:
        print(f"stopped: {so_far(study, job)}, all kept: bonas resume {study.path} goes on", file=sys.stderr)
        return INTERRUPTED
    _close(study, job, args, result)
    return 0


def _check_places(job: "Job", args: argparse.Namespace) -> None:
    if job.method == "curves" and (args.parallel > 1 or args.workers or args.scheduler):
        raise ValueError("--method curves keeps networks in memory between checkpoints: it trains one at a time")


@contextmanager
def _cluster(args: argparse.Namespace) -> Iterator[Any]:
    """Dask's client of the scheduler that was named, which has workers; None where none was named."""
    if not args.scheduler:
        yield None
        return
    from dask.distributed import Client

    try:
        made = Client(args.scheduler, timeout=_PATIENCE)
    except Exception as problem:  # of whatever kind: an address may be wrong in many ways
        raise ValueError(f"--scheduler {args.scheduler}: {problem or 'this is no address of a cluster'}") from problem
    with made as client:
        if not client.nthreads():
            raise ValueError(f"the cluster at {args.scheduler} has no workers")
        yield client


def _optimise(study: "Study", job: "Job", args: argparse.Namespace, total: int | None, display: "Silent", client: Any) -> None:
    from bonas.study.job import Objective, StageObjective, enqueue_first, optimise_stages

    objective = Objective(job)
    limits = {"seconds": args.seconds, "trial_seconds": args.trial_seconds, "progress": False, "watch": display.watch}
    if job.method == "curves":
        optimise_stages(study, StageObjective(job, study), total, **limits)
        return
    enqueue_first(study, job)
    if client is not None:
        study.optimise(objective, total, executor=client.get_executor(), **limits)
    elif args.parallel > 1:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(args.parallel) as executor:
            study.optimise(objective, total, executor=executor, **limits)
    else:
        study.optimise(objective, total, workers=args.workers, **limits)


def _display(args: argparse.Namespace, study: "Study", job: "Job", total: int | None) -> "Silent":
    from bonas.study.display import Lines, Live, Silent
    from bonas.study.job import network_of, trainer
    from bonas.study.opening import done
    from bonas.tabular.look import NAMES

    if args.quiet or args.json:
        return Silent()
    score, words = NAMES[trainer(job).family.score], partial(network_of, job, study)
    return Live(total, words, score, done(study, job), args.seconds) if sys.stdout.isatty() else Lines(total, words, score)


def _close(study: "Study", job: "Job", args: argparse.Namespace, result: dict[str, Any]) -> None:
    from bonas.study.result import lines
    from bonas.tabular.kept import path_of

    page, problem = _report(study, path_of(study.path))
    places = {"study": str(study.path), "network": str(path_of(study.path)), "report": None if problem else str(page)}
    if args.json:
        print(json.dumps({**places, "data": job.data, "seed": job.seed, **result}))
    elif not args.quiet:
        said = places | ({"report": f"not written ({problem})"} if problem else {})
        print("\n".join(["", *lines(result), "", *(f"{name:<8} {place}" for name, place in said.items())]))
        print(f"predict  bonas predict {study.path} NEW.csv")


def _report(study: "Study", network: Path) -> tuple[Path, str]:
    """Where the report is, written anew if it is older than the network; and why that could not be done, else nothing."""
    from bonas.study.report import write_report

    page = study.path.with_suffix(".html")
    try:
        if not page.exists() or page.stat().st_mtime < network.stat().st_mtime:
            write_report(study, page)
    except OSError as problem:  # what was found is said all the same
        return page, f"{page}: {problem.strerror}"
    return page, ""
