"""Kernels and a conditional space that several tests share."""

import jax
import jax.numpy as jnp
import numpyro.distributions as dist

import bonas
from bonas import gp

SPACE = bonas.Space(
    depth=bonas.Int(0, 3),
    lr=bonas.Float(1e-4, 1.0, log=True),
    activation=bonas.Choice("relu", "tanh", "sigmoid"),
    width_1=bonas.Int(1, 64, log=True, when={"depth": (">=", 1)}),
    width_2=bonas.Int(1, 64, log=True, when=lambda p: p["depth"] >= 2),
    dropout_2=bonas.Float(0.0, 0.8, when=lambda p: p["width_2"] >= 4),
    slope=bonas.Float(0.0, 0.5, when={"activation": "relu"}),
)


def brownian(params, a, b):
    """The Brownian kernel of the README."""
    return params["scale"] ** 2 * jnp.minimum(a, b).sum()


CONDITIONAL = {
    f"{kernel.__name__}{' product' if product else ''}{' categories' if categories else ''}": kernel(  # noqa: E501
        SPACE.active, categories=categories, product=product
    )
    for kernel in (gp.arc, gp.box, gp.wedge)
    for product in (False, True)
    for categories in ((), SPACE.categories)
}
PLAIN = {
    kernel.__name__: kernel()
    for kernel in (
        gp.se,
        gp.matern12,
        gp.matern32,
        gp.matern52,
        gp.rq,
        gp.blend,
        gp.linear,
    )
}
KERNELS = {
    **PLAIN,
    **CONDITIONAL,
    "arc of rq": gp.arc(SPACE.active, gp.rq(), categories=SPACE.categories),
    "one_hot": gp.one_hot(SPACE.categories, gp.matern52()),
    "one_hot linear": gp.one_hot(SPACE.categories, gp.linear()),
    "add": gp.add(gp.matern52(), gp.linear()),
    "multiply": gp.matern32() * gp.se(),
    "nested": gp.add(
        gp.multiply(gp.se(), gp.linear()), gp.on_columns([1, 3], gp.matern12())
    ),
    "on": gp.on_columns([1, 4], gp.matern52()),
    "basis": gp.basis(gp.quadratic_features),
    "shared": gp.tied(gp.matern52(), [(3, 4)]),
    "shared arc": gp.arc(SPACE) + gp.tied(gp.arc(SPACE), [(3, 4), (5, 6)]),
    "notebook": gp.Kernel(prior={"scale": dist.HalfNormal(1.0)}, value=brownian),
}


def draw(prior, key):
    """Parameters drawn from a prior, a nested dict of distributions."""
    leaves, structure = jax.tree.flatten(
        prior, is_leaf=lambda node: isinstance(node, dist.Distribution)
    )
    keys = jax.random.split(key, len(leaves))
    return structure.unflatten(
        [leaf.sample(k) for leaf, k in zip(leaves, keys, strict=True)]
    )
