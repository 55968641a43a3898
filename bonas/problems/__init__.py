"""Problems to search: functions with known minima, data sets, and tables of trained networks.

Modules are imported when they are first used, because some of them import most of bonas. Reading a
table needs few of them.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bonas.problems import bnn_table as bnn_table
    from bonas.problems import datasets as datasets
    from bonas.problems import examples as examples
    from bonas.problems import functions as functions
    from bonas.problems import high_dimensional as high_dimensional
    from bonas.problems import learning_curves as learning_curves
    from bonas.problems import metaqnn as metaqnn
    from bonas.problems import npz_files as npz_files
    from bonas.problems import synthetic as synthetic
    from bonas.problems import tables as tables
    from bonas.problems import uci as uci
    from bonas.problems.functions import Problem as Problem

_MODULES = (
    "bnn_table",
    "datasets",
    "examples",
    "functions",
    "high_dimensional",
    "learning_curves",
    "metaqnn",
    "npz_files",
    "synthetic",
    "tables",
    "uci",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"bonas.problems.{name}")
    if name == "Problem":
        return importlib.import_module("bonas.problems.functions").Problem
    raise AttributeError(f"module 'bonas.problems' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, "Problem"})
