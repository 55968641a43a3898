"""The `bonas` command: what it may be told, and how it says what went wrong."""

import argparse
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from bonas import __version__
from bonas.study.commands import INTERRUPTED, TRIALS, predict, report, resume, search

BAD = 2  # exit code: the user's error

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
_RESUME = """
Go on with a search that was stopped, with the very same points. Of one that is finished this says what it found; --trials or
--seconds let it try more.
"""
_PREDICT = """
Predict with the networks that a search found, as CSV: `row`, which counts the rows of NEW.csv below its header from 1, then the
target and its standard deviation, or the likeliest class and the probability of each.
"""
_METHODS = """how points are chosen: bayes, Bayesian optimisation (default); curves, Bayesian optimisation on learning curves,
which trains many networks a little and few to the end, where --trials counts the training of so many whole networks; random;
evolution, whose first quarter of --trials (5 at least, 20 without --trials) is random"""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD, f"{self.prog}: {message} ({self.prog} --help says more)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    args, unknown = _parser().parse_known_args(arguments)
    if unknown:  # told by the parser of the command, whose help has what it knows
        args.refuse(f"unrecognised arguments: {' '.join(unknown)}")
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _interrupt)
    try:
        return args.run(args)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # whoever was reading has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INTERRUPTED
    except (ValueError, OSError, ImportError) as problem:
        if args.debug:
            raise
        print(f"bonas {args.command}: {_one_line(problem)}", file=sys.stderr)
        return BAD


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Ctrl-C; sent again a little later where it meets a callback of JAX's, which would swallow it."""
    while frame is not None:
        if frame.f_code.co_name == "_xla_gc_callback":
            threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


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
        made.set_defaults(run=run, refuse=made.error)
        made.add_argument("--debug", action="store_true", help="show where an error comes from")
        return made

    _search_arguments(command("search", search, "search for a network on a table of data", _SEARCH, _EXAMPLES))
    _resume_arguments(command("resume", resume, "go on with a search that was stopped", _RESUME))
    _predict_arguments(command("predict", predict, "predict with the networks that a search found", _PREDICT))
    _report_arguments(command("report", report, "write an HTML report of a study"))
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
        "--study",
        metavar="FILE",
        type=Path,
        help="where everything is kept, reports (.html) and networks (.npz) beside it; default: DATA with the ending .db",
    )
    parser.add_argument("--seed", type=_natural, default=0, metavar="N", help="of the split, the search and the networks")
    parser.add_argument(
        "--impute",
        action="store_true",
        help="fill in missing values: the median, or the most frequent value; where they were becomes an input",
    )
    parser.add_argument("--drop", metavar="COL", action="append", default=[], help="a column to leave out; may be repeated")
    parser.add_argument(
        "--categorical", metavar="COL", action="append", default=[], help="numbers that are categories; may be repeated"
    )
    _running_arguments(parser, f"default: {TRIALS}, or as many as --seconds allows")


def _resume_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", type=Path)
    parser.add_argument("--data", metavar="FILE", help="where the data are now, if they were moved")
    _running_arguments(parser, "default: as the search was told")


def _predict_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", type=Path)
    parser.add_argument("new", metavar="NEW.csv", help="rows with the columns of training")
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="a CSV file, new or of such predictions; default: to the terminal"
    )
    parser.add_argument("--drop", metavar="COL", action="append", default=[], help="a column to leave out; may be repeated")
    parser.add_argument(
        "--unseen",
        choices=("refuse", "missing"),
        default="refuse",
        help="what becomes of values of categories that training did not have: refused (default), or taken for missing",
    )


def _report_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", type=Path)
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="a file, new or a report; default: STUDY with the ending .html"
    )


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


if __name__ == "__main__":
    sys.exit(main())
