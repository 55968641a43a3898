"""Convert between Optuna's distributions and bonas parameters.

A distribution with a step becomes an `Int` that counts the steps.
"""

import math
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from bonas.spaces import Choice, Float, Int, Parameter

# Types of options that Optuna stores.
_OPTUNA_TYPES = (type(None), bool, int, float, str)


def to_distribution(parameter: Parameter) -> BaseDistribution:
    """Convert a parameter to an Optuna distribution; see `optuna_option` for its options."""
    if parameter.choices:
        return CategoricalDistribution(
            [optuna_option(option) for option in parameter.choices]
        )
    if parameter.size < math.inf:
        return IntDistribution(
            int(parameter.low), int(parameter.high), log=parameter.log
        )
    return FloatDistribution(
        float(parameter.low), float(parameter.high), log=parameter.log
    )


def optuna_option(option: Any) -> Any:
    """Return an option itself if Optuna can store it, or else its `repr`."""
    return option if isinstance(option, _OPTUNA_TYPES) else repr(option)


def to_parameter(distribution: BaseDistribution) -> Parameter:
    """Convert an Optuna distribution to a parameter."""
    if isinstance(distribution, CategoricalDistribution):
        return Choice(*distribution.choices)
    if not isinstance(distribution, (FloatDistribution, IntDistribution)):
        raise ValueError(
            "expected a float, integer or categorical distribution; got "
            f"{type(distribution).__name__}"
        )
    if _has_step(distribution):
        return Int(0, to_bonas_value(distribution, distribution.high))
    if isinstance(distribution, IntDistribution):
        return Int(distribution.low, distribution.high, log=distribution.log)
    return Float(distribution.low, distribution.high, log=distribution.log)


def _has_step(distribution: BaseDistribution) -> bool:
    """Return whether a distribution has a step other than 1 between integers."""
    step = getattr(distribution, "step", None)
    return step is not None and (
        step != 1 or isinstance(distribution, FloatDistribution)
    )


def to_bonas_value(distribution: Any, value: Any) -> Any:
    """Convert a value of an Optuna distribution to a value of `to_parameter(distribution)`."""
    if not _has_step(distribution):
        return value
    return round((value - distribution.low) / distribution.step)


def to_optuna_value(distribution: Any, value: Any) -> Any:
    """Convert a value of `to_parameter(distribution)` to a value of the Optuna distribution."""
    if not _has_step(distribution):
        return value
    return distribution.low + value * distribution.step
