"""Kernels for conditional spaces.

A conditional kernel embeds every column in a few Euclidean coordinates that depend on whether the
column is active, and applies an isotropic kernel to all of them.
Columns are in [0, 1]; outside `jit`, points with an active column elsewhere are an error. A Choice
column of m options holds j/(m − 1) for option j.

The argument `active=` is a Space, or a function of a point, active(x (d,)) -> (d,) bool. Shapes and
types are checked when the function is traced, since the number of columns is known then; values of
points are checked only outside `jit`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float, PRNGKeyArray
from numpyro.distributions import constraints

from bonas.fast_trigonometry import sine_and_cosine
from bonas.gp.active_functions import (
    ActiveFunction,
    check_inside,
    evaluate_active,
    resolve_function,
)
from bonas.gp.default_kernels import Stationary, matern52
from bonas.gp.kernel import (
    Kernel,
    Params,
    Prior,
    check_kernel,
    check_prior,
    check_width,
    gram,
    indicator_of,
)
from bonas.spaces import Space

Active: TypeAlias = Space | ActiveFunction


@dataclass(frozen=True)
class Embedding:
    """The embedding of one column by a conditional kernel.

    Attributes:
        prior: Function from the number of columns d to priors of the parameters.
        numbers: Function (params, x (d,), active (d,)) -> (d, 2), coordinates of all numbers.
        option: Function (params, column, indicator (m,), active ()) -> coordinates of a Choice.
    """

    prior: Prior
    numbers: Callable[[Params, Array, Array], Array]
    option: Callable[[Params, int, Array, Array], Array]


@dataclass(frozen=True)
class ConditionalKernel(Kernel):
    """An isotropic kernel of the embedded columns."""

    embedding: Embedding
    active: Active
    base: Kernel
    categories: tuple[int, ...] = ()
    own_prior: Prior | None = None

    def prior(self, d: int) -> Params:
        check_active(self.active, d)
        check_width(self.categories, d)
        shared = dict(self.base.prior(1))
        shared.pop("lengthscale", None)
        default = {**shared, **self.embedding.prior(d)}
        own = self.own_prior(d) if self.own_prior else {}
        unknown = [name for name in own if name not in default]
        if unknown:
            raise ValueError(
                f"the kernel has the parameters {', '.join(default)}; "
                f"the prior names {unknown[0]!r}, which is not one of them"
            )
        return {**default, **own}

    def value(self, params: Params, a: Array, b: Array) -> Array:
        unscaled = {**params, "lengthscale": 1.0}
        return self.base.value(unscaled, self._embed(params, a), self._embed(params, b))

    def gram(self, params: Params, a: Array, b: Array) -> Array:
        rows = jax.vmap(partial(self._embed, params))
        return gram(self.base, {**params, "lengthscale": 1.0}, rows(a), rows(b))

    def diagonal(self, params: Params, x: Array) -> Array:
        if isinstance(self.base, Stationary):  # the embedding does not matter
            return self.base.diagonal(params, x)
        return super().diagonal(params, x)

    def check(self, x: np.ndarray) -> None:
        check_unit_cube(self.active, x)

    def _embed(self, params: Params, x: Array) -> Array:
        """Return all coordinates of a point in one vector."""
        if any(self.categories):
            return jnp.concatenate(self.embed_columns(params, x))
        return self.embedding.numbers(params, x, self._mask(x)).reshape(-1)

    def embed_columns(self, params: Params, x: Array) -> list[Array]:
        """Return the coordinates of each column: numbers first, then options."""
        mask = self._mask(x)
        pairs = self.embedding.numbers(params, x, mask)
        categories = self.categories or (0,) * len(x)
        numbers = [pairs[i] for i, m in enumerate(categories) if not m]
        options = [
            self.embedding.option(params, i, indicator_of(x[i], m), mask[i])
            for i, m in enumerate(categories)
            if m
        ]
        return numbers + options

    def _mask(self, x: Array) -> Array:
        mask = active_mask(self.active, x)
        check_width(self.categories, len(x))
        return mask


def conditional(
    embedding: Embedding,
    active: Active,
    base: Kernel | None,
    *,
    categories: tuple[int, ...],
    product: bool,
    prior: Prior | None,
) -> Kernel:
    """Create a conditional kernel after checking its arguments; see `arc`."""
    from bonas.gp.conditional_kernel_variants import ProductConditionalKernel

    function, options = resolve_active(active, categories)
    base = matern52() if base is None else base
    check_kernel(base)
    if prior is not None:
        check_prior(prior)
    kind = ProductConditionalKernel if product else ConditionalKernel
    return kind(embedding, function, base, options, prior)


def arc(
    active: Active,
    base: Kernel | None = None,
    *,
    categories: tuple[int, ...] = (),
    product: bool = False,
    prior: Prior | None = None,
) -> Kernel:
    """Create the arc kernel for conditional spaces (Swersky et al. 2014, eqs. 3 and 4).

    An active column is embedded on an arc of radius omega and angle pi · rho, an inactive one at
    its center. Two active values that differ by Δ are 2 omega |sin(pi rho Δ/2)| apart, and an
    active value is omega from an inactive one. Parameters: variance, omega (d,) > 0, rho (d,) in
    [0, 1], and the parameters of the base except `lengthscale`.

    Args:
        active: A Space, or a function active(x (d,)) -> (d,) bool, such as `space.active`.
        base: An isotropic kernel with a `lengthscale` (default: Matérn 5/2, as in the paper).
        categories: The options of each column (`space.categories`), if `active` is a function.
            Choice columns have the distance of Hutter & Osborne 2013 (see `options_on_sphere`).
        product: Multiply one factor per column instead of embedding all columns jointly; for the
            squared exponential this is the same.
        prior: Function from d to {name: distribution}, which replaces defaults of some parameters.
    """
    return conditional(
        _ARC, active, base, categories=categories, product=product, prior=prior
    )


class Middle(dist.Distribution):  # type: ignore[misc,unused-ignore]
    """The distribution Beta(2, 2), with density 6x(1 − x) on [0, 1].

    NumPyro computes its Beta as a Dirichlet distribution, which is slower and requires implicit
    rank promotion. A draw is the median of three uniform draws.
    """

    support = constraints.unit_interval

    def sample(self, key: PRNGKeyArray, sample_shape: tuple[int, ...] = ()) -> Array:
        uniforms = jax.random.uniform(key, (*sample_shape, *self.batch_shape, 3))
        return jnp.median(uniforms, axis=-1)

    def log_prob(self, value: Array) -> Array:
        return math.log(6.0) + jnp.log(value) + jnp.log1p(-value)


def angle_prior(d: int) -> dist.Distribution:
    """Return the default prior of the angles `rho`, whose density is 0 at both ends of [0, 1].

    Under a flat prior and with few data, the most probable angles are 0 or π. With a flat prior,
    searches of a table with 24 columns ended twice as far from its minimum.
    """
    return Middle().expand([d])


def _arc_prior(d: int) -> Params:
    radius = dist.LogNormal(math.log(2.0) - 0.5 * math.log(d), 1.0).expand([d])
    return {"omega": radius, "rho": angle_prior(d)}


def _arc_numbers(params: Params, x: Array, active: Array) -> Array:
    sine, cosine = sine_and_cosine(jnp.pi * params["rho"] * x)
    radius = jnp.where(active, params["omega"], 0.0)
    return jnp.stack([radius * sine, radius * cosine], axis=-1)


def _arc_option(params: Params, i: int, indicator: Array, active: Array) -> Array:
    return options_on_sphere(params["omega"][i], params["rho"][i], indicator, active)


_ARC = Embedding(_arc_prior, _arc_numbers, _arc_option)


def options_on_sphere(
    omega: Float[Array, ""],
    rho: Float[Array, ""],
    indicator: Float[Array, " m"],
    active: Array,
) -> Float[Array, " m"]:
    """Embed the options of a Choice on a sphere of radius omega, an inactive one at its center.

    Two options are √2 omega rho / √(1 + (m−1)(1−rho)²) apart: Hutter & Osborne 2013, with the
    square root that their text omits.
    """
    m = len(indicator)
    point = indicator + (1.0 - rho) * (1.0 - indicator)
    return (
        jnp.where(active, omega, 0.0)
        * point
        / jnp.sqrt(1.0 + (m - 1) * (1.0 - rho) ** 2)
    )


def resolve_active(
    active: Any, categories: tuple[int, ...] = ()
) -> tuple[Active, tuple[int, ...]]:
    """Return `active`, with `space.active` replaced by the space, and the categories.

    Args:
        active: A Space, or a function of a point that returns which columns are active.
        categories: The number of options of each column, which a Space gives instead.
    """
    if isinstance(active, Space):
        return active, active.categories
    return resolve_function(active), tuple(categories)


def active_mask(active: Active, x: Array) -> Array:
    """Return which columns (d,) of a point x (d,) are active."""
    if not isinstance(active, Space):
        return evaluate_active(active, x)
    if x.shape != (active.dim,):
        raise ValueError(
            f"expected a point of {active.dim} columns, as in the space; got shape {x.shape}"
        )
    return active.active(x)


def check_active(active: Active, d: int) -> None:
    """Raise a ValueError if `active` is invalid for points of d columns, by tracing it."""
    point = jax.ShapeDtypeStruct((d,), jnp.result_type(float))
    jax.eval_shape(partial(active_mask, active), point)


def check_unit_cube(active: Active, x: np.ndarray) -> None:
    """Raise a ValueError if an active column of points (n, d) is outside [0, 1]."""
    if isinstance(active, Space):
        active.check(x, "point")
    else:
        check_inside(active, x)
