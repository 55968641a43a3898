"""The length of a training run: its batches, updates and checkpoints for a number of rows."""

import math

# Checkpoints of a training run.
N_CHECKPOINTS = 20
# Updates of a training run, enough for a small network at a medium learning rate. Early stopping on
# the validation rows ends most runs earlier.
_UPDATES = 3000
# Above this number of training rows, the updates grow with the square root of the rows: 8,500 for
# 13,000 rows. scikit-learn's MLP with two layers of 64 units stopped after 3,100 updates on one
# data set of 12,800 rows, and after 9,100 on another of 16,000.
SMALL_TABLE = 1600


def batch_size(rows: int) -> int:
    """Return a power of two near a tenth of the rows, from 8 to 256."""
    return min(2 ** round(math.log2(min(max(rows / 10, 8), 256))), rows)


def n_updates(rows: int) -> int:
    """Return the number of updates, which grows with the rows of a large table."""
    return round(_UPDATES * math.sqrt(max(rows / SMALL_TABLE, 1.0)))


def equidistant_checkpoints(end: int) -> tuple[int, ...]:
    """Return equidistant checkpoints up to about `end`."""
    step = max(end // N_CHECKPOINTS, 1)
    return tuple(range(step, step * N_CHECKPOINTS + 1, step))
