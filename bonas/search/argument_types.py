"""Types of the arguments of searches and runs, for type checkers."""

from collections.abc import Callable
from typing import Literal

from jaxtyping import Array

from bonas.data import Dataset

# Whether low or high values are better.
Direction = Literal["minimize", "maximize"]
# How failed evaluations are modeled.
Failures = Literal["worst", "model"]
# Maps data to data on the new scale and the sum () of the log derivatives at the observed values.
OutputScale = Callable[[Dataset], tuple[Dataset, Array]]
# What `bayes(output=)` accepts.
OutputName = Literal["plain", "log", "tails"]
Output = OutputName | OutputScale | tuple[OutputName | OutputScale, ...]
