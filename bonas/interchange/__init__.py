"""Other people's tools: `BonasSampler` for those who stay with Optuna, `from_configspace` for spaces that are written already.

Both packages are optional, and neither is imported before it is used.
"""

from typing import TYPE_CHECKING, Any

from bonas.interchange.configspace import from_configspace as from_configspace

if TYPE_CHECKING:
    from bonas.interchange.sampler import BonasSampler as BonasSampler

__all__ = ["BonasSampler", "from_configspace"]


def __getattr__(name: str) -> Any:
    if name != "BonasSampler":
        raise AttributeError(f"module 'bonas.interchange' has no attribute {name!r}")
    try:
        from bonas.interchange.sampler import BonasSampler  # its base class is Optuna's
    except ModuleNotFoundError as problem:
        raise ImportError("BonasSampler needs Optuna: pip install bonas[optuna]") from problem
    return BonasSampler
