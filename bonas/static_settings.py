"""Check settings that must be known before a program is compiled, such as counts and names."""

import operator
from typing import Any

import jax


def check_static(name: str, value: Any) -> None:
    """Raise a TypeError if a setting that determines the compiled program is a tracer."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value)):
        raise TypeError(
            f"{name} must be static, because it determines the compiled program; pass a Python "
            "value by closure or static_argnames; got a tracer"
        )


def check_all_static(**values: Any) -> None:
    """Raise a TypeError that names the first of several settings that is a tracer."""
    for name, value in values.items():
        check_static(name, value)


def check_option(name: str, value: Any, options: tuple[str, ...]) -> None:
    """Raise an error that names the argument unless its value is one of the options."""
    check_static(name, value)
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(options)}; got {value!r}")


def check_counts(**counts: Any) -> None:
    """Raise an error that names the argument unless each value is an integer of at least 1."""
    _check_integers(counts, 1)


def check_not_negative(**counts: Any) -> None:
    """Raise an error unless each value is None or an integer of at least 0."""
    given = {name: value for name, value in counts.items() if value is not None}
    _check_integers(given, 0)


def check_growth(old: tuple[int, ...], new: tuple[int, ...]) -> None:
    """Raise a ValueError if an array of a new state is smaller than that of the old state.

    Args:
        old: The shape of the array in the old state.
        new: Its shape in the new state.
    """
    if len(old) != len(new) or any(a > b for a, b in zip(old, new, strict=True)):
        raise ValueError(
            "a state can only grow to a larger capacity of the same search; expected arrays of at "
            f"least shape {old}; got {new}: use a larger capacity in search.init(key, capacity)"
        )


def check_chain(samples: Any, burn: Any, thin: Any) -> None:
    """Raise an error unless `samples`, `burn` and `thin` of a Markov chain are valid counts."""
    check_counts(samples=samples, thin=thin)
    check_not_negative(burn=burn)


def _check_integers(counts: dict[str, Any], least: int) -> None:
    for name, value in counts.items():
        check_static(name, value)
        try:
            number = -1 if isinstance(value, bool) else operator.index(value)
        except TypeError:
            number = -1
        if number < least:
            raise ValueError(
                f"{name} must be an integer of at least {least}; got {value!r}"
            )
