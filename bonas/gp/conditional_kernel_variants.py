"""Variants of conditional kernels: products over columns, the box kernel and the wedge kernel."""

import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array

from bonas.gp.conditional_kernels import (
    Active,
    ConditionalKernel,
    Embedding,
    angle_prior,
    conditional,
    options_on_sphere,
)
from bonas.gp.kernel import Kernel, Params, Prior, gram


@dataclass(frozen=True)
class ProductConditionalKernel(ConditionalKernel):
    """The product of one isotropic kernel per embedded column."""

    def value(self, params: Params, a: Array, b: Array) -> Array:
        unit = {**params, "lengthscale": 1.0, "variance": 1.0}
        pairs = zip(
            self.embed_columns(params, a), self.embed_columns(params, b), strict=True
        )
        factors = [self.base.value(unit, p, q) for p, q in pairs]
        variance: Array = params["variance"]
        return variance * jnp.prod(jnp.stack(factors))

    def gram(self, params: Params, a: Array, b: Array) -> Array:
        unit = {**params, "lengthscale": 1.0, "variance": 1.0}
        split = jax.vmap(partial(self.embed_columns, params))
        by_width: dict[int, list[tuple[Array, Array]]] = {}
        for p, q in zip(split(a), split(b), strict=True):
            by_width.setdefault(p.shape[1], []).append((p, q))

        def times(result: Array, pair: tuple[Array, ...]) -> tuple[Array, None]:
            return result * gram(self.base, unit, *pair), None

        # a loop over columns of one width: unrolled, they would take minutes to compile
        result = jnp.full((len(a), len(b)), params["variance"])
        for pairs in by_width.values():
            stacked = tuple(jnp.stack(side) for side in zip(*pairs, strict=True))
            result, _ = jax.lax.scan(times, result, stacked)
        return result


def box(
    active: Active,
    base: Kernel | None = None,
    *,
    categories: tuple[int, ...] = (),
    product: bool = False,
    prior: Prior | None = None,
) -> Kernel:
    """Create the box kernel for conditional spaces (`covBox` in the code of Swersky et al. 2014).

    An active column is embedded at (x/lengthscale, 0), an inactive one at (default/lengthscale,
    distance). If all columns are active, this is the base kernel with one length scale per column.
    An inactive Choice is equally far from all its options. Parameters: variance, lengthscale (d,),
    default (d,), distance (d,) > 0. Arguments as in `arc`.
    """
    return conditional(
        _BOX, active, base, categories=categories, product=product, prior=prior
    )


def _box_prior(d: int) -> Params:
    return {
        "lengthscale": dist.LogNormal(math.log(0.5) + 0.5 * math.log(d), 1.0).expand(
            [d]
        ),
        "default": dist.Normal(0.5, 0.5).expand([d]),
        "distance": dist.LogNormal(math.log(2.0) - 0.5 * math.log(d), 1.0).expand([d]),
    }


def _box_numbers(params: Params, x: Array, active: Array) -> Array:
    place = jnp.where(active, x, params["default"]) / params["lengthscale"]
    return jnp.stack([place, jnp.where(active, 0.0, params["distance"])], axis=-1)


def _box_option(params: Params, i: int, indicator: Array, active: Array) -> Array:
    center = 1.0 / len(indicator)
    place = jnp.where(active, indicator, center) / (2**0.5 * params["lengthscale"][i])
    return jnp.append(place, jnp.where(active, 0.0, params["distance"][i]))


_BOX = Embedding(_box_prior, _box_numbers, _box_option)


def wedge(
    active: Active,
    base: Kernel | None = None,
    *,
    categories: tuple[int, ...] = (),
    product: bool = False,
    prior: Prior | None = None,
) -> Kernel:
    """Create the wedge kernel for conditional spaces, after Horn et al. 2019 (GECCO).

    An active column is embedded on one side of a triangle, an inactive one at the opposite corner.
    The two sides from that corner have lengths `low` and `high` and enclose the angle pi · rho, so
    the distance to an inactive column may differ between the ends of the range; for the arc kernel
    it is constant. Parameters: variance, low (d,) > 0, high (d,) > 0, rho (d,) in [0, 1]. Choice
    columns as in `arc`, with radius `low`. Arguments as in `arc`.
    """
    return conditional(
        _WEDGE, active, base, categories=categories, product=product, prior=prior
    )


def _wedge_prior(d: int) -> Params:
    side = dist.LogNormal(math.log(2.0) - 0.5 * math.log(d), 1.0).expand([d])
    return {"low": side, "high": side, "rho": angle_prior(d)}


def _wedge_numbers(params: Params, x: Array, active: Array) -> Array:
    low = params["low"]
    high = params["high"]
    angle = jnp.pi * params["rho"]
    along = low + x * (high * jnp.cos(angle) - low)
    across = x * high * jnp.sin(angle)
    return jnp.where(active[:, None], jnp.stack([along, across], axis=-1), 0.0)


def _wedge_option(params: Params, i: int, indicator: Array, active: Array) -> Array:
    return options_on_sphere(params["low"][i], params["rho"][i], indicator, active)


_WEDGE = Embedding(_wedge_prior, _wedge_numbers, _wedge_option)
