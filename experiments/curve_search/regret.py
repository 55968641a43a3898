"""The regret of a search on learning curves against the training that it has spent."""

import numpy as np

from bonas.problems.tables import Table
from bonas.search import CurveHistory


def regrets(table: Table, history: CurveHistory, budget: int, points: int) -> np.ndarray:
    """(seeds, points) at equal parts of the budget, in deviations of the table's networks.

    The regret is that of the network with the best final value so far, by the mean of its runs; where no network is
    complete yet, that of one drawn by chance.
    """
    finals = np.nanmean(np.asarray(table.values)[:, :, -1], axis=1)
    true = finals[np.asarray(table.space.row(history.x.reshape(-1, history.x.shape[-1])))].reshape(history.y.shape)
    done = (np.asarray(history.step) == len(table.steps) - 1) & np.isfinite(history.y)
    seen = np.where(done, np.asarray(history.y), np.inf)
    spent, grid = np.asarray(history.spent), np.linspace(0.0, budget, points + 1)[1:]
    low, scale = np.nanmin(finals), np.nanstd(finals)
    found = np.full((len(seen), points), np.nan)
    for i, row in enumerate(seen):
        best = np.minimum.accumulate(row)
        which = np.array([np.flatnonzero(row[: k + 1] == best[k])[0] if np.isfinite(best[k]) else -1 for k in range(len(row))])
        reached = np.searchsorted(spent[i], grid, side="right") - 1
        here = np.where(reached >= 0, which[np.maximum(reached, 0)], -1)
        found[i] = np.where(here >= 0, true[i][np.maximum(here, 0)], np.nanmean(finals))
    return (found - low) / scale
