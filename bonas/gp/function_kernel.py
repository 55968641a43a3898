"""Kernels made of functions."""

from dataclasses import dataclass
from typing import Any

from bonas.gp.kernel import Covariance, Kernel, as_prior, check_prior


@dataclass(frozen=True)
class FunctionKernel(Kernel):
    """A kernel made of functions, as ``Kernel(...)`` returns; it compares by their identity."""

    # a Prior, or a dict for any number of columns; always a Prior once it is made
    prior: Any
    value: Covariance
    gram: Covariance | None = None
    categories: tuple[int, ...] | None = None
    one_hot: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", as_prior(self.prior))
        if not callable(self.value):
            raise TypeError(
                "value must be a function of params and two points; "
                f"got {type(self.value).__name__}"
            )
        check_prior(self.prior)
