"""A table made ready for a search: what its columns are, and which rows train, validate and test."""

from typing import NamedTuple

import numpy as np

from bonas.problems.examples import Examples, Split, cut, parts
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
    columns = with_fills(columns, table, rest, impute)
    examples = blank._replace(x=encode(columns, table, drop=columns.unused), names=columns.names)
    folds = [cut(examples, np.setdiff1d(rest, held), held, test) for held in _held_out(rest)]
    return Prepared(columns, folds, cut(examples, rest, rest[:0], test), notices)


def _held_out(rest: np.ndarray) -> list[np.ndarray]:
    """The rows that validate in each fold, as many in all: every fifth, since of every class each prefix has its share.

    The few that are left over train always, so that all folds have one shape and share what is compiled.
    """
    size = len(rest) // FOLDS
    folds = [rest[first : size * FOLDS : FOLDS] for first in range(FOLDS)]
    return folds if len(rest) < MANY else folds[:1]
