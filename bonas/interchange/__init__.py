"""Interoperation with Optuna (sampler and export of studies) and ConfigSpace (import of spaces).

Both libraries are optional and are imported when they are first used.
"""

from typing import TYPE_CHECKING, Any

from bonas.interchange.configspace import from_configspace as from_configspace
from bonas.interchange.optuna_storage import to_optuna as to_optuna

if TYPE_CHECKING:
    from bonas.interchange.optuna_sampler import BonasSampler as BonasSampler

__all__ = ["BonasSampler", "from_configspace", "to_optuna"]


def __getattr__(name: str) -> Any:
    if name != "BonasSampler":
        raise AttributeError(f"module 'bonas.interchange' has no attribute {name!r}")
    try:
        from bonas.interchange.optuna_sampler import BonasSampler
    except ModuleNotFoundError as problem:
        raise ImportError(
            "BonasSampler needs Optuna: pip install 'bonas[optuna]'"
        ) from problem
    return BonasSampler
