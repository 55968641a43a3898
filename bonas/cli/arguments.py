"""Parse the arguments of the `bonas` command and handle its errors.

To add a command, write a function in commands.py and list it in `COMMANDS` with its arguments.
"""

import argparse
import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from bonas import __version__
from bonas.cli.commands import predict, report, resume, search
from bonas.cli.run_search import DEFAULT_TRIALS, INTERRUPTED, handle_interrupts

# Exit code of a user error, the same as in argparse.
USER_ERROR = 2

_EXAMPLES = """
examples:
  bonas search                                  scikit-learn's diabetes data, 40 trials
  bonas search houses.csv --target price        your own table
  bonas search houses.csv --target price --impute --drop id --space ensemble --seconds 300
  bonas resume houses.db                        continue an interrupted search
  bonas predict houses.db new.csv --out predictions.csv
  bonas report houses.db                        write houses.html
"""
# The names of `tabular.FAMILIES`, repeated here because the help must not load that module.
FAMILIES = {
    "mlp": "multilayer perceptrons (default)",
    "ensemble": "averages of sparse networks",
    "bnn": "variational Bayesian networks, for regression",
}
_SEARCH = """
Search for a neural network that predicts one column of a table from the others.

DATA is a .csv, .parquet or .npz file (arrays X and y), or the name of one of scikit-learn's data
sets, such as diabetes or wine; for an unknown name, the error lists all. Text columns are one-hot
encoded. One row in five is held out as the test set, which the search never uses. With fewer than
2000 other rows, the search uses five-fold cross-validation. Up to five of the best networks are
saved as an ensemble.
"""
_RESUME = """
Continue an interrupted search. It proposes the same configurations as without the interruption. If
the search is complete, show its result; --trials or --seconds extend it.
"""
_PREDICT = """
Predict new rows with the networks of a search, and write a CSV file: the row number (from 1), then
the value and its standard deviation, or the most probable class and all class probabilities.
"""
_REPORT = "Write the report of a study as one HTML file that works without other files."
METHODS = ("bayes", "curves", "random", "evolution")
_METHOD = """how to choose configurations: bayes, Bayesian optimization (default); curves, Bayesian
optimization on learning curves, which stops bad networks early (--trials then counts the cost of
full training runs); random; evolution, which starts with a random population of a quarter of
--trials (at least 5; 20 without --trials)"""


class Command(NamedTuple):
    """A command of `bonas`, with the name of its function."""

    run: Callable[[argparse.Namespace], int]
    add_arguments: Callable[[argparse.ArgumentParser], None]
    help: str
    description: str
    epilog: str = ""


class _Parser(argparse.ArgumentParser):
    """A parser that reports errors in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(USER_ERROR, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the `bonas` command and return its exit code.

    Args:
        arguments: Arguments of the command; by default, those of the process.
    """
    args, unknown = _make_parser().parse_known_args(arguments)
    if unknown:  # the help of the command lists the known arguments
        args.error(f"unrecognized arguments: {' '.join(unknown)}")
    handle_interrupts()
    try:
        return args.run(args)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the process that reads the output has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INTERRUPTED
    except (ValueError, OSError, ImportError) as error:
        if args.debug:
            raise
        print(f"bonas {args.command}: {_one_line(error)}", file=sys.stderr)
        return USER_ERROR


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


# Arguments


def _make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "bonas",
        description="Search for neural-network architectures by Bayesian optimization.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"bonas {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        subparser = subparsers.add_parser(
            command.run.__name__,
            help=command.help,
            description=command.description,
            epilog=command.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(subparser)
        subparser.add_argument(
            "--debug", action="store_true", help="show the traceback of an error"
        )
        subparser.set_defaults(run=command.run, error=subparser.error)
    return parser


def _add_search_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "data",
        metavar="DATA",
        nargs="?",
        default="diabetes",
        help="table file, or the name of a scikit-learn data set (default: %(default)s)",
    )
    add(
        "--target",
        metavar="COLUMN",
        help="column to predict; required for CSV and Parquet",
    )
    tasks = ("regression", "classification")
    add("--task", choices=tasks, help="default: inferred from the target")
    add(
        "--space",
        choices=tuple(FAMILIES),
        default="mlp",
        help="family of networks: "
        + "; ".join(f"{name}, {words}" for name, words in FAMILIES.items()),
    )
    add("--method", choices=METHODS, default="bayes", help=_METHOD)
    add(
        "--study",
        metavar="FILE",
        type=Path,
        help="study file; the report (.html) and the networks (.network.npz) are saved in the same "
        "folder; default: the name of DATA with the suffix .db",
    )
    add(
        "--seed",
        type=_seed,
        default=0,
        metavar="N",
        help="random seed for the split, the search and the networks (below 2^32); "
        "default: %(default)s",
    )
    add(
        "--impute",
        action="store_true",
        help="fill in missing values with the median or the most frequent category, and add "
        "indicators of missing values as inputs",
    )
    _add_drop_argument(parser)
    add(
        "--categorical",
        metavar="COLUMN",
        action="append",
        default=[],
        help="numeric column to treat as categories; may be repeated",
    )
    _add_run_arguments(parser, f"default: {DEFAULT_TRIALS}, or no limit with --seconds")


def _add_resume_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", type=Path)
    parser.add_argument(
        "--data", metavar="FILE", help="current path of the data, if it has moved"
    )
    _add_run_arguments(parser, "default: as in the search")


def _add_predict_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", type=Path)
    parser.add_argument(
        "new",
        metavar="NEW",
        help="CSV or Parquet file with the columns of the training data",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        help="CSV file to write; default: standard output",
    )
    _add_drop_argument(parser)
    parser.add_argument(
        "--unseen",
        choices=("refuse", "missing"),
        default="refuse",
        help="how to handle a category that is not in the training data: raise an error (default), "
        "or treat it as a missing value",
    )


def _add_report_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", type=Path)
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        help="HTML file to write; default: STUDY with the suffix .html",
    )


def _add_drop_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--drop",
        metavar="COLUMN",
        action="append",
        default=[],
        help="column to ignore; may be repeated",
    )


def _add_run_arguments(parser: argparse.ArgumentParser, trials: str) -> None:
    add = parser.add_argument
    add(
        "--trials",
        type=_positive_int,
        metavar="N",
        help=f"total number of trials ({trials})",
    )
    add(
        "--seconds",
        type=_positive_float,
        metavar="S",
        help="stop starting new trials after S seconds",
    )
    add(
        "--trial-seconds",
        type=_positive_float,
        metavar="S",
        help="fail a trial that takes longer than S seconds",
    )
    workers = parser.add_mutually_exclusive_group()
    workers.add_argument(
        "--parallel",
        type=_positive_int,
        metavar="N",
        default=1,
        help="evaluate N trials at once, in threads",
    )
    workers.add_argument(
        "--workers",
        type=_positive_int,
        metavar="N",
        help="evaluate N trials at once, in processes",
    )
    workers.add_argument(
        "--scheduler",
        metavar="tcp://…",
        help="address of a Dask scheduler to evaluate trials on; its workers must be able to read "
        "DATA at the same path",
    )
    add("--quiet", action="store_true", help="print errors only")
    add("--json", action="store_true", help="print only the result, as one JSON object")


def _positive_int(text: str) -> int:
    return _parse_number(text, int, 1)


def _seed(text: str) -> int:
    return _parse_number(text, int, 0, 2**32 - 1)  # the range of scikit-learn's seeds


def _positive_float(text: str) -> float:
    return _parse_number(text, float, 0.001)


def _parse_number(
    text: str, kind: Callable[[str], Any], minimum: float, maximum: float = math.inf
) -> Any:
    expected = "an integer" if kind is int else "a number"
    try:
        value = kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected {expected}; got {text!r}") from None
    if minimum <= value <= maximum and value < math.inf:
        return value
    limits = f"of at least {minimum:g}"
    if maximum < math.inf:
        limits = f"from {minimum:g} to {maximum}"
    raise argparse.ArgumentTypeError(f"expected {expected} {limits}; got {text}")


COMMANDS = (
    Command(
        search,
        _add_search_arguments,
        "search for a network on a table",
        _SEARCH,
        epilog=_EXAMPLES,
    ),
    Command(resume, _add_resume_arguments, "continue an interrupted search", _RESUME),
    Command(
        predict,
        _add_predict_arguments,
        "predict new rows with the networks of a search",
        _PREDICT,
    ),
    Command(report, _add_report_arguments, "write an HTML report of a study", _REPORT),
)


if __name__ == "__main__":
    sys.exit(main())
