"""The commands of `bonas`; each function returns an exit code.

To add a command, write a function here and list it in `COMMANDS` of arguments.py.
Heavy modules are imported inside the functions, so that `bonas --help` does not load JAX.
"""

import argparse
import csv
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bonas.cli.run_search import DEFAULT_TRIALS, cluster, run_search, show_complete

if TYPE_CHECKING:
    from bonas.tabular import Job, Predictions, SavedModel

# Evolution starts with a random population of a quarter of the trials, but at least this many.
_MIN_POPULATION = 5
# Suffixes that a study must not have, and the files that have them.
_RESERVED_SUFFIXES = {".html": "reports", ".htm": "reports", ".npz": "networks"}


def search(args: argparse.Namespace) -> int:
    """Search for networks that predict a column of a table, and save the best ones."""
    from bonas.tabular import read_table

    read_table(args.data)  # report a bad file before JAX is loaded
    path = args.study or Path(Path(args.data).name).with_suffix("").with_suffix(".db")
    import bonas

    bonas.configure()
    from bonas.tabular import open_study

    check_study_path(path, Path(args.data))
    if args.trials is None and args.seconds is None:
        args.trials = DEFAULT_TRIALS
    job = make_job(args)
    _check_parallel(job, args)
    # Connect to the cluster first, so that no study is created if it is unavailable.
    with cluster(args.scheduler) as client, open_study(path, job) as study:
        return (
            0
            if show_complete(study, job, args)
            else run_search(study, job, args, client)
        )


def make_job(args: argparse.Namespace) -> "Job":
    """Create the job of a search from the arguments of the command."""
    from bonas.tabular import Job, digest

    job = Job(
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
    if not args.trials:
        return job
    return replace(job, population=max(_MIN_POPULATION, args.trials // 4))


def resume(args: argparse.Namespace) -> int:
    """Continue an interrupted search."""
    import bonas

    bonas.configure()
    from bonas.study import Study
    from bonas.tabular import check_data, open_study, read_job

    with Study(args.study) as study:
        job = read_job(study)
        budget = study.notes.get("budget", {})
        moved = None
        if args.data:
            moved = check_data(replace(job, data=str(Path(args.data).resolve())))
        if show_complete(study, job, args):
            return 0
    moved = moved or check_data(job)
    if args.trials is None and args.seconds is None:
        args.trials = budget.get("trials")
        args.seconds = budget.get("seconds")
    _check_parallel(job, args)
    with cluster(args.scheduler) as client, open_study(args.study, job, moved) as study:
        return run_search(study, moved, args, client)


def predict(args: argparse.Namespace) -> int:
    """Predict new rows with the saved networks of a search, and write them as CSV."""
    from bonas.study import Database
    from bonas.tabular import load

    inputs = (Path(args.new).resolve(), args.study.resolve())
    if args.out and args.out.exists() and args.out.resolve() in inputs:
        raise ValueError(
            f"--out {args.out} would overwrite an input file; choose another path"
        )
    if args.study.suffix != ".npz":
        Database(args.study, create=False).close()  # report a file that is not a study
    model = load(args.study)
    predictions = model.predict(args.new, drop=args.drop, unseen=args.unseen)
    if args.out is None:
        write_predictions(None, model, predictions)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "predictions.csv")
        write_predictions(written, model, predictions)
        replace_predictions(args.out, written.read_bytes())
    return 0


def report(args: argparse.Namespace) -> int:
    """Write the HTML report of a study."""
    import bonas

    bonas.configure()
    from bonas.report import write_report
    from bonas.study import Study

    with Study(args.study) as study:
        print(write_report(study, args.out or args.study.with_suffix(".html")))
    return 0


# Predictions as CSV


def write_predictions(
    path: Path | None, model: "SavedModel", predictions: "Predictions"
) -> None:
    """Write predictions as CSV, one line per row, numbered from 1.

    The columns are the row number, the value, and its standard deviation or the probability of
    each class.

    Args:
        path: The file to write; None for standard output.
        model: The model that made the predictions.
        predictions: The predictions.
    """
    target = model.columns.target
    number_column = "row" if target != "row" else "row_number"
    header, rows = _prediction_cells(model, predictions)
    lines: list[list[Any]] = [[number_column, *header]]
    lines += [[i, *row] for i, row in enumerate(rows, start=1)]
    if path is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows(lines)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)


def _prediction_cells(
    model: "SavedModel", predictions: "Predictions"
) -> tuple[list[str], list[list[str]]]:
    target = model.columns.target
    if predictions.probabilities is None:
        pairs = zip(predictions.value, predictions.std, strict=True)  # type: ignore[arg-type]
        return [target, f"{target}_std"], [
            [f"{value:.7g}", f"{std:.7g}"] for value, std in pairs
        ]
    header = [target, *(f"probability={name}" for name in model.classes)]
    pairs = zip(predictions.value, predictions.probabilities, strict=True)
    return header, [[value, *(f"{p:.6f}" for p in shares)] for value, shares in pairs]


def replace_predictions(out: Path, content: bytes) -> None:
    """Write predictions to a file, unless it has other content.

    Args:
        out: A file that does not exist, is empty, or contains predictions with the same header.
        content: The new content of the file.

    Raises:
        ValueError: If the file has other content.
    """
    if out.is_file():
        with out.open("rb") as file:
            header = file.readline()
        if header.strip() not in (b"", content.partition(b"\n")[0].strip()):
            raise ValueError(
                f"--out {out} exists and does not contain predictions; choose another path"
            )
    out.write_bytes(content)


# Checks


def _check_parallel(job: "Job", args: argparse.Namespace) -> None:
    if job.method == "curves" and (args.parallel > 1 or args.workers or args.scheduler):
        raise ValueError(
            "--method curves trains one network at a time; "
            "remove --parallel, --workers and --scheduler"
        )


def check_study_path(path: Path, data: Path) -> None:
    """Raise a ValueError if a study cannot be created at a path, or would overwrite the data."""
    from bonas.report import check_report_path
    from bonas.tabular import model_path

    if kind := _RESERVED_SUFFIXES.get(path.suffix.lower()):
        raise ValueError(
            f"--study {path}: the suffix {path.suffix} is reserved for {kind}; "
            f"use for example {path.with_suffix('.db')}"
        )
    if _is_same_file(path, data):
        raise ValueError(
            f"--study {path} would overwrite the data file; choose another path"
        )
    if _is_same_file(model_path(path), data):
        raise ValueError(
            f"the networks of {path} would overwrite the data file {data}; "
            "choose another path with --study FILE"
        )
    if (
        not path.exists()
        and path.parent.is_dir()
        and not os.access(path.parent, os.W_OK)
    ):
        raise ValueError(
            f"the folder {path.parent.resolve()} is not writable; "
            "choose another path with --study FILE"
        )
    check_report_path(path.with_suffix(".html"), path)


def _is_same_file(one: Path, other: Path) -> bool:
    if one.resolve() == other.resolve():
        return True
    return one.exists() and other.exists() and one.samefile(other)
