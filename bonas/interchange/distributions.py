"""Optuna's distributions and our parameters: each as the other. A step is counted in whole numbers."""

from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from bonas.spaces import Choice, Float, Int
from bonas.spaces.parameters import Parameter

PLAIN = (type(None), bool, int, float, str)  # kinds of options that an Optuna storage keeps as they are


def distribution(parameter: Parameter) -> BaseDistribution:
    """The Optuna distribution of a parameter; options that Optuna does not keep are there as text."""
    if isinstance(parameter, Choice):
        return CategoricalDistribution([option(name) for name in parameter.names])
    if isinstance(parameter, Int):
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.log)
    return FloatDistribution(float(parameter.low), float(parameter.high), log=parameter.log)


def option(name: Any) -> Any:
    """An option as Optuna can keep it: itself where it is plain, else its text."""
    return name if isinstance(name, PLAIN) else repr(name)


def parameter(distribution: BaseDistribution) -> Parameter:
    """The parameter of an Optuna distribution."""
    if isinstance(distribution, CategoricalDistribution):
        return Choice(*distribution.choices)
    if not isinstance(distribution, (FloatDistribution, IntDistribution)):
        raise ValueError(f"no parameter of ours is a {type(distribution).__name__}")
    if stepped(distribution):
        return Int(0, to_ours(distribution, distribution.high))
    if isinstance(distribution, IntDistribution):
        return Int(distribution.low, distribution.high, log=distribution.log)
    return Float(distribution.low, distribution.high, log=distribution.log)


def stepped(distribution: BaseDistribution) -> bool:
    """Whether values are steps apart, other than whole numbers one apart."""
    step = getattr(distribution, "step", None)
    return step is not None and (step != 1 or isinstance(distribution, FloatDistribution))


def to_ours(distribution: BaseDistribution, value: Any) -> Any:
    """A value of an Optuna distribution as one of `parameter(distribution)`."""
    return round((value - distribution.low) / distribution.step) if stepped(distribution) else value  # type: ignore[attr-defined]


def to_theirs(distribution: BaseDistribution, value: Any) -> Any:
    """The inverse of `to_ours`."""
    return distribution.low + value * distribution.step if stepped(distribution) else value  # type: ignore[attr-defined]
