"""Points of a space as inputs of a network."""

import jax.numpy as jnp
from jax import Array

from bonas.spaces import Space


def features(space: Space | None, x: Array) -> Array:
    """Columns in [0, 1] for a network, (m, k): options apart, and which of the parameters that come and go are there."""
    if space is None:
        return x
    if x.shape[1] != space.dim:  # a slice past the end would be empty
        raise ValueError(f"this model is for a space of {space.dim} columns; the points have {x.shape[1]}")
    columns = []
    for i, options in enumerate(space.categories):
        there = jnp.round(x[:, i : i + 1] * max(options - 1, 1)) == jnp.arange(options)[None, :]
        columns.append(there.astype(x.dtype) if options else x[:, i : i + 1])
    conditional = [i for i, parameter in enumerate(space.parameters.values()) if parameter.when is not None]
    if conditional:
        columns.append(space.active(x)[:, jnp.asarray(conditional)].astype(x.dtype))
    return jnp.concatenate(columns, axis=1)


def width(space: Space | None, d: int) -> int:
    """How many columns points of d columns become."""
    if space is None:
        return d
    return sum(max(options, 1) for options in space.categories) + sum(
        parameter.when is not None for parameter in space.parameters.values()
    )
