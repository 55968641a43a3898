"""The problems that are searched, and which assumptions hold on each."""

from dataclasses import dataclass

from bonas.problems import Problem, high

# What a method may assume. Whether the optimum is found does not follow from it, but why it is not may.
NONE, SMOOTH, AXES, PLANE, GROUPS, LINE = "nothing", "smooth", "few live columns", "few directions", "additive pairs", "linear"


@dataclass(frozen=True)
class Case:
    """A problem, what holds for it, and what methods are told that need to be told something."""

    problem: Problem
    holds: frozenset[str]
    directions: int  # along which it changes; a guess, for REMBO, where it changes along all
    groups: tuple[tuple[int, ...], ...] = ()  # of columns that add up, where there are such


def _with_others(live: tuple[int, ...], d: int) -> tuple[tuple[int, ...], ...]:
    """The live columns as a group, and the others in pairs and perhaps a single one."""
    rest = [column for column in range(d) if column not in live]
    return live, *(tuple(rest[i : i + 2]) for i in range(0, len(rest), 2))


def _few_live(d: int) -> Case:
    groups = _with_others(high.live_columns(d), d)
    return Case(high.few_live(d), frozenset({NONE, SMOOTH, AXES, PLANE, GROUPS}), 2, groups)


CASES = {
    "branin25": _few_live(25),
    "branin100": _few_live(100),
    "additive20": Case(high.additive(20), frozenset({NONE, SMOOTH, GROUPS}), 5, high.pairs(20)),
    "rotated50": Case(high.rotated(50), frozenset({NONE, SMOOTH, PLANE}), 3),
    "weights61": Case(high.weights(), frozenset({NONE, SMOOTH}), 5),
}
TITLES = {
    "branin25": "Branin: 2 of 25 columns live",
    "branin100": "Branin: 2 of 100 columns live",
    "additive20": "ten pairs that add up: 20 columns",
    "rotated50": "Hartmann 3: 3 directions of 50",
    "weights61": "weights of a network: 61 columns",
}
