"""Split a table into training, validation and test rows."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int, Shaped

from bonas.problems.examples import Examples, Split, Task, split_by_rows, split_rows
from bonas.tabular.column_inference import fit_fill_values, infer_columns
from bonas.tabular.columns import Columns, encode_inputs, encode_target
from bonas.tabular.table import Table

TEST_SHARE = 0.2
# One row in five is for validation. In a small table all rows are used in five folds, because a
# single validation set of some tens of rows is too noisy to choose a network.
N_FOLDS = 5
# From this number of rows on, one validation set is enough.
SINGLE_FOLD_ROWS = 2000
MIN_ROWS = 30


class Size(NamedTuple):
    """The numbers of rows, inputs and outputs, and the task, which determine a network family."""

    rows: int  # training rows of a fold
    inputs: int
    outputs: int
    task: Task


class PreparedTable(NamedTuple):
    """A table that is split, encoded and scaled for a search."""

    columns: Columns
    folds: list[Split]  # each scaled by its own training rows; all share the test rows
    development: Split  # train: all rows but the test rows, to fit the reference models
    notices: list[str]  # messages for the user

    @property
    def size(self) -> Size:
        """The sizes and the task of the table, which determine a network family."""
        return Size(
            rows=len(self.folds[0].train.x),
            inputs=len(self.columns.names),
            outputs=max(len(self.columns.classes), 1),
            task=self.columns.task,
        )


def prepare_table(
    table: Table, seed: int, *, impute: bool = False, **column_options: Any
) -> PreparedTable:
    """Infer the columns of a table, split its rows, and encode and scale them.

    Fill values and scales are computed without the test rows.

    Args:
        table: The table, with at least `MIN_ROWS` rows.
        seed: The random seed of the split.
        impute: Fill in missing values instead of raising an error.
        **column_options: Options of `infer_columns`.
    """
    if table.n_rows < MIN_ROWS:
        raise ValueError(
            f"{table.source} has {table.n_rows} rows; a search needs at least {MIN_ROWS}"
        )
    columns, notices = infer_columns(table, **column_options)
    y = encode_target(columns, table)
    no_inputs = np.zeros((len(y), 1), np.float32)
    examples = Examples(no_inputs, y, columns.task, ("",), columns.classes)
    rest, _, test = split_rows(examples, seed, (1.0 - TEST_SHARE, 0.0, TEST_SHARE))
    columns, fill_notices = fit_fill_values(columns, table, rest, impute)
    x = encode_inputs(columns, table, drop=columns.unused)
    examples = examples._replace(x=x, names=columns.names)
    folds = [
        split_by_rows(examples, np.setdiff1d(rest, validation), validation, test)
        for validation in _validation_rows(rest, y, columns.task)
    ]
    development = split_by_rows(examples, rest, rest[:0], test)
    return PreparedTable(columns, folds, development, [*notices, *fill_notices])


def _validation_rows(
    rest: Int[np.ndarray, " n"], y: Shaped[np.ndarray, " all"], task: Task
) -> list[np.ndarray]:
    """Choose the validation rows of each fold, so that class counts differ by at most one.

    All folds have the same size, so that they use one compiled program; the remaining rows are
    always training rows.
    """
    order = rest if task == "regression" else _sort_by_class(rest, y[rest])
    size = len(rest) // N_FOLDS
    folds = [order[first : size * N_FOLDS : N_FOLDS] for first in range(N_FOLDS)]
    return folds if len(rest) < SINGLE_FOLD_ROWS else folds[:1]


def _sort_by_class(
    rest: Int[np.ndarray, " n"], labels: Int[np.ndarray, " n"]
) -> Int[np.ndarray, " n"]:
    """Sort rows by class, in multiples of five; then the up to four others of each class.

    Every fifth row then gives folds with equal shares of the classes. The random order of
    `split_rows` would not, because it is periodic in the classes: with a period of five, every
    fifth row would have the same class.
    """
    remainder = np.zeros(len(rest), bool)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        remainder[members[len(members) // N_FOLDS * N_FOLDS :]] = True
    return rest[np.lexsort((labels, remainder))]
