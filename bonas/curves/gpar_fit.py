"""Fit a GPAR layer by layer, as in Hutchinson's code, and score held-out curves.

`GPAR.hyperposterior` gives the joint fit of all layers.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bonas.curves.gpar_model import GPAR
from bonas.data import Dataset
from bonas.gp import Noise
from bonas.infer import Tree, maximize


def fit_layers(
    key: PRNGKeyArray,
    model: GPAR,
    data: Dataset,
    start: Tree | None = None,
    *,
    steps: int = 50,
    noise: Noise | None = None,
) -> Tree:
    """Fit the parameters of a GPAR one layer at a time, with earlier layers fixed.

    Tied length scales are fitted by the first layer only. If they are not tied and layers do not
    take fitted means as inputs (`replace`, `impute`), the joint posterior is a product over layers,
    and the result equals a joint fit.

    Args:
        key: A random key.
        model: The GPAR.
        data: Learning curves.
        start: The unconstrained parameters to start from. Default: `infer.Target.start`.
        steps: The number of density evaluations per layer.
        noise: The prior of the noise variances. Default: that of `GPAR.prior`.

    Returns:
        The maximum a posteriori parameters, constrained.
    """
    whole = model.hyperposterior(data, noise=noise)
    outputs = jnp.arange(data.y.shape[1])

    def fit_layer(
        z: Tree, layer: tuple[Int[Array, ""], PRNGKeyArray]
    ) -> tuple[Tree, None]:
        i, key = layer
        fitted = _parameters_of_layer(model, z, i)
        visible = data._replace(mask=data.mask & (outputs <= i)[None, :])
        target = model.hyperposterior(visible, noise=noise)

        def density(free: Tree) -> Float[Array, ""]:
            return target.maximizing(jax.tree.map(jnp.where, fitted, free, z))

        found, _ = maximize(key, density, z, steps=steps)
        update = jax.tree.map(
            lambda of, new, old: jnp.where(of, new[0], old), fitted, found, z
        )
        return update, None

    start = whole.start if start is None else start
    z, _ = jax.lax.scan(
        fit_layer, start, (outputs, jax.random.split(key, len(outputs)))
    )
    return whole.constrain(z)


def log_predictive(
    model: GPAR,
    params: Tree,
    data: Dataset,
    x: Float[Array, "m d"],
    y: Float[Array, "m p"],
) -> Float[Array, " m"]:
    """Return log p(curve | data) of held-out curves, noise included, in the units of y.

    Args:
        model: The GPAR.
        params: Hyperparameter samples, leaves (s, ...), over which densities are averaged.
        data: Learning curves to condition on.
        x: The points of the held-out curves.
        y: The held-out curves.
    """

    def log_density(one: Tree) -> Float[Array, " m"]:
        return model.log_density(model.condition(one, data), x, y).sum(axis=1)

    each = jax.vmap(log_density)(params)
    return jax.nn.logsumexp(each, axis=0) - jnp.log(len(each))


def _parameters_of_layer(
    model: GPAR,
    z: dict[str, Any],
    i: Int[Array, ""],
) -> dict[str, Any]:
    """Return a mask of the parameters that layer i fits, in the structure of z."""

    def rows(leaf: Array) -> Array:
        selected = (jnp.arange(len(leaf)) == i).reshape(-1, *[1] * (leaf.ndim - 1))
        return jnp.broadcast_to(selected, leaf.shape)

    mask = jax.tree.map(rows, z)
    if model.tied:
        shape = z["kernel"]["lengthscale"].shape
        mask["kernel"]["lengthscale"] = jnp.broadcast_to(i == 0, shape)
    return mask
