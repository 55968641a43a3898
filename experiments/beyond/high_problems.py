"""The problems in many dimensions, and the assumptions that hold on each."""

from dataclasses import dataclass

from bonas.problems import Problem, high_dimensional

# Assumptions of the methods. They do not decide whether the optimum is found, but may explain
# failure.
NONE, SMOOTH, AXES, PLANE, GROUPS, LINE = (
    "nothing",
    "smooth",
    "few live columns",
    "few directions",
    "additive pairs",
    "linear",
)


@dataclass(frozen=True)
class Case:
    """A problem, the assumptions that hold, and hints for methods that need them."""

    problem: Problem
    holds: frozenset[str]
    # number of directions with an effect; a guess for REMBO if all have one
    directions: int
    # columns of each additive term, if there are any
    groups: tuple[tuple[int, ...], ...] = ()


def _with_others(live: tuple[int, ...], d: int) -> tuple[tuple[int, ...], ...]:
    """Return the active columns as one group, and the others in pairs."""
    rest = [column for column in range(d) if column not in live]
    return live, *(tuple(rest[i : i + 2]) for i in range(0, len(rest), 2))


def _few_effective(d: int) -> Case:
    groups = _with_others(high_dimensional.effective_columns(d), d)
    return Case(
        high_dimensional.few_effective(d),
        frozenset({NONE, SMOOTH, AXES, PLANE, GROUPS}),
        2,
        groups,
    )


CASES = {
    "branin25": _few_effective(25),
    "branin100": _few_effective(100),
    "additive20": Case(
        high_dimensional.additive(20),
        frozenset({NONE, SMOOTH, GROUPS}),
        5,
        high_dimensional.pairs(20),
    ),
    "rotated50": Case(
        high_dimensional.rotated_subspace(50), frozenset({NONE, SMOOTH, PLANE}), 3
    ),
    "weights61": Case(high_dimensional.weights(), frozenset({NONE, SMOOTH}), 5),
}
TITLES = {
    "branin25": "Branin: 2 of 25 columns live",
    "branin100": "Branin: 2 of 100 columns live",
    "additive20": "ten pairs that add up: 20 columns",
    "rotated50": "Hartmann 3: 3 directions of 50",
    "weights61": "weights of a network: 61 columns",
}
