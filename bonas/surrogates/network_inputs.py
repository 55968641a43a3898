"""Networks as surrogates: inputs from points of a space, shapes, and training."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bonas import nets
from bonas.gp import indicator_of
from bonas.spaces import Space
from bonas.traced_settings import Setting, setting_value


def features(space: Space | None, x: Float[Array, "m d"]) -> Float[Array, "m k"]:
    """Convert points to network inputs in [0, 1], with one-hot options.

    The last columns, one per conditional parameter, are 1 where it is active. Without a space,
    points are returned unchanged.
    """
    if space is None:
        return x
    if x.shape[1] != space.dim:  # slices beyond the last column would be empty
        raise ValueError(f"expected points of {space.dim} columns; got {x.shape[1]}")
    columns = []
    for i, options in enumerate(space.categories):
        if options:
            columns.append(jax.vmap(partial(indicator_of, m=options))(x[:, i]))
        else:
            columns.append(x[:, i : i + 1])
    parameters = space.parameters.values()
    conditional = [
        i for i, parameter in enumerate(parameters) if parameter.when is not None
    ]
    if conditional:
        columns.append(space.active(x)[:, jnp.asarray(conditional)].astype(x.dtype))
    return jnp.concatenate(columns, axis=1)


def width(space: Space | None, d: int) -> int:
    """Return the number of network inputs that `features` makes from points of d columns."""
    if space is None:
        return d
    conditional = sum(
        parameter.when is not None for parameter in space.parameters.values()
    )
    return sum(max(options, 1) for options in space.categories) + conditional


def make_network(
    inputs: int, widths: tuple[int, ...], activation: str
) -> tuple[nets.Shape, nets.Architecture]:
    """Return the shape and architecture of a network with one output."""
    shape = nets.Shape(inputs, 1, len(widths), max(widths), activations=(activation,))
    return shape, nets.architecture(shape, widths)


def full_batch_training(
    steps: int, learning_rate: Setting, weight_decay: Setting
) -> tuple[nets.Settings, nets.Hyperparameters]:
    """Return the settings of full-batch training by Adam with a cosine schedule.

    Args:
        steps: The number of steps.
        learning_rate: The initial learning rate, which decays to zero.
        weight_decay: The weight decay.
    """
    settings = nets.Settings(
        optimizer="adam", batch=None, max_epochs=steps, schedule=nets.cosine
    )
    hyper = nets.Hyperparameters(
        learning_rate=setting_value(learning_rate),
        weight_decay=setting_value(weight_decay or None),
    )
    return settings, hyper


def check_single_output(p: int) -> None:
    """Raise a ValueError unless the number of outputs p is 1."""
    if p != 1:
        raise ValueError(f"this surrogate models one output; got p = {p}")
