"""The regret of a search on learning curves against the training that it has spent."""

import numpy as np

from bonas.problems.tables import Table
from bonas.search import CurveHistory

KINDS = ("network", "architecture")


def regrets(table: Table, history: CurveHistory, budget: int, points: int) -> dict[str, np.ndarray]:
    """Two regrets (seeds, points) at equal parts of the budget, in deviations of the table's architectures.

    "network": of the trained network with the best final value so far, by that value, against the best run of the table: what
    Hutchinson's figures show. "architecture": of its architecture, by the mean of its runs, against the best such mean; where
    runs differ as much as architectures, not even one run of each, `floor`, makes this small. Where an architecture has one
    run they are the same. Where no network is complete yet, both are those of one drawn by chance.
    """
    finals = np.asarray(table.values)[:, :, -1]
    means = np.nanmean(finals, axis=1)
    rows = np.asarray(table.space.row(history.x.reshape(-1, history.x.shape[-1]))).reshape(history.y.shape)
    done = (np.asarray(history.step) == len(table.steps) - 1) & np.isfinite(history.y)
    seen = np.where(done, np.asarray(history.y), np.inf)
    spent, grid = np.asarray(history.spent), np.linspace(0.0, budget, points + 1)[1:]
    found = {kind: np.full((len(seen), points), np.nanmean(finals)) for kind in KINDS}
    for i, row in enumerate(seen):
        for j, now in enumerate(np.searchsorted(spent[i], grid, side="right")):
            if now and np.isfinite(best := row[:now].min()):
                found["network"][i, j], found["architecture"][i, j] = best, means[rows[i, np.argmin(row[:now])]]
    low = {"network": np.nanmin(finals), "architecture": np.nanmin(means)}
    return {kind: (values - low[kind]) / np.nanstd(means) for kind, values in found.items()}


def floor(table: Table, draws: int = 4000) -> float:
    """The mean "architecture" regret of the best of one run, drawn by chance, of every architecture: training them all."""
    finals, choose = np.asarray(table.values)[:, :, -1], np.random.default_rng(0)
    means, each = np.nanmean(finals, axis=1), np.arange(len(finals))
    best = [np.nanargmin(finals[each, choose.integers(finals.shape[1], size=len(finals))]) for _ in range(draws)]
    return float((means[best].mean() - np.nanmin(means)) / np.nanstd(means))
