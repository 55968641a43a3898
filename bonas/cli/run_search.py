"""Run a new or resumed search from the command line, and print its result; handle Ctrl-C."""

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bonas.cli.display import NoDisplay
    from bonas.study import Study
    from bonas.tabular import Job, PreparedTable

DEFAULT_TRIALS = 40
# Exit code after Ctrl-C.
INTERRUPTED = 130
# Seconds to wait for a Dask scheduler.
_CONNECT_SECONDS = 10


def run_search(
    study: "Study", job: "Job", args: argparse.Namespace, client: Any
) -> int:
    """Run the search of a study up to its limits, then save and show the result.

    Args:
        study: The study.
        job: The job of the study.
        args: Arguments of `bonas search` or `bonas resume`.
        client: A Dask client, or None to evaluate on this machine.

    Returns:
        The exit code of the command.
    """
    from bonas.report import TABLE_NOTE, check_report_path
    from bonas.tabular import finish_search, job_trainer

    check_report_path(study.path.with_suffix(".html"), study.path)
    study.note("budget", {"trials": args.trials, "seconds": args.seconds})
    total = _total_trials(job, args)
    trainer = job_trainer(job)
    table = trainer.table
    about = {
        "data": job.data,
        "target": table.columns.target,
        "task": table.columns.task,
        "score": trainer.family.score,
    }
    study.note(TABLE_NOTE, about)
    try:
        with _make_display(args, study, job, total) as display:
            for line in opening_lines(table, study, job, total):
                display.print_line(line)
            display.set_activity("compiling the search")
            _optimize(study, job, args, total, display, client)
            display.set_activity("training the final networks and the reference models")
            result = finish_search(study, job)
    except KeyboardInterrupt:
        print(
            f"interrupted: {progress_text(study, job)}. To continue: bonas resume {study.path}",
            file=sys.stderr,
        )
        return INTERRUPTED
    _show_result(study, job, args, result)
    return 0


def show_complete(study: "Study", job: "Job", args: argparse.Namespace) -> bool:
    """Show the result of a study if it is complete and no more trials are requested.

    Returns:
        Whether the result was shown.
    """
    from bonas.tabular import N_STAGES, count_trials, stored_result

    result = stored_result(study)
    total = _total_trials(job, args)
    done = count_done(study, job)
    has_more = args.seconds is not None if total is None else total > done
    if result is None or has_more:
        return False
    if not (args.quiet or args.json):
        counts = count_trials(study)
        text = _plural(sum(counts.values()), "trial")
        for state in ("pruned", "failed"):
            if counts[state]:
                text += f", {counts[state]} {state}"
        if job.method == "curves":
            text += f", the cost of {_plural(done // N_STAGES, 'full training run')}"
        command = f"bonas resume {study.path} --trials N"
        print(f"{study.path} is complete ({text}). To continue: {command}")
    _show_result(study, job, args, result)
    return True


@contextmanager
def cluster(scheduler: str | None) -> Iterator[Any]:
    """Connect to a Dask scheduler that has workers; yield None if no scheduler is given."""
    if not scheduler:
        yield None
        return
    from dask.distributed import Client

    try:
        connected = Client(scheduler, timeout=_CONNECT_SECONDS)
    except Exception as error:  # a bad address raises errors of many kinds
        reason = str(error) or "no Dask scheduler answers at this address"
        raise ValueError(f"--scheduler {scheduler}: {reason}") from error
    with connected as client:
        if not client.nthreads():
            raise ValueError(f"--scheduler {scheduler}: the cluster has no workers")
        yield client


def _total_trials(job: "Job", args: argparse.Namespace) -> int | None:
    """Return the total number of trials; with curves, `--trials` counts full training runs."""
    from bonas.tabular import N_STAGES

    if args.trials is None or job.method != "curves":
        return args.trials
    return args.trials * N_STAGES


def _optimize(
    study: "Study",
    job: "Job",
    args: argparse.Namespace,
    total: int | None,
    display: "NoDisplay",
    client: Any,
) -> None:
    from bonas.tabular import Objective, StageObjective, enqueue_first, optimize_stages

    options = {
        "seconds": args.seconds,
        "trial_seconds": args.trial_seconds,
        "progress": False,
        "callback": display.update,
    }
    if job.method == "curves":
        optimize_stages(study, StageObjective(job, study), total, **options)
        return
    objective = Objective(job)
    enqueue_first(study, job)
    if client is not None:
        study.optimize(objective, total, executor=client.get_executor(), **options)
    elif args.parallel > 1:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(args.parallel) as executor:
            study.optimize(objective, total, executor=executor, **options)
    else:
        study.optimize(objective, total, workers=args.workers, **options)


def _make_display(
    args: argparse.Namespace, study: "Study", job: "Job", total: int | None
) -> "NoDisplay":
    from bonas.cli.display import LineDisplay, LiveDisplay, NoDisplay
    from bonas.tabular import SCORE_NAMES, describe_trial, job_trainer

    if args.quiet or args.json:
        return NoDisplay()
    score = SCORE_NAMES[job_trainer(job).family.score]
    describe = partial(describe_trial, job, study)
    if sys.stdout.isatty():
        done = count_done(study, job)
        return LiveDisplay(total, describe, score, done=done, seconds=args.seconds)
    return LineDisplay(total, describe, score)


# Text


def opening_lines(
    table: "PreparedTable", study: "Study", job: "Job", total: int | None
) -> list[str]:
    """Return the lines that describe the table, the trials and the study before a search."""
    from bonas.tabular import SCORE_NAMES, display_path, job_trainer

    columns = table.columns
    classes = f" of {len(columns.classes)} classes" if columns.classes else ""
    inferred = "" if job.task else " (inferred; change it with --task)"
    n_train = len(table.development.train.x)
    n_test = len(table.development.test.x)
    n_folds = len(table.folds)
    validation = (
        f"{n_folds}-fold validation" if n_folds > 1 else "one in five for validation"
    )
    score = job_trainer(job).family.score
    unit = (
        f"in the units of {columns.target!r}" if score == "rmse" else "in nats per row"
    )
    resumed = f" ({progress_text(study, job)})" if study.trials else ""
    return [
        f"{display_path(job.data)}: {columns.task}{classes}, target {columns.target!r}{inferred}, "
        f"{len(columns.names)} inputs",
        f"{n_train} rows for the search ({validation}), {n_test} rows for the test",
        *table.notices,
        f"trial value: validation {SCORE_NAMES[score]}, {unit} (lower is better)",
        *_describe_stages(job, total),
        f"study: {study.path}{resumed}",
    ]


def _describe_stages(job: "Job", total: int | None) -> list[str]:
    from bonas.tabular import N_STAGES

    if job.method != "curves":
        return []
    text = f"each trial trains one network for one of {N_STAGES} stages"
    if total:
        full = _plural(total // N_STAGES, "full training run")
        text += f": {total} trials cost as much as {full}"
    return [text]


def count_done(study: "Study", job: "Job") -> int:
    """Count the trials that have ended, except those that trained no network."""
    from bonas.tabular import count_idle_trials

    done = sum(trial.finished for trial in study.trials)
    return done - (count_idle_trials(study) if job.method == "curves" else 0)


def progress_text(study: "Study", job: "Job") -> str:
    """Describe how many trials are done, and how many were interrupted and will be repeated."""
    repeated = sum(not trial.finished for trial in study.trials)
    text = f"{_plural(count_done(study, job), 'trial')} done"
    return f"{text}, {repeated} to repeat" if repeated else text


def _plural(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _show_result(
    study: "Study", job: "Job", args: argparse.Namespace, result: dict[str, Any]
) -> None:
    """Write the report, and print the result and the paths of all files."""
    from bonas.tabular import model_path, result_lines

    network = model_path(study.path)
    page, problem = _update_report(study, network)
    files = {"study": str(study.path), "network": str(network)}
    if args.json:
        files["report"] = None if problem else str(page)  # type: ignore[assignment]
        print(json.dumps({**files, "data": job.data, "seed": job.seed, **result}))
    elif not args.quiet:
        files["report"] = f"not written ({problem})" if problem else str(page)
        files["predict"] = f"bonas predict {study.path} NEW.csv"
        listed = [f"{name:<8} {path}" for name, path in files.items()]
        print("\n".join(["", *result_lines(result), "", *listed]))


def _update_report(study: "Study", network: Path) -> tuple[Path, str]:
    """Write the report if it is older than the networks; return its path and any error."""
    from bonas.report import write_report

    page = study.path.with_suffix(".html")
    try:
        if not page.exists() or page.stat().st_mtime < network.stat().st_mtime:
            write_report(study, page)
    except OSError as error:  # show the result in any case
        return page, f"{page}: {error.strerror}"
    return page, ""


# Ctrl-C, also inside a callback of JAX


def handle_interrupts() -> None:
    """Install a handler for Ctrl-C in the main thread, unless the caller has installed one."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupt)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle Ctrl-C: raise KeyboardInterrupt, but not in JAX's garbage-collection callback.

    Python ignores an exception in that callback, so the signal is sent again a moment later.
    """
    while frame is not None:
        if frame.f_code.co_name == "_xla_gc_callback":
            threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt
