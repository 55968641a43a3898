"""Explain errors of kernels whose prior lacks a parameter."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager


@contextmanager
def explain_missing(names: Iterable[str]) -> Iterator[None]:
    """Raise a ValueError in place of the KeyError of a kernel that reads a missing parameter.

    Args:
        names: The parameters of the prior.
    """
    try:
        yield
    except KeyError as error:
        raise ValueError(
            f"the kernel needs the parameter {error}, but its prior has {', '.join(names)}: "
            "add a distribution for it to the prior"
        ) from error
