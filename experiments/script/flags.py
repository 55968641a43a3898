"""The flags that every experiment takes, and what a benchmark does with its own."""

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

Config = TypeVar("Config", bound=Any)  # a frozen dataclass


def parser(doc: str | None, name: str, *, smoke: str, seeds: str) -> argparse.ArgumentParser:
    """--smoke, --seeds and --out, whose default is results/name; the help shows the docstring of the script."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--smoke", action="store_true", help=smoke)
    made.add_argument("--seeds", type=positive, metavar="N", help=seeds)
    made.add_argument("--out", type=Path, default=Path("results") / name, metavar="DIR", help="default %(default)s")
    return made


def benchmark(doc: str | None, name: str, *, smoke: str, seeds: str) -> argparse.ArgumentParser:
    """The same and --core, for `pin`."""
    made = parser(doc, name, smoke=smoke, seeds=seeds)
    made.add_argument("--core", type=int, help="the core that everything runs on (default: the last one)")
    return made


def read(
    parser: argparse.ArgumentParser, full: Config, smoke: Config, *, counted: str = "seeds"
) -> tuple[argparse.Namespace, Config]:
    """The flags, and the settings that they choose, in which --seeds stands for the field `counted`."""
    args = parser.parse_args()
    config = smoke if args.smoke else full
    return args, replace(config, **{counted: args.seeds}) if args.seeds else config


def positive(text: str) -> int:
    """A whole number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1; got {number}")
    return number


def pin(core: int | None) -> None:
    """Keep this process and its children on one core, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0)) if core is None else core})
