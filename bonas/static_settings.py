"""Check settings that must be known before a program is compiled."""

import operator
from typing import Any

import jax


def check_static(name: str, value: Any) -> None:
    """Raise a TypeError if a value that determines shapes is traced."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value)):
        raise TypeError(
            f"{name} must be static, because it determines shapes; pass it by closure or "
            "static_argnames; got a tracer"
        )


def check_counts(**counts: Any) -> None:
    """Raise an error, with the name of the count, unless each is an integer of at least 1."""
    for name, value in counts.items():
        check_static(name, value)
        try:
            number = 0 if isinstance(value, bool) else operator.index(value)
        except TypeError:
            number = 0
        if number < 1:
            raise ValueError(f"{name} must be an integer of at least 1; got {value!r}")
