"""Convert ConfigSpace spaces (Lindauer et al. 2019) to bonas spaces."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import and_, or_
from typing import Any

from bonas.spaces import Choice, Condition, Float, Int, Ordinal, Parameter, Space, Terms

_COMPARISONS = {
    "EqualsCondition": "==",
    "NotEqualsCondition": "!=",
    "LessThanCondition": "<",
    "GreaterThanCondition": ">",
}

Term = tuple[str, str, Any]  # parent, comparison, value


@dataclass(frozen=True)
class And:
    """A condition that holds if all of its parts do."""

    parts: tuple[Condition, ...]

    def __call__(self, values: Mapping[str, Any]) -> Any:
        return reduce(and_, [part(values) for part in self.parts])


@dataclass(frozen=True)
class Or:
    """A condition that holds if any of its parts does."""

    parts: tuple[Condition, ...]

    def __call__(self, values: Mapping[str, Any]) -> Any:
        return reduce(or_, [part(values) for part in self.parts])


def from_configspace(configspace: Any) -> Space:
    """Convert a `ConfigSpace.ConfigurationSpace` to a `Space`.

    Names, ranges, logarithmic scales, options and conditions are kept. A constant becomes a
    `Choice` of one option. Default values are dropped.

    Args:
        configspace: The ConfigSpace space.

    Raises:
        ValueError: If the space has features that a `Space` cannot represent: forbidden clauses,
            priors, weights, or conditions that may hold although a parent is inactive (in a
            `Space`, the child is then inactive too).
    """
    if not hasattr(configspace, "forbidden_clauses"):
        raise ValueError(
            f"expected a ConfigSpace.ConfigurationSpace; got {type(configspace).__name__}"
        )
    if configspace.forbidden_clauses:
        clause = configspace.forbidden_clauses[0]
        raise ValueError(
            f"a Space cannot represent forbidden clauses: {clause}. Let the objective fail there "
            "(a failed trial is not asked again), or express the clause as a condition"
        )
    parameters = {name: _parameter(name, each) for name, each in configspace.items()}
    conditions = {each.child.name: _condition(each) for each in configspace.conditions}
    for name, condition in conditions.items():
        _check_inactive_parents(name, condition, conditions)
        parameters[name] = parameters[name].with_condition(condition)
    return Space(**parameters)


def _parameter(name: str, given: Any) -> Parameter:
    """Convert a hyperparameter without its condition.

    Its type is identified by the name of its class, so that ConfigSpace need not be imported.
    """
    kind = type(given).__name__.removesuffix("Hyperparameter")
    if kind == "UniformFloat":
        return Float(float(given.lower), float(given.upper), log=given.log)
    if kind == "UniformInteger":
        return Int(int(given.lower), int(given.upper), log=given.log)
    if kind == "Ordinal":
        return Ordinal(given.sequence)
    if kind == "Constant":
        return Choice(given.value)
    if kind == "Categorical" and (
        given.weights is None or len(set(given.weights)) == 1
    ):
        return Choice(*given.choices)
    is_categorical = kind == "Categorical"
    feature = (
        "weights of options"
        if is_categorical
        else f"the prior of a {type(given).__name__}"
    )
    raise ValueError(
        f"parameter {name!r}: a Space cannot represent {feature}; "
        "remove them with `configspace.remove_hyperparameter_priors()`"
    )


def _condition(given: Any) -> Condition:
    kind = type(given).__name__
    if kind == "AndConjunction":
        return _conjunction([_condition(part) for part in given.components])
    if kind == "OrConjunction":
        return Or(tuple(_condition(part) for part in given.components))
    if kind == "InCondition":
        return Or(
            tuple(_comparison(given.parent, "==", value) for value in given.values)
        )
    if kind not in _COMPARISONS:
        raise ValueError(
            f"parameter {given.child.name!r}: a Space cannot represent a {kind}"
        )
    return _comparison(given.parent, _COMPARISONS[kind], given.value)


def _conjunction(parts: list[Condition]) -> Condition:
    """Combine conditions by `and`, into Terms, which can be stored, if all of them are Terms."""
    terms = [part.terms for part in parts if isinstance(part, Terms)]
    if len(terms) == len(parts):
        return Terms(tuple(chain.from_iterable(terms)))
    return And(tuple(parts))


def _comparison(parent: Any, comparison: str, value: Any) -> Condition:
    """Convert one comparison of a parent with a value; options are compared by position."""
    if hasattr(parent, "value"):
        options: Any = (parent.value,)
    else:
        options = getattr(parent, "choices", getattr(parent, "sequence", None))
    if options is None:
        return Terms(((parent.name, comparison, float(value)),))
    position = options.index(value)
    if (comparison, position) in (("<", 0), (">", len(options) - 1)):
        raise ValueError(
            f"a condition never holds: no option of {parent.name!r} is {comparison} {value!r}"
        )
    return Terms(((parent.name, comparison, position),))


def _check_inactive_parents(
    name: str, condition: Condition, conditions: Mapping[str, Condition]
) -> None:
    """Reject conditions that may hold in ConfigSpace although a parent is inactive.

    These are `!=`, and `or` over several parents.
    """
    required = set(_required_parts(condition))
    for part in required:
        terms = list(_terms(part))
        parents = {parent for parent, _, _ in terms}
        if len(parents) == 1 and all(comparison != "!=" for _, comparison, _ in terms):
            continue
        for parent in sorted(parents & set(conditions)):
            if not required.issuperset(_required_parts(conditions[parent])):
                raise ValueError(
                    f"parameter {name!r}: its condition may hold although {parent!r} is inactive, "
                    "which a Space cannot represent; combine it by `and` with the condition of "
                    f"{parent!r}"
                )


def _required_parts(condition: Condition) -> Iterator[Term | Or]:
    """Yield the parts of a condition that must all hold."""
    if isinstance(condition, Or):
        yield condition
    elif isinstance(condition, Terms):
        yield from condition.terms
    elif isinstance(condition, And):
        yield from chain.from_iterable(map(_required_parts, condition.parts))


def _terms(part: Term | Or) -> Iterator[Term]:
    """Yield the comparisons of a part, nested ones included."""
    if not isinstance(part, Or):
        yield part
        return
    for condition in part.parts:
        for inner in _required_parts(condition):
            yield from _terms(inner)
