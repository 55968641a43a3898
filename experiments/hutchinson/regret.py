"""The regret of a search on learning curves against the training spent."""

import numpy as np

from bonas.curves import CurveHistory
from bonas.problems.tables import Table

KINDS = ("network", "architecture")


def regrets(
    table: Table, history: CurveHistory, budget: int, points: int
) -> dict[str, np.ndarray]:
    """Return two regrets (seeds, points) along the budget, in standard deviations of the table.

    "network" is the final value of the best trained network against the best run of the table, as
    in Hutchinson's figures. "architecture" is the mean over runs of its architecture against the
    best such mean; if runs differ as much as architectures, even one run of each (`floor`) does not
    make it small. Both are equal if architectures have one run. Before a network is complete, both
    are the expected values for a random network.
    """
    finals = np.asarray(table.values)[:, :, -1]
    means = np.nanmean(finals, axis=1)
    rows = np.asarray(
        table.space.row(history.x.reshape(-1, history.x.shape[-1]))
    ).reshape(history.y.shape)
    done = (np.asarray(history.step) == len(table.steps) - 1) & np.isfinite(history.y)
    seen = np.where(done, np.asarray(history.y), np.inf)
    spent, grid = np.asarray(history.spent), np.linspace(0.0, budget, points + 1)[1:]
    found = {kind: np.full((len(seen), points), np.nanmean(finals)) for kind in KINDS}
    for i, row in enumerate(seen):
        for j, now in enumerate(np.searchsorted(spent[i], grid, side="right")):
            if now and np.isfinite(best := row[:now].min()):
                found["network"][i, j], found["architecture"][i, j] = (
                    best,
                    means[rows[i, np.argmin(row[:now])]],
                )
    low = {"network": np.nanmin(finals), "architecture": np.nanmin(means)}
    return {
        kind: (values - low[kind]) / np.nanstd(means) for kind, values in found.items()
    }


def floor(table: Table, draws: int = 4000) -> float:
    """Return the mean "architecture" regret after training one random run of every architecture."""
    finals, choose = np.asarray(table.values)[:, :, -1], np.random.default_rng(0)
    means, each = np.nanmean(finals, axis=1), np.arange(len(finals))
    best = [
        np.nanargmin(finals[each, choose.integers(finals.shape[1], size=len(finals))])
        for _ in range(draws)
    ]
    return float((means[best].mean() - np.nanmin(means)) / np.nanstd(means))
