"""Neural-network architecture search by Bayesian optimisation, in pure JAX.

Importing bonas changes no global setting and loads nothing heavy: each name below is imported when first used (PEP 562).
Call `bonas.configure()` once at the start of a program for float64, one BLAS thread and a persistent compilation cache.
"""

import importlib
from typing import TYPE_CHECKING, Any

# Not lazy, and light: a later import of the module of the same name would put it in the function's place.
from bonas.configure import configure as configure

if TYPE_CHECKING:
    from bonas import acquire as acquire
    from bonas import export as export
    from bonas import gp as gp
    from bonas import infer as infer
    from bonas import interchange as interchange
    from bonas import nets as nets
    from bonas import plots as plots
    from bonas import problems as problems
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
    from bonas.data import Dataset as Dataset
    from bonas.data import append as append
    from bonas.data import dataset as dataset
    from bonas.data import empty as empty
    from bonas.data import grow as grow
    from bonas.data import standardise as standardise
    from bonas.search.additive import add_gp_ucb as add_gp_ucb
    from bonas.search.bayes import bayes as bayes
    from bonas.search.curves import curves as curves
    from bonas.search.embedded import rembo as rembo
    from bonas.search.minimise import minimise as minimise
    from bonas.search.run import run as run
    from bonas.search.run import run_many as run_many
    from bonas.search.run_curves import run_curves as run_curves
    from bonas.search.run_curves import run_curves_many as run_curves_many
    from bonas.search.trust import turbo as turbo
    from bonas.search.types import Trial as Trial
    from bonas.spaces import Choice as Choice
    from bonas.spaces import Float as Float
    from bonas.spaces import Int as Int
    from bonas.spaces import Listed as Listed
    from bonas.spaces import Space as Space
    from bonas.study.study import Study as Study
    from bonas.tabular.kept import load as load

__version__ = "0.1.0"

_ROOMS = (  # modules that are names of their own
    "acquire",
    "export",
    "gp",
    "infer",
    "interchange",
    "nets",
    "plots",
    "problems",
    "search",
    "study",
    "surrogates",
    "tabular",
)
_BENEATH = ("data", "linalg", "spaces")  # modules that are found, too; most of their names stand below
_HOMES = {  # name -> the module it lives in
    "Dataset": "bonas.data",
    "dataset": "bonas.data",
    "append": "bonas.data",
    "empty": "bonas.data",
    "grow": "bonas.data",
    "standardise": "bonas.data",
    "Float": "bonas.spaces",
    "Int": "bonas.spaces",
    "Listed": "bonas.spaces",
    "Choice": "bonas.spaces",
    "Space": "bonas.spaces",
    "Study": "bonas.study.study",
    "load": "bonas.tabular.kept",
    "add_gp_ucb": "bonas.search.additive",
    "bayes": "bonas.search.bayes",
    "curves": "bonas.search.curves",
    "minimise": "bonas.search.minimise",
    "rembo": "bonas.search.embedded",
    "run": "bonas.search.run",
    "run_many": "bonas.search.run",
    "run_curves": "bonas.search.run_curves",
    "run_curves_many": "bonas.search.run_curves",
    "turbo": "bonas.search.trust",
    "Trial": "bonas.search.types",
    "ei": "bonas.acquire",
    "log_ei": "bonas.acquire",
    "pi": "bonas.acquire",
    "log_pi": "bonas.acquire",
    "lcb": "bonas.acquire",
    "greedy": "bonas.acquire",
}
__all__ = sorted([*_HOMES, *_ROOMS, "configure"])


def __getattr__(name: str) -> Any:
    if name in _ROOMS or name in _BENEATH:
        return importlib.import_module(f"bonas.{name}")
    if name in _HOMES:
        found = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'bonas' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
