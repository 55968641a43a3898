"""Multilayer perceptrons of different depth, width and sparsity as arrays of one shape.

Every hidden layer is padded to the same width, and the weights between hidden layers are one stack. What a network does
not have – units, layers, connections – is a weight or a bias of exactly zero, and `masks` says where: a padded network
then computes what the small one does without a mask in its forward pass, and training only has to mask gradients. A layer
that is not there is the identity: a branch that is not taken, or under `vmap` a selection.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.typing import ArrayLike

Draw = Callable[[Array, tuple[int, ...], Any], Array]  # jax.random.normal, uniform, ...: (key, sizes, dtype)
Params = dict[str, dict[str, Array]]  # {"first", "hidden", "last"} -> {"kernel", "bias"}

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "identity": lambda z: z,
}
# Half of the signal is lost in a ReLU, so its weights have twice the variance (He et al. 2015).
_GAINS = {"relu": 2.0}
# More rows than any layer has: rows of different layers get different numbers.
_ROWS = 1 << 16
INITIAL = ("scaled", "unit", "uniform")


@jax.tree_util.register_static
@dataclass(frozen=True)
class Shape:
    """What networks are padded to. Static: it may be passed to any jitted function, and each shape is compiled once.

    depth, width: the most hidden layers, and the most units in any of them.
    activations: what hidden units may be; an architecture names one by its position.
    output: the activation of the output; "identity" for regression and for cross-entropy, which takes logits.
    """

    inputs: int
    outputs: int
    depth: int
    width: int
    activations: tuple[str, ...] = ("relu", "tanh", "sigmoid")
    output: str = "identity"

    def __post_init__(self):
        for name in ("inputs", "outputs", "depth", "width"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}")
        if isinstance(self.activations, str) or not self.activations:
            raise ValueError(f"activations must be a tuple of names, not empty; got {self.activations!r}")
        for name in (*self.activations, self.output):
            if name not in ACTIVATIONS:
                raise ValueError(f"an activation is one of {', '.join(ACTIVATIONS)}; got {name!r}")

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """The kernel of each layer, (..., incoming, units).

        The output layer takes the last hidden layer, or the inputs themselves where a network has no hidden layer.
        """
        return {
            "first": (self.inputs, self.width),
            "hidden": (self.depth - 1, self.width, self.width),
            "last": (max(self.inputs, self.width), self.outputs),
        }


class Architecture(NamedTuple):
    """A network of a shape; all of it may be traced, and `vmap` takes many."""

    widths: Array  # (depth,) int: units of each hidden layer; 0 is no such layer, wherever it stands (Twist, eq. 29)
    activation: Array  # () int: position in Shape.activations
    density: Array | None = None  # () chance that a weight or bias exists (Wilton's p); None: all of them


def architecture(
    shape: Shape, widths: ArrayLike | Sequence[int], activation: str | ArrayLike = 0, density: ArrayLike | None = None
) -> Architecture:
    """The architecture of hidden layers of these widths, at most shape.depth of them; the activation by name or position."""
    if isinstance(activation, str):
        if activation not in shape.activations:
            raise ValueError(f"this shape has the activations {', '.join(shape.activations)}; got {activation!r}")
        activation = shape.activations.index(activation)
    whole = jnp.atleast_1d(jnp.asarray(widths, jnp.int32)) if np.size(widths) else jnp.zeros(0, jnp.int32)
    if whole.ndim != 1 or len(whole) > shape.depth:
        raise ValueError(f"expected widths of at most {shape.depth} hidden layers; got shape {whole.shape}")
    whole = jnp.pad(whole, (0, shape.depth - len(whole)))
    density = None if density is None else jnp.asarray(density, jnp.float32)
    made = Architecture(whole, jnp.asarray(activation, jnp.int32), density)
    check_architecture(shape, made)
    return made


def stack(trees: Sequence[Any]) -> Any:
    """Many architectures, hyperparameters or parameters as one, with a leading axis: what `vmap` and `train_many` take."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *trees)


def check_architecture(shape: Shape, architecture: Architecture, networks: int | None = None) -> None:
    """Refuse what does not fit into the shape; values only where they are known, outside `jit`.

    networks: the leading axis of a population, which has one architecture a key.
    """
    if jnp.shape(architecture.widths)[-1:] != (shape.depth,):
        raise ValueError(f"expected {shape.depth} widths, as many as the shape is deep; got {jnp.shape(architecture.widths)}")
    limits = {
        "widths": (architecture.widths, 0, shape.width),
        "activation": (architecture.activation, 0, len(shape.activations) - 1),
        "density": (architecture.density, 0.0, 1.0),
    }
    for name, (value, low, high) in limits.items():
        if value is None or isinstance(value, jax.core.Tracer):
            continue
        if not ((np.asarray(value) >= low) & (np.asarray(value) <= high)).all():
            raise ValueError(f"{name} must be between {low} and {high} in this shape; got {value}")
    leads = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(architecture)}
    if networks is not None and (networks == 0 or leads != {(networks,)}):
        raise ValueError(f"expected architectures with a leading axis of {networks} > 0, one a key; see nets.stack")


def depth_of(architecture: Architecture) -> Array:
    """How many hidden layers there are, ()."""
    return jnp.sum(architecture.widths > 0)


def growing(draw: Draw, key: Array, sizes: tuple[int, int, int], dtype) -> Array:
    """A draw (layers, rows, columns) whose entries do not depend on the sizes: a larger one holds the smaller in its corner.

    So a network starts, and drops units, alike whatever it is padded to.
    """
    layers, rows, columns = sizes
    numbers = jnp.arange(layers)[:, None] * _ROWS + jnp.arange(rows)[None, :]
    keys = jax.vmap(partial(jax.random.fold_in, key))(numbers.reshape(-1))
    return jax.vmap(lambda row: draw(row, (columns,), dtype))(keys).reshape(sizes)


def draws(draw: Draw, key: Array, shape: Shape, dtype) -> Params:
    """A draw for every parameter, from one array: random numbers are dear to compile."""
    rows, columns = max(shape.inputs, shape.width), max(shape.outputs, shape.width)
    block = growing(draw, key, (shape.depth + 1, 1 + rows, columns), dtype)

    def layer(which, incoming, units):
        return {"kernel": block[which, 1 : 1 + incoming, :units], "bias": block[which, 0, :units]}

    return {
        "first": layer(0, shape.inputs, shape.width),
        "hidden": layer(slice(2, None), shape.width, shape.width),
        "last": layer(1, rows, shape.outputs),
    }


class Layer(nn.Module):
    """The kernel and the bias of a layer or of a stack of them; `init` below draws better ones than N(0, 1)."""

    sizes: tuple[int, ...]

    @nn.compact
    def __call__(self, dtype) -> tuple[Array, Array]:
        normal = jax.random.normal
        bias = (*self.sizes[:-2], self.sizes[-1])
        return self.param("kernel", normal, self.sizes, dtype), self.param("bias", normal, bias, dtype)


class MLP(nn.Module):
    """Twist, eqs. 1–3, for networks of any architecture within a shape."""

    shape: Shape

    @nn.compact
    def __call__(self, x: Array, architecture: Architecture, keep: Array | None = None) -> Array:
        """Outputs (n, outputs) for rows x (n, inputs); keep (depth, n, width) multiplies hidden units: dropout."""
        first, hidden, last = (Layer(sizes, name=name)(x.dtype) for name, sizes in self.shape.sizes.items())
        depth, functions = depth_of(architecture), [ACTIVATIONS[name] for name in self.shape.activations]

        def layer(number, h, kernel, bias):
            z = h @ kernel + bias[None, :]
            units = functions[0](z) if len(functions) == 1 else jax.lax.switch(architecture.activation, functions, z)
            return units if keep is None else units * keep[number]

        h = layer(0, x, *first)
        for i in range(self.shape.depth - 1):
            there = partial(layer, i + 1, kernel=hidden[0][i], bias=hidden[1][i])
            h = jax.lax.cond(depth > i + 1, there, lambda h: h, h)
        kernel, bias = last
        z = jax.lax.cond(depth > 0, lambda: h @ kernel[: self.shape.width], lambda: x @ kernel[: self.shape.inputs])
        return ACTIVATIONS[self.shape.output](z + bias[None, :])


def apply(shape: Shape, params: Params, x: Array, architecture: Architecture, keep: Array | None = None) -> Array:
    """Outputs (n, outputs) of a network for rows x (n, inputs); keep (depth, n, width) multiplies its hidden units."""
    if jnp.ndim(x) != 2 or jnp.shape(x)[1] != shape.inputs:
        raise ValueError(f"expected rows of {shape.inputs} inputs, shape (n, {shape.inputs}); got {jnp.shape(x)}")
    outputs: Any = MLP(shape).apply({"params": params}, x, architecture, keep)
    return outputs


def masks(key: Array, shape: Shape, architecture: Architecture) -> Params:
    """Where a network has parameters: true within its widths and layers, and of those each with chance `density`.

    Wilton's sparse networks lose weights and biases alike, those of the output too.
    """
    widths = architecture.widths[jnp.argsort(architecture.widths == 0, stable=True)]
    live = jnp.arange(shape.width)[None, :] < widths[:, None]
    depth, rows = depth_of(architecture), shape.sizes["last"][0]
    incoming = jnp.where(depth > 0, widths[jnp.maximum(depth, 1) - 1], shape.inputs)
    feeds, every = jnp.arange(rows) < incoming, jnp.ones(shape.outputs, bool)
    there = {
        "first": {"kernel": jnp.broadcast_to(live[0], (shape.inputs, shape.width)), "bias": live[0]},
        "hidden": {"kernel": live[:-1, :, None] & live[1:, None, :], "bias": live[1:]},
        "last": {"kernel": feeds[:, None] & every[None, :], "bias": every},
    }
    if architecture.density is None:
        return there
    # float32 whatever the precision of training: a key gives one mask
    drawn, chance = draws(jax.random.uniform, key, shape, jnp.float32), jnp.asarray(architecture.density, jnp.float32)
    return jax.tree.map(lambda leaf, draw: leaf & (draw < chance), there, drawn)


def init(key: Array, shape: Shape, architecture: Architecture, mask: Params, initial: str = "scaled", dtype=None) -> Params:
    """Parameters to start from, zero outside the mask.

    "scaled": weights N(0, gain / k), biases 0, where k counts the weights that a unit has and the gain is 2 for ReLU and
        1 otherwise: signals keep their size at any width, depth and density.
    "unit": weights and biases N(0, 1) (Twist, Algorithm 3).
    "uniform": weights and biases U(-1/√k, 1/√k), which is what PyTorch starts from, with k counted alike.
    """
    if initial not in INITIAL:
        raise ValueError(f"initial is one of {', '.join(INITIAL)}; got {initial!r}")
    dtype = jnp.result_type(float) if dtype is None else dtype
    drawn = draws(jax.random.normal, key, shape, dtype)
    gain = jnp.asarray([_GAINS.get(name, 1.0) for name in shape.activations], dtype)[architecture.activation]

    def start(name):
        layer, there = drawn[name], mask[name]
        incoming = jnp.maximum(jnp.sum(there["kernel"], axis=-2), 1).astype(dtype)
        if initial == "scaled":
            std = jnp.sqrt((1.0 if name == "last" else gain) / incoming)
            layer = {"kernel": layer["kernel"] * std[..., None, :], "bias": jnp.zeros_like(layer["bias"])}
        if initial == "uniform":
            bound = 1.0 / jnp.sqrt(incoming)
            layer = {"kernel": _uniform(layer["kernel"]) * bound[..., None, :], "bias": _uniform(layer["bias"]) * bound}
        return jax.tree.map(lambda leaf, live: jnp.where(live, leaf, 0.0), layer, there)

    return {name: start(name) for name in shape.sizes}


def _uniform(normal: Array) -> Array:
    """Uniform draws on (-1, 1) from draws of N(0, 1)."""
    return jax.lax.erf(normal / np.sqrt(2.0).astype(normal.dtype))


def flat(params: Params) -> Array:
    """The parameters as one vector (k,)."""
    return ravel_pytree(params)[0]


def unflat(vector: Array, shape: Shape) -> Params:
    """Its inverse."""
    layers = {name: {"kernel": sizes, "bias": (*sizes[:-2], sizes[-1])} for name, sizes in shape.sizes.items()}
    like = jax.tree.map(lambda sizes: jnp.zeros(sizes, vector.dtype), layers, is_leaf=lambda node: isinstance(node, tuple))
    return ravel_pytree(like)[1](vector)


def resize(params: Params, shape: Shape) -> Params:
    """The parameters padded with zeros, or cut, to another width or depth; on the host, so that nothing is compiled."""

    def fit(leaf, sizes):
        leaf = np.asarray(leaf)
        kept = [slice(0, min(had, wanted)) for had, wanted in zip(leaf.shape[-len(sizes) :], sizes, strict=True)]
        corner: Any = (..., *kept)
        made = np.zeros((*leaf.shape[: -len(sizes)], *sizes), leaf.dtype)
        made[corner] = leaf[corner]
        return made

    return {
        name: {
            "kernel": fit(params[name]["kernel"], sizes),
            "bias": fit(params[name]["bias"], (*sizes[:-2], sizes[-1])),
        }
        for name, sizes in shape.sizes.items()
    }
