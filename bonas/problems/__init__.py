"""What is searched: functions with known minima, data sets, networks to train, tabulated results.

Modules other than `functions` and `high` are loaded when first used (PEP 562): some need half of bonas.
"""

import importlib
from typing import TYPE_CHECKING, Any

from bonas.problems import functions as functions
from bonas.problems import high as high
from bonas.problems.functions import Problem as Problem

if TYPE_CHECKING:
    from bonas.problems import bnn_table as bnn_table
    from bonas.problems import datasets as datasets
    from bonas.problems import learning_curves as learning_curves
    from bonas.problems import networks as networks
    from bonas.problems import raiders as raiders
    from bonas.problems import synthetic as synthetic
    from bonas.problems import tables as tables
    from bonas.problems import twist as twist
    from bonas.problems import wilton as wilton


_MODULES = (
    "bnn_table",
    "datasets",
    "learning_curves",
    "networks",
    "raiders",
    "synthetic",
    "tables",
    "twist",
    "wilton",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"bonas.problems.{name}")
    raise AttributeError(f"module 'bonas.problems' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
