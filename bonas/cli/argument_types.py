"""Types of command-line arguments: they convert text, and report values out of range."""

import argparse
import math
from collections.abc import Callable
from typing import Any


def positive_int(text: str) -> int:
    """Convert an argument to an integer of at least 1."""
    return _parse_number(text, int, 1)


def seed(text: str) -> int:
    """Convert an argument to a random seed below 2^32."""
    return _parse_number(text, int, 0, 2**32 - 1)  # the range of scikit-learn's seeds


def positive_float(text: str) -> float:
    """Convert an argument to a number of at least 0.001."""
    return _parse_number(text, float, 0.001)


def _parse_number(
    text: str, kind: Callable[[str], Any], minimum: float, maximum: float = math.inf
) -> Any:
    expected = "an integer" if kind is int else "a number"
    try:
        value = kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected {expected}; got {text!r}") from None
    if minimum <= value <= maximum and value < math.inf:
        return value
    limits = f"of at least {minimum:g}"
    if maximum < math.inf:
        limits = f"from {minimum:g} to {maximum}"
    raise argparse.ArgumentTypeError(f"expected {expected} {limits}; got {text}")
