"""The `bonas` command. Nothing heavy is imported before a command runs: `bonas --help` answers at once."""

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from bonas import __version__

if TYPE_CHECKING:
    from bonas.study.display import Silent
    from bonas.study.job import Job
    from bonas.study.study import Study
    from bonas.tabular.prepared import Prepared

TRIALS = 40  # by default
_PATIENCE = 10  # seconds to wait for a cluster to answer
BAD, INTERRUPTED = 2, 130  # exit codes: the user's error, and Ctrl-C

_EXAMPLES = """
examples:
  bonas search                                  the diabetes data that scikit-learn ships, 40 trials
  bonas search houses.csv --target price        a table of your own
  bonas search houses.csv --target price --impute --drop id --space ensemble --seconds 300
  bonas resume houses.db                        go on where a search was stopped
  bonas predict houses.db new.csv --out predictions.csv
  bonas report houses.db                        one HTML file, houses.html
"""
_SEARCH = """
Search for a neural network that predicts one column of a table from the others.

DATA is a .csv or .npz file (arrays X and y), or a set that scikit-learn ships: diabetes, breast_cancer, wine, iris, digits.
Columns of text become one-hot columns. One row in five is for the test and never seen by the search; on fewer than 2000
others validation is by five folds. The networks of up to five of the best configurations are kept, and predict together.
"""
_METHODS = """how points are chosen: bayes, Bayesian optimisation (default); curves, Bayesian optimisation on learning curves,
which trains many networks a little and few to the end, where --trials counts the training of so many whole networks; random;
evolution"""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    args = _parser().parse_args(arguments)
    try:
        return args.run(args)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return INTERRUPTED
    except (ValueError, OSError, ImportError) as problem:
        if args.debug:
            raise
        print(f"bonas {args.command}: {_one_line(problem)}", file=sys.stderr)
        return BAD


def _one_line(problem: BaseException) -> str:
    if isinstance(problem, OSError) and problem.filename is not None:
        return f"{problem.filename}: {problem.strerror}"
    return " ".join(str(problem).split()) or type(problem).__name__


# Arguments


def _parser() -> argparse.ArgumentParser:
    whole = argparse.RawDescriptionHelpFormatter
    parser = _Parser("bonas", description="Neural-network architecture search.", epilog=_EXAMPLES, formatter_class=whole)
    parser.add_argument("--version", action="version", version=f"bonas {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[Any], int], line: str, text: str = "", epilog: str = "") -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=line, description=text or line, epilog=epilog, formatter_class=whole)
        made.set_defaults(run=run)
        made.add_argument("--debug", action="store_true", help="show where an error comes from")
        return made

    _search_arguments(command("search", _search, "search for a network on a table of data", _SEARCH, _EXAMPLES))
    resume = command("resume", _resume, "go on with a search that was stopped")
    resume.add_argument("study", metavar="STUDY", type=Path)
    resume.add_argument("--data", metavar="FILE", help="where the data are now, if they were moved")
    _running_arguments(resume, "default: as the search was told")
    predict = command("predict", _predict, "predict with the networks that a search found")
    predict.add_argument("study", metavar="STUDY", type=Path)
    predict.add_argument("new", metavar="NEW.csv", help="rows with the columns of training")
    predict.add_argument("--out", metavar="FILE", type=Path, help="a CSV file; default: to the terminal")
    predict.add_argument("--drop", metavar="COL", action="append", default=[], help="a column to leave out; may be repeated")
    report = command("report", _report, "write an HTML report of a study")
    report.add_argument("study", metavar="STUDY", type=Path)
    report.add_argument("--out", metavar="FILE", type=Path, help="default: STUDY with the ending .html")
    return parser


def _search_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", nargs="?", default="diabetes", help="default: %(default)s")
    parser.add_argument("--target", metavar="COL", help="the column to predict; needed for a CSV file")
    parser.add_argument("--task", choices=("regression", "classification"), help="default: inferred from the target")
    parser.add_argument(
        "--space",
        choices=("mlp", "ensemble", "bnn"),
        default="mlp",
        help="mlp: plain networks (default); ensemble: averages of sparse networks; bnn: variational networks, for regression",
    )
    parser.add_argument("--method", choices=("bayes", "curves", "random", "evolution"), default="bayes", help=_METHODS)
    parser.add_argument(
        "--study", metavar="FILE", type=Path, help="where everything is kept; default: DATA with the ending .db"
    )
    parser.add_argument("--seed", type=_natural, default=0, metavar="N", help="of the split, the search and the networks")
    parser.add_argument("--impute", action="store_true", help="fill in missing values: the median, or the most frequent value")
    parser.add_argument("--drop", metavar="COL", action="append", default=[], help="a column to leave out; may be repeated")
    parser.add_argument(
        "--categorical", metavar="COL", action="append", default=[], help="numbers that are categories; may be repeated"
    )
    _running_arguments(parser, f"default: {TRIALS}, or as many as --seconds allows")


def _running_arguments(parser: argparse.ArgumentParser, trials: str) -> None:
    parser.add_argument("--trials", type=_positive, metavar="N", help=f"configurations to try in all ({trials})")
    parser.add_argument("--seconds", type=_seconds, metavar="S", help="no new trial is begun after so long")
    parser.add_argument("--trial-seconds", type=_seconds, metavar="S", help="a trial that takes longer has failed")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--parallel", type=_positive, metavar="N", default=1, help="trials at once, in threads of this process")
    where.add_argument("--workers", type=_positive, metavar="N", help="trials at once, in processes of their own")
    where.add_argument(
        "--scheduler",
        metavar="tcp://…",
        help="trials on the workers of a Dask cluster, which must find DATA under the same path",
    )
    parser.add_argument("--quiet", action="store_true", help="say nothing but errors")
    parser.add_argument("--json", action="store_true", help="say nothing but one JSON object at the end")


def _positive(text: str) -> int:
    return _number(text, int, 1)


def _natural(text: str) -> int:
    return _number(text, int, 0)


def _seconds(text: str) -> float:
    return _number(text, float, 0.001)


def _number(text: str, kind: Callable[[str], Any], least: float) -> Any:
    try:
        value = kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a {'whole ' if kind is int else ''}number") from None
    if not least <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be at least {least:g}; got {text}")
    return value


# Commands


def _search(args: argparse.Namespace) -> int:
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
        study.note("budget", {"trials": args.trials, "seconds": args.seconds})
        return _run(study, job, args)


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


def _resume(args: argparse.Namespace) -> int:
    from dataclasses import replace

    import bonas

    bonas.configure()
    from bonas.study.job import checked, job_of, open_study
    from bonas.study.study import Study

    with Study(args.study) as study:
        job, budget = job_of(study), study.notes.get("budget", {})
    moved = checked(replace(job, data=str(Path(args.data).resolve())) if args.data else job)
    if args.trials is None and args.seconds is None:
        args.trials, args.seconds = budget.get("trials"), budget.get("seconds")
    _check_places(job, args)
    with open_study(args.study, job, moved) as study:
        return _run(study, moved, args)


def _predict(args: argparse.Namespace) -> int:
    from bonas.tabular.kept import load
    from bonas.tabular.written import write_predictions

    if args.out and args.out.exists() and args.out.resolve() in (Path(args.new).resolve(), args.study.resolve()):
        raise ValueError(f"--out {args.out} would overwrite what is read: name another file")
    found = load(args.study)
    predictions = found.predict(args.new, drop=args.drop)
    write_predictions(args.out, found, predictions)
    return 0


def _report(args: argparse.Namespace) -> int:
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


def _run(study: "Study", job: "Job", args: argparse.Namespace) -> int:
    from bonas.study.job import STAGES, prepared
    from bonas.study.result import finish

    total = args.trials and args.trials * (STAGES if job.method == "curves" else 1)
    table = prepared(job)
    try:
        with _display(args, total, len(study.trials)) as display:
            for line in _opening(table, study, job):
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
    from bonas.study.job import Objective, StageObjective

    objective: Any = StageObjective(job, study) if job.method == "curves" else Objective(job)
    limits = {"seconds": args.seconds, "trial_seconds": args.trial_seconds, "progress": False, "watch": display.watch}
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


def _display(args: argparse.Namespace, total: int | None, done: int) -> "Silent":
    from bonas.study.display import Lines, Live, Silent
    from bonas.tabular.spaces import in_words

    if args.quiet or args.json:
        return Silent()
    return Live(total, in_words, done, args.seconds) if sys.stdout.isatty() else Lines(total, in_words)


def _opening(table: "Prepared", study: "Study", job: "Job") -> list[str]:
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
        f"study {study.path}" + (f", which has {before} trials already" if before else ""),
    ]


def _close(study: "Study", job: "Job", args: argparse.Namespace, result: dict[str, Any]) -> None:
    from bonas.study.report import write_report
    from bonas.study.result import lines
    from bonas.tabular.kept import path_of

    report = study.path.with_suffix(".html")
    write_report(study, report)
    places = {"study": str(study.path), "network": str(path_of(study.path)), "report": str(report)}
    if args.json:
        states = [record.state for record in study.trials]
        counts = {"told": states.count("told"), "failed": states.count("failed")}
        print(json.dumps({**places, "data": job.data, "seed": job.seed, "trials": counts, **result}))
    elif not args.quiet:
        print("\n".join(["", *lines(result), "", *(f"{name:<8} {place}" for name, place in places.items())]))
        print(f"predict  bonas predict {study.path} NEW.csv")


if __name__ == "__main__":
    sys.exit(main())
