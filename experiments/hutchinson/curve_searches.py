"""The searches on learning curves, by name."""

import bonas
from bonas import curves, search
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
_BATCH = 4  # networks that Algorithm 2 trains in parallel


def make(name: str, table: Table, networks: int) -> bonas.search.search.Search:
    """Return a search by name for a table and a budget of `networks` complete trainings.

    The initial phase of a search (five networks for Algorithm 2 and final-performance BO, a
    population of 20 for evolution) is at most a third of the budget. On small tables it would
    otherwise use the whole budget.
    """
    space, steps = table.space, tuple(table.steps.tolist())
    first, population = (max(2, min(most, networks // 3)) for most in (5, 20))

    def published(acquisition: str = "ei", draws: int = 50):
        # one set of 50 draws, or disjoint sets of fewer, as in the author's code
        several = {"batch": _BATCH, "draws": draws, "disjoint": draws < 50}
        return curves.curve_search(
            space,
            steps,
            variant="published",
            acquisition=acquisition,
            initial=first,
            **several,
        )

    return {
        "bonas": lambda: curves.curve_search(space, steps),
        "bonas, rate": lambda: curves.curve_search(space, steps, variant="rate"),
        "bonas, published GPAR": lambda: curves.curve_search(
            space, steps, model=curves.autoregressive(curves.gpar())
        ),
        "bonas, freeze-thaw": lambda: curves.curve_search(
            space, steps, model=curves.freeze_thaw()
        ),
        "bonas, power laws": lambda: curves.curve_search(
            space, steps, model=curves.power_law()
        ),
        "Algorithm 2": published,
        "Algorithm 2, PI": lambda: published("pi"),
        "Algorithm 2, UCB": lambda: published("ucb"),
        "Algorithm 2, 10 draws": lambda: published(draws=10),
        "Algorithm 2, 3 draws": lambda: published(draws=3),
        "final-performance BO": lambda: curves.full_training(
            search.bayes(space, initial=first), steps
        ),
        "random": lambda: curves.full_training(search.random(space), steps),
        "evolution": lambda: curves.full_training(
            search.evolution(space, population=population), steps
        ),
        "successive halving": lambda: curves.successive_halving(space, steps),
        "Hyperband": lambda: curves.hyperband(space, steps),
        "one epoch, top 4": lambda: curves.top_k(space, steps),
    }[name]()
