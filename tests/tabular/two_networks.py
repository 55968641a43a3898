"""A saved model of two equal groups of two networks, for a numeric and a binary column."""

import numpy as np

from bonas.problems.examples import Scaling
from bonas.tabular.columns import Column, Columns
from bonas.tabular.saved_model import NetworkGroup, SavedModel

COLUMNS = Columns(
    "y", "regression", (), (Column("a"), Column("c", ("no", "yes"))), ("unused",)
)
ABOUT = {"seed": 0}
_RNG = np.random.default_rng(1)
GROUP = NetworkGroup(
    kernels=(_RNG.normal(size=(2, 3, 4)), _RNG.normal(size=(2, 4, 1))),
    biases=(_RNG.normal(size=(2, 4)), _RNG.normal(size=(2, 1))),
    activation="tanh",
    scaling=Scaling(np.ones(3), np.full(3, 2.0), 10.0, 5.0),
    noise=0.5,
)
MODEL = SavedModel(ABOUT, COLUMNS, [GROUP, GROUP._replace(noise=1.5)])
