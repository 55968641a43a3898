"""Multilayer perceptrons of different depth, width and sparsity as arrays of one shape.

Every hidden layer is padded to the same width, and the weights between hidden layers are stacked.
Missing units, layers and connections have weights and biases of exactly zero; `masks` marks the
parameters that exist. A padded network therefore computes the same function as the small one
without masks in its forward pass, and training only has to mask gradients. A missing layer is the
identity: a branch that is not taken, or a selection under `vmap`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.nets.shapes import ACTIVATIONS, Architecture, Shape, depth_of

# A sampler such as jax.random.normal or uniform: (key, sizes, dtype) -> array.
Sampler = Callable[[Array, tuple[int, ...], Any], Array]
# {"first", "hidden", "last"} -> {"kernel", "bias"}.
Params = dict[str, dict[str, Array]]

# ReLU discards half of the signal, so its weights have twice the variance (He et al. 2015).
_GAINS = {"relu": 2.0}
# Larger than the number of rows of any layer, so that rows of different layers have distinct seeds.
_ROWS = 1 << 16
INITIAL = ("scaled", "unit", "uniform")


def draw_padded(
    sampler: Sampler, key: Array, sizes: tuple[int, int, int], dtype: Any
) -> Array:
    """Draw an array (layers, rows, columns) whose entries do not depend on the padding.

    A larger draw contains the smaller one in its corner, so a network starts with the same weights
    and drops the same units in every shape that it is padded to.
    """
    layers, rows, columns = sizes
    numbers = jnp.arange(layers)[:, None] * _ROWS + jnp.arange(rows)[None, :]
    keys = jax.vmap(partial(jax.random.fold_in, key))(numbers.reshape(-1))
    return jax.vmap(lambda row: sampler(row, (columns,), dtype))(keys).reshape(sizes)


def draw_params(sampler: Sampler, key: Array, shape: Shape, dtype: Any) -> Params:
    """Draw all parameters of an MLP.

    They are cut from one array, because samplers are slow to compile.
    """
    rows = max(shape.inputs, shape.width)
    columns = max(shape.outputs, shape.width)
    block = draw_padded(sampler, key, (shape.depth + 1, 1 + rows, columns), dtype)

    def layer(number: int | slice, incoming: int, units: int) -> dict[str, Array]:
        return {
            "kernel": block[number, 1 : 1 + incoming, :units],
            "bias": block[number, 0, :units],
        }

    return {
        "first": layer(0, shape.inputs, shape.width),
        "hidden": layer(slice(2, None), shape.width, shape.width),
        "last": layer(1, rows, shape.outputs),
    }


class Layer(nn.Module):
    """The kernel and bias of one layer or of a stack of layers, drawn from N(0, 1).

    Use `init` of this module for better initial values.
    """

    sizes: tuple[int, ...]

    @nn.compact
    def __call__(self, dtype: Any) -> tuple[Array, Array]:
        normal = jax.random.normal
        kernel = self.param("kernel", normal, self.sizes, dtype)
        bias = self.param("bias", normal, (*self.sizes[:-2], self.sizes[-1]), dtype)
        return kernel, bias


class MLP(nn.Module):
    """Multilayer perceptron of any architecture within a shape (Twist, eqs. 1 to 3)."""

    shape: Shape

    @nn.compact
    def __call__(
        self, x: Any, architecture: Architecture, keep: Array | None = None
    ) -> Array:
        """Compute outputs (n, outputs) for rows x (n, inputs).

        For dropout, `keep` (depth, n, width) multiplies the hidden units.
        """
        first, hidden, last = (
            Layer(sizes, name=name)(x.dtype) for name, sizes in self.shape.sizes.items()
        )
        depth = depth_of(architecture)
        activate = select_activation(self.shape, architecture)

        def layer(number: int, h: Any, kernel: Array, bias: Array) -> Array:
            units = activate(h @ kernel + bias[None, :])
            return units if keep is None else units * keep[number]

        h = layer(0, x, *first)
        for i in range(self.shape.depth - 1):
            next_layer = partial(layer, i + 1, kernel=hidden[0][i], bias=hidden[1][i])
            h = jax.lax.cond(depth > i + 1, next_layer, lambda h: h, h)
        kernel, bias = last
        z = jax.lax.cond(
            depth > 0,
            lambda: h @ kernel[: self.shape.width],
            lambda: x @ kernel[: self.shape.inputs],
        )
        return ACTIVATIONS[self.shape.output](z + bias[None, :])


def select_activation(
    shape: Shape, architecture: Architecture
) -> Callable[[Array], Array]:
    """Return the activation of the hidden units, without a branch if the shape has only one."""
    functions = [ACTIVATIONS[name] for name in shape.activations]
    if len(functions) == 1:
        return functions[0]
    return lambda z: jax.lax.switch(architecture.activation, functions, z)


def apply(
    shape: Shape,
    params: Params,
    x: Float[ArrayLike, "n inputs"],
    architecture: Architecture,
    keep: Float[Array, "depth n width"] | None = None,
) -> Float[Array, "n outputs"]:
    """Compute the outputs of a network for rows x.

    Args:
        shape: Shape that the network is padded to.
        params: Parameters, zero where they are missing.
        x: Input rows.
        architecture: The network.
        keep: Factors of the hidden units for dropout; None for no dropout.
    """
    if jnp.ndim(x) != 2 or jnp.shape(x)[1] != shape.inputs:
        raise ValueError(f"expected x of shape (n, {shape.inputs}); got {jnp.shape(x)}")
    outputs: Any = MLP(shape).apply({"params": params}, x, architecture, keep)
    return outputs


def masks(key: PRNGKeyArray, shape: Shape, architecture: Architecture) -> Params:
    """Return boolean masks of the parameters that exist in a network.

    Parameters within its widths and layers exist, each with probability `density`. Sparse networks
    lose both weights and biases, including those of the output layer (Wilton, Section 3.3).
    """
    widths = architecture.widths[jnp.argsort(architecture.widths == 0, stable=True)]
    units = jnp.arange(shape.width)[None, :] < widths[:, None]
    depth = depth_of(architecture)
    rows = shape.sizes["last"][0]
    incoming = jnp.where(depth > 0, widths[jnp.maximum(depth, 1) - 1], shape.inputs)
    sources = jnp.arange(rows) < incoming
    outputs = jnp.ones(shape.outputs, bool)
    first_kernel = jnp.broadcast_to(units[0], (shape.inputs, shape.width))
    exists = {
        "first": {"kernel": first_kernel, "bias": units[0]},
        "hidden": {
            "kernel": units[:-1, :, None] & units[1:, None, :],
            "bias": units[1:],
        },
        "last": {"kernel": sources[:, None] & outputs[None, :], "bias": outputs},
    }
    if architecture.density is None:
        return exists
    # float32 for any precision of training, so that a key always gives the same mask.
    uniform = draw_params(jax.random.uniform, key, shape, jnp.float32)
    density = jnp.asarray(architecture.density, jnp.float32)
    return jax.tree.map(lambda leaf, draw: leaf & (draw < density), exists, uniform)


def init(
    key: PRNGKeyArray,
    shape: Shape,
    architecture: Architecture,
    mask: Params,
    initial: str = "scaled",
    dtype: Any = None,
) -> Params:
    """Draw the initial parameters of a network, zero outside the mask.

    Args:
        key: Random key.
        shape: Shape that the network is padded to.
        architecture: The network.
        mask: The parameters that exist; see `masks`.
        initial: Distribution of the parameters; a unit has k incoming weights.
            "scaled": weights N(0, gain / k) with gain 2 for ReLU and 1 otherwise, biases 0, so that
            signals keep their size at any width, depth and density.
            "unit": weights and biases N(0, 1) (Twist, Algorithm 3).
            "uniform": weights and biases U(-1/√k, 1/√k), the default of PyTorch.
        dtype: Floating-point type; the default of JAX if None.
    """
    if initial not in INITIAL:
        raise ValueError(
            f"initial must be one of {', '.join(INITIAL)}; got {initial!r}"
        )
    dtype = jnp.result_type(float) if dtype is None else dtype
    normal = draw_params(jax.random.normal, key, shape, dtype)
    gains = jnp.asarray([_GAINS.get(name, 1.0) for name in shape.activations], dtype)
    gain = gains[architecture.activation]

    def init_layer(name: str) -> dict[str, Array]:
        layer = normal[name]
        exists = mask[name]
        incoming = jnp.maximum(jnp.sum(exists["kernel"], axis=-2), 1).astype(dtype)
        if initial == "scaled":
            std = jnp.sqrt((1.0 if name == "last" else gain) / incoming)
            layer = {
                "kernel": layer["kernel"] * std[..., None, :],
                "bias": jnp.zeros_like(layer["bias"]),
            }
        if initial == "uniform":
            bound = 1.0 / jnp.sqrt(incoming)
            layer = {
                "kernel": _normal_to_uniform(layer["kernel"]) * bound[..., None, :],
                "bias": _normal_to_uniform(layer["bias"]) * bound,
            }
        return jax.tree.map(
            lambda leaf, live: jnp.where(live, leaf, 0.0), layer, exists
        )

    return {name: init_layer(name) for name in shape.sizes}


def _normal_to_uniform(normal: Array) -> Array:
    """Map draws of N(0, 1) to uniform draws on (-1, 1)."""
    return jax.lax.erf(normal / np.sqrt(2.0).astype(normal.dtype))


def flatten(params: Params) -> Array:
    """Concatenate all parameters into one vector (k,)."""
    return ravel_pytree(params)[0]


def unflatten(vector: Array, shape: Shape) -> Params:
    """Split a vector (k,) into the parameters of each layer, the inverse of `flatten`."""
    like = jax.tree.map(
        lambda sizes: jnp.zeros(sizes, vector.dtype),
        shape.layer_sizes,
        is_leaf=lambda node: isinstance(node, tuple),
    )
    return ravel_pytree(like)[1](vector)


def resize(params: Params, shape: Shape) -> Params:
    """Pad parameters with zeros, or truncate them, to the sizes of another shape.

    Leading axes are kept. NumPy does the work, so that nothing is compiled.
    """

    def fit(leaf: Any, sizes: tuple[int, ...]) -> Any:
        leaf = np.asarray(leaf)
        old_sizes = leaf.shape[-len(sizes) :]
        kept = [
            slice(0, min(old, new)) for old, new in zip(old_sizes, sizes, strict=True)
        ]
        corner: Any = (..., *kept)
        resized = np.zeros((*leaf.shape[: -len(sizes)], *sizes), leaf.dtype)
        resized[corner] = leaf[corner]
        return resized

    return {
        name: {
            kind: fit(params[name][kind], kind_sizes)
            for kind, kind_sizes in sizes.items()
        }
        for name, sizes in shape.layer_sizes.items()
    }
