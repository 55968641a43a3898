"""Neural-network architecture search by Bayesian optimisation, in pure JAX.

Importing bonas changes no global setting and loads nothing heavy: each name below is imported when first used (PEP 562).
Call `bonas.configure()` once at the start of a program for float64, one BLAS thread and a persistent compilation cache.
"""

import importlib
from typing import TYPE_CHECKING, Any

# Not lazy, and light: a later import of the module of the same name would put it in the function's place.
from bonas.configure import configure as configure

if TYPE_CHECKING:
    from bonas import gp as gp
    from bonas import infer as infer
    from bonas.data import Dataset as Dataset
    from bonas.data import append as append
    from bonas.data import dataset as dataset
    from bonas.spaces import Choice as Choice
    from bonas.spaces import Float as Float
    from bonas.spaces import Int as Int
    from bonas.spaces import Space as Space

__version__ = "0.1.0"

_ROOMS = ("gp", "infer")  # modules that are names of their own
_HOMES = {  # name -> the module it lives in
    "Dataset": "bonas.data",
    "dataset": "bonas.data",
    "append": "bonas.data",
    "Float": "bonas.spaces",
    "Int": "bonas.spaces",
    "Choice": "bonas.spaces",
    "Space": "bonas.spaces",
}
__all__ = sorted([*_HOMES, *_ROOMS, "configure"])


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"bonas.{name}")
    if name in _HOMES:
        found = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'bonas' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
