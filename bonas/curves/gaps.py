"""Detect gaps in learning curves: observed values after one that was not observed."""

import jax
import numpy as np
from jaxtyping import Array, Bool


def has_gap(mask: Bool[Array, "n p"]) -> Bool[Array, " n"]:
    """Return which rows have an observed output after one that was not observed."""
    return (mask[:, 1:] & ~mask[:, :-1]).any(axis=1)


def check_no_gaps(mask: Bool[Array, "n p"], advice: str) -> None:
    """Raise a ValueError if a row has a gap; the message ends with advice. Not under `jit`."""
    if isinstance(mask, jax.core.Tracer):
        return
    bad = np.asarray(has_gap(mask))
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"row {row} has an observed output after one that was not observed: "
            f"observed {np.asarray(mask)[row].tolist()}; {advice}"
        )
