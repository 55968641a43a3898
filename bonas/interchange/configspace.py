"""Spaces written for ConfigSpace (Lindauer et al. 2019) as spaces of ours."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from operator import and_, or_
from typing import Any

from bonas.spaces import Choice, Float, Int, Space
from bonas.spaces.conditions import Condition, Terms
from bonas.spaces.parameters import Parameter

_COMPARISONS = {
    "EqualsCondition": "==",
    "NotEqualsCondition": "!=",
    "LessThanCondition": "<",
    "GreaterThanCondition": ">",
}


Term = tuple[str, str, Any]


@dataclass(frozen=True)
class Both:
    """A condition that holds where all of several do."""

    parts: tuple[Condition, ...]

    def __call__(self, values: Mapping[str, Any]):
        return reduce(and_, [part(values) for part in self.parts])


@dataclass(frozen=True)
class Either:
    """A condition that holds where one of several does."""

    parts: tuple[Condition, ...]

    def __call__(self, values: Mapping[str, Any]):
        return reduce(or_, [part(values) for part in self.parts])


def from_configspace(configspace: Any) -> Space:
    """The space of a ConfigSpace.ConfigurationSpace: the same names, ranges, scales, options and conditions.

    An ordinal becomes a Choice, whose options have no order for a model, with a warning: where the order matters, search an
    Int of positions instead, and look the option up in the objective. A constant becomes a Choice of one option. Default
    values are dropped. What a Space cannot say is a ValueError: forbidden clauses, priors and weights, and conditions that
    hold although a parameter they look at is inactive (there, a Space has the child inactive as well).
    """
    if not hasattr(configspace, "forbidden_clauses"):
        raise ValueError(f"expected a ConfigSpace.ConfigurationSpace; got {type(configspace).__name__}")
    if configspace.forbidden_clauses:
        clause = configspace.forbidden_clauses[0]
        raise ValueError(
            f"forbidden clauses cannot be represented: {clause}. Let the objective fail there (a failed trial is not asked "
            "again), or express it by a condition"
        )
    parameters = {name: _parameter(name, each) for name, each in configspace.items()}
    conditions = {each.child.name: _condition(each) for each in configspace.conditions}
    for name, condition in conditions.items():
        _check_inactive_parents(name, condition, conditions)
        parameters[name] = _under(parameters[name], condition)
    return Space(**parameters)


def _parameter(name: str, given: Any) -> Parameter:
    """A parameter without its condition; by the name of its class, so that the package need not be imported."""
    kind = type(given).__name__.removesuffix("Hyperparameter")
    if kind == "UniformFloat":
        return Float(float(given.lower), float(given.upper), log=given.log)
    if kind == "UniformInteger":
        return Int(int(given.lower), int(given.upper), log=given.log)
    if kind == "Ordinal":
        warnings.warn(
            f"parameter {name!r}: the order of its options is lost; the model takes each for unlike the others", stacklevel=4
        )
        return Choice(*given.sequence)
    if kind == "Constant":
        return Choice(given.value)
    if kind == "Categorical" and (given.weights is None or len(set(given.weights)) == 1):
        return Choice(*given.choices)
    what = "the weights of its options" if kind == "Categorical" else f"the prior of a {type(given).__name__}"
    raise ValueError(
        f"parameter {name!r}: {what} cannot be represented; `configspace.remove_hyperparameter_priors()` gives a space without"
    )


def _under(parameter: Parameter, condition: Condition) -> Parameter:
    return Choice(*parameter.names, when=condition) if isinstance(parameter, Choice) else replace(parameter, when=condition)


def _condition(given: Any) -> Condition:
    kind = type(given).__name__
    if kind == "AndConjunction":
        return _every([_condition(part) for part in given.components])
    if kind == "OrConjunction":
        return Either(tuple(_condition(part) for part in given.components))
    if kind == "InCondition":
        return Either(tuple(_term(given.parent, "==", value) for value in given.values))
    if kind not in _COMPARISONS:
        raise ValueError(f"parameter {given.child.name!r}: a {kind} cannot be represented")
    return _term(given.parent, _COMPARISONS[kind], given.value)


def _every(parts: list[Condition]) -> Condition:
    """One list of terms where all are such lists, since that can be stored; else the parts together."""
    if all(isinstance(part, Terms) for part in parts):
        return Terms(tuple(term for part in parts for term in part.terms))  # type: ignore[attr-defined]
    return Both(tuple(parts))


def _term(parent: Any, comparison: str, value: Any) -> Condition:
    """One comparison; the order of an ordinal is spelt out, since the options of a Choice have none."""
    options = (parent.value,) if hasattr(parent, "value") else getattr(parent, "choices", getattr(parent, "sequence", None))
    if options is None:
        return Terms(((parent.name, comparison, float(value)),))
    place = options.index(value)
    if comparison in ("==", "!="):
        return Terms(((parent.name, comparison, place),))
    beyond = range(place) if comparison == "<" else range(place + 1, len(options))
    if not beyond:
        raise ValueError(f"a condition never holds: no option of {parent.name!r} is {comparison} {value!r}")
    return Either(tuple(Terms(((parent.name, "==", other),)) for other in beyond))


def _check_inactive_parents(name: str, condition: Condition, conditions: Mapping[str, Condition]) -> None:
    """Refuses what ConfigSpace may find true although a parent is inactive: `!=`, and `or` of several parents."""
    needed = set(_needed(condition))
    for part in needed:
        terms = list(_terms(part))
        parents = {parent for parent, _, _ in terms}
        if len(parents) == 1 and all(comparison != "!=" for _, comparison, _ in terms):
            continue
        for parent in sorted(parents & set(conditions)):
            if not needed.issuperset(_needed(conditions[parent])):
                raise ValueError(
                    f"parameter {name!r}: its condition may hold where {parent!r} is inactive, which cannot be represented; "
                    f"combine it by `and` with the condition of {parent!r}"
                )


def _needed(condition: Condition) -> Iterator[Term | Either]:
    """The parts of a condition that must all hold."""
    if isinstance(condition, Either):
        yield condition
    else:
        yield from condition.terms if isinstance(condition, Terms) else chain.from_iterable(map(_needed, condition.parts))  # type: ignore[attr-defined]


def _terms(part: Term | Either) -> Iterator[Term]:
    """All comparisons within a part."""
    if isinstance(part, Either):
        yield from (term for inner in part.parts for each in _needed(inner) for term in _terms(each))
    else:
        yield part
