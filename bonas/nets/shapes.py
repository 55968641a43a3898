"""Padded shapes of networks, and architectures within a shape."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Int

# Below this width, per-operation overhead dominates an update, so a narrower shape would cost a
# compilation without speeding up training.
_MIN_WIDTH = 32

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "identity": lambda z: z,
}


def check_positive_integer(name: str, value: object) -> None:
    """Raise a ValueError unless the value is an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1; got {value!r}")


@jax.tree_util.register_static
@dataclass(frozen=True)
class Shape:
    """Padded size of networks, which is static: a program is compiled once per shape.

    Args:
        inputs: Number of input columns.
        outputs: Number of outputs.
        depth: Largest number of hidden layers.
        width: Largest number of units in a hidden layer.
        activations: Possible activations of hidden units; an architecture selects one of them.
        output: Activation of the output: "identity" for regression, and for cross-entropy, which
            takes logits.
    """

    inputs: int
    outputs: int
    depth: int
    width: int
    activations: tuple[str, ...] = ("relu", "tanh", "sigmoid")
    output: str = "identity"

    def __post_init__(self) -> None:
        for name in ("inputs", "outputs", "depth", "width"):
            check_positive_integer(name, getattr(self, name))
        if isinstance(self.activations, str) or not self.activations:
            raise ValueError(
                f"activations must be a non-empty tuple of names; got {self.activations!r}"
            )
        object.__setattr__(self, "activations", tuple(self.activations))
        for name in (*self.activations, self.output):
            if name not in ACTIVATIONS:
                known = ", ".join(ACTIVATIONS)
                raise ValueError(f"activation must be one of {known}; got {name!r}")

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """Kernel shape (..., incoming, units) of each layer.

        The output layer takes the last hidden layer as input, or the inputs of a network without
        hidden layers.
        """
        return {
            "first": (self.inputs, self.width),
            "hidden": (self.depth - 1, self.width, self.width),
            "last": (max(self.inputs, self.width), self.outputs),
        }

    @property
    def layer_sizes(self) -> dict[str, dict[str, tuple[int, ...]]]:
        """Shapes of the kernel and bias of each layer."""
        return {
            name: {"kernel": sizes, "bias": (*sizes[:-2], sizes[-1])}
            for name, sizes in self.sizes.items()
        }


def bucket(shape: Shape, width: int) -> Shape:
    """Return the shape in which networks of a given width are trained.

    The width is padded to a power of two, at least 32, and never exceeds `shape.width`, so a search
    compiles at most log2(shape.width / 32) + 1 shapes. The depth stays that of `shape`: missing
    layers cost no time on a CPU, and more shapes would cost more compilations.

    Args:
        shape: Shape that holds every network.
        width: Units of the widest hidden layer.
    """
    power = max(_MIN_WIDTH, 1 << (max(width, 1) - 1).bit_length())
    return replace(shape, width=min(power, shape.width))


class Architecture(NamedTuple):
    """Architecture of a network within a shape; every field may be traced and batched by `vmap`."""

    # (depth,) int: units of each hidden layer; 0 removes the layer (Twist, eq. 29)
    widths: Array
    activation: Array  # () int: position in Shape.activations
    # () probability that a weight or bias exists; None: all exist
    density: Array | None = None


def architecture(
    shape: Shape,
    widths: ArrayLike | Sequence[int],
    activation: str | ArrayLike = 0,
    density: ArrayLike | None = None,
) -> Architecture:
    """Build an architecture from the widths of its hidden layers.

    Args:
        shape: Shape that the network must fit into.
        widths: Units of at most `shape.depth` hidden layers.
        activation: Name of an activation, or its position in `shape.activations`.
        density: Probability that a weight or bias exists; None keeps all of them.
    """
    if isinstance(activation, str):
        if activation not in shape.activations:
            known = ", ".join(shape.activations)
            raise ValueError(
                f"activation must be one of {known}, as in the shape; got {activation!r}"
            )
        activation = shape.activations.index(activation)
    if np.size(widths):
        units = jnp.atleast_1d(jnp.asarray(widths, jnp.int32))
    else:
        units = jnp.zeros(0, jnp.int32)
    if units.ndim != 1 or len(units) > shape.depth:
        raise ValueError(
            f"expected widths of at most {shape.depth} hidden layers; got shape {units.shape}"
        )
    units = jnp.pad(units, (0, shape.depth - len(units)))
    density = None if density is None else jnp.asarray(density, jnp.float32)
    network = Architecture(units, jnp.asarray(activation, jnp.int32), density)
    check_architecture(shape, network)
    return network


def stack(trees: Sequence[Any]) -> Any:
    """Stack architectures, hyperparameters or parameters along a new leading axis."""
    return jax.tree.map(
        lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *trees
    )


def check_architecture(
    shape: Shape, architecture: Architecture, networks: int | None = None
) -> None:
    """Raise a ValueError unless the architecture fits into the shape.

    Values are checked only outside `jit`, where they are known.

    Args:
        shape: Shape that the architecture must fit into.
        architecture: One architecture, or several with a leading axis.
        networks: Expected length of the leading axis, if there is one.
    """
    if jnp.shape(architecture.widths)[-1:] != (shape.depth,):
        raise ValueError(
            f"expected {shape.depth} widths, the depth of the shape; "
            f"got shape {jnp.shape(architecture.widths)}"
        )
    limits = {
        "widths": (architecture.widths, 0, shape.width),
        "activation": (architecture.activation, 0, len(shape.activations) - 1),
        "density": (architecture.density, 0.0, 1.0),
    }
    for name, (value, low, high) in limits.items():
        if value is None or isinstance(value, jax.core.Tracer):
            continue
        values = np.asarray(value)
        if not ((values >= low) & (values <= high)).all():
            raise ValueError(
                f"{name} must be between {low} and {high} in this shape; got {value}"
            )
    leading = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(architecture)}
    if networks is not None and (networks == 0 or leading != {(networks,)}):
        raise ValueError(
            f"expected architectures with a leading axis of {networks} > 0, one per key; "
            "combine them with nets.stack"
        )


def depth_of(architecture: Architecture) -> Int[Array, ""]:
    """Count the hidden layers of a network."""
    return jnp.sum(architecture.widths > 0)
