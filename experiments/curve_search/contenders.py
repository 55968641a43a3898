"""The searches of hutchinson_search.py, by name."""

import bonas
from bonas import gp, search, surrogates
from bonas.problems.tables import Table

MAIN = (
    "bonas",
    "Algorithm 2",
    "final-performance BO",
    "random",
    "evolution",
    "successive halving",
    "Hyperband",
    "one epoch, top 4",
)
VARIANTS = (
    "Algorithm 2, PI",
    "Algorithm 2, UCB",
    "Algorithm 2, 10 draws",
    "Algorithm 2, 3 draws",
    "bonas, rate",
    "bonas, published GPAR",
    "bonas, freeze-thaw",
    "bonas, power laws",
)
_BATCH = 4  # networks that advance side by side in Algorithm 2 (H-E5)


def make(name: str, table: Table, networks: int) -> bonas.search.types.Search:
    """The search for a table, with a budget that trains so many networks to the end.

    What a search does before it begins to choose, five networks of Algorithm 2 and of final-performance BO and a population of
    20, is at most a third of that: otherwise, on small tables, it would be over before.
    """
    space, steps = table.space, tuple(table.steps.tolist())
    first, population = (max(2, min(most, networks // 3)) for most in (5, 20))

    def published(acquisition: str = "ei", draws: int = 50):
        # one set of 50 draws, or disjoint sets of fewer, as in the author's code (H-S7)
        several = {"batch": _BATCH, "draws": draws, "disjoint": draws < 50}
        return search.curves(space, steps, variant="published", acquisition=acquisition, initial=first, **several)

    return {
        "bonas": lambda: search.curves(space, steps),
        "bonas, rate": lambda: search.curves(space, steps, variant="rate"),
        "bonas, published GPAR": lambda: search.curves(space, steps, model=surrogates.autoregressive(gp.gpar())),
        "bonas, freeze-thaw": lambda: search.curves(space, steps, model=surrogates.freeze_thaw()),
        "bonas, power laws": lambda: search.curves(space, steps, model=surrogates.power_law()),
        "Algorithm 2": published,
        "Algorithm 2, PI": lambda: published("pi"),
        "Algorithm 2, UCB": lambda: published("ucb"),
        "Algorithm 2, 10 draws": lambda: published(draws=10),
        "Algorithm 2, 3 draws": lambda: published(draws=3),
        "final-performance BO": lambda: search.whole(search.bayes(space, initial=first), steps),
        "random": lambda: search.whole(search.random(space), steps),
        "evolution": lambda: search.whole(search.evolution(space, population=population), steps),
        "successive halving": lambda: search.successive_halving(space, steps),
        "Hyperband": lambda: search.hyperband(space, steps),
        "one epoch, top 4": lambda: search.top_k(space, steps),
    }[name]()
