"""A table made ready for a search: what its columns are, and which rows train, validate and test."""

from typing import NamedTuple

import numpy as np

from bonas.problems.examples import Examples, Split, Task, cut, parts
from bonas.tabular.columns import Columns, encode, infer, targets, with_fills
from bonas.tabular.spaces import Size
from bonas.tabular.table import Table

TEST_SHARE = 0.2
# One row in five validates. Of few rows all take their turn, in five folds: by a single part of some tens of rows chance
# would choose the network. From this many on one part is enough.
FOLDS, MANY = 5, 2000
FEWEST = 30  # rows of a table


class Prepared(NamedTuple):
    """What a search needs to know of a table."""

    columns: Columns
    folds: list[Split]  # rows to train on, rows that validate, scaled by the former; the test rows are the same in all
    whole: Split  # all rows but the test rows, to train rivals on
    notices: list[str]  # for people

    @property
    def size(self) -> Size:
        """What a family of networks is made for: rows to train on, columns, outputs and task."""
        outputs = max(len(self.columns.classes), 1)
        return Size(len(self.folds[0].train.x), len(self.columns.names), outputs, self.columns.task)


def prepare(table: Table, seed: int, *, impute: bool = False, **how) -> Prepared:
    """The table, its columns taken as `columns.infer` takes them, divided by a seed.

    What stands for missing cells, and the scales of columns, are found without the test rows.
    """
    if table.rows < FEWEST:
        raise ValueError(f"{table.source} has {table.rows} rows, too few to search on: at least {FEWEST} are needed")
    columns, notices = infer(table, **how)
    y = targets(columns, table)
    blank = Examples(np.zeros((len(y), 1), np.float32), y, columns.task, ("",), columns.classes)
    rest, _, test = parts(blank, seed, (1.0 - TEST_SHARE, 0.0, TEST_SHARE))
    columns, told = with_fills(columns, table, rest, impute)
    examples = blank._replace(x=encode(columns, table, drop=columns.unused), names=columns.names)
    folds = [cut(examples, np.setdiff1d(rest, held), held, test) for held in _held_out(rest, y, columns.task)]
    return Prepared(columns, folds, cut(examples, rest, rest[:0], test), [*notices, *told])


def _held_out(rest: np.ndarray, y: np.ndarray, task: Task) -> list[np.ndarray]:
    """The rows that validate in each fold, as many in all: every fifth, of every class its share to within one row.

    The few that are left over train always, so that all folds have one shape and share what is compiled.
    """
    order = rest if task == "regression" else _by_class(rest, y[rest])
    size = len(rest) // FOLDS
    folds = [order[first : size * FOLDS : FOLDS] for first in range(FOLDS)]
    return folds if len(rest) < MANY else folds[:1]


def _by_class(rest: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The rows class by class, in whole fives, then those that these leave over, class by class, too.

    Every fifth has then each class's whole share, and at most one of its up to four rows over. The random order of `parts`
    would not do: it is periodic in the classes, and every fifth row of a period of five is always of the same class.
    """
    over = np.zeros(len(rest), bool)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        over[members[len(members) // FOLDS * FOLDS :]] = True
    return rest[np.lexsort((labels, over))]
