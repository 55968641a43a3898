"""Neural-network architecture search by Bayesian optimization, in JAX.

Importing bonas changes no global setting and is fast, because its packages are imported lazily, on
first use (PEP 562). Call `bonas.configure()` once at the start of a program for float64, one BLAS
thread and a persistent compilation cache.
"""

import importlib
from typing import TYPE_CHECKING, Any

from bonas.configuration import configure as configure

if TYPE_CHECKING:
    from bonas import acquire as acquire
    from bonas import curves as curves
    from bonas import gp as gp
    from bonas import infer as infer
    from bonas import interchange as interchange
    from bonas import nets as nets
    from bonas import plots as plots
    from bonas import problems as problems
    from bonas import report as report
    from bonas import search as search
    from bonas import study as study
    from bonas import surrogates as surrogates
    from bonas import tabular as tabular
    from bonas.acquire import ei as ei
    from bonas.acquire import greedy as greedy
    from bonas.acquire import lcb as lcb
    from bonas.acquire import log_ei as log_ei
    from bonas.acquire import log_pi as log_pi
    from bonas.acquire import pi as pi
    from bonas.checked_data import dataset as dataset
    from bonas.checked_data import grow as grow
    from bonas.curves import curve_search as curve_search
    from bonas.curves import run_curves as run_curves
    from bonas.curves import run_curves_many as run_curves_many
    from bonas.data import Dataset as Dataset
    from bonas.data import append as append
    from bonas.data import empty as empty
    from bonas.data import standardize as standardize
    from bonas.search import Observation as Observation
    from bonas.search import add_gp_ucb as add_gp_ucb
    from bonas.search import bayes as bayes
    from bonas.search import minimize as minimize
    from bonas.search import rembo as rembo
    from bonas.search import run as run
    from bonas.search import run_many as run_many
    from bonas.search import turbo as turbo
    from bonas.spaces import Choice as Choice
    from bonas.spaces import Float as Float
    from bonas.spaces import Int as Int
    from bonas.spaces import Ordinal as Ordinal
    from bonas.spaces import Space as Space
    from bonas.spaces import TableSpace as TableSpace
    from bonas.study import Study as Study
    from bonas.tabular import load as load

__version__ = "0.1.0"

# Packages that are part of the API.
_PACKAGES = (
    "acquire",
    "curves",
    "gp",
    "infer",
    "interchange",
    "nets",
    "plots",
    "problems",
    "report",
    "search",
    "study",
    "surrogates",
    "tabular",
)
# Other modules that are documented. Most names of `data` and `spaces` are also exported here.
_MODULES = (
    "checked_data",
    "cli",
    "data",
    "distances",
    "extreme_values",
    "fast_trigonometry",
    "gaussian_density",
    "half_capacity",
    "linalg",
    "spaces",
    "static_settings",
    "traced_settings",
    "xla_options",
)
# Public names by the package that exports them.
_NAMES = {
    "Choice": "bonas.spaces",
    "Dataset": "bonas.data",
    "Float": "bonas.spaces",
    "Int": "bonas.spaces",
    "Observation": "bonas.search",
    "Ordinal": "bonas.spaces",
    "Space": "bonas.spaces",
    "Study": "bonas.study",
    "TableSpace": "bonas.spaces",
    "add_gp_ucb": "bonas.search",
    "append": "bonas.data",
    "bayes": "bonas.search",
    "curve_search": "bonas.curves",
    "dataset": "bonas.checked_data",
    "ei": "bonas.acquire",
    "empty": "bonas.data",
    "greedy": "bonas.acquire",
    "grow": "bonas.checked_data",
    "lcb": "bonas.acquire",
    "load": "bonas.tabular",
    "log_ei": "bonas.acquire",
    "log_pi": "bonas.acquire",
    "minimize": "bonas.search",
    "pi": "bonas.acquire",
    "rembo": "bonas.search",
    "run": "bonas.search",
    "run_curves": "bonas.curves",
    "run_curves_many": "bonas.curves",
    "run_many": "bonas.search",
    "standardize": "bonas.data",
    "turbo": "bonas.search",
}
__all__ = sorted([*_NAMES, *_PACKAGES, "configure"])


def __getattr__(name: str) -> Any:
    if name in _PACKAGES or name in _MODULES:
        return importlib.import_module(f"bonas.{name}")
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'bonas' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
