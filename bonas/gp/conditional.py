"""Kernels for spaces whose parameters come and go, and for columns whose values have no order.

Each embeds every column in a few Euclidean coordinates, depending on whether the column is active, and applies an
isotropic kernel to all of them (or multiplies one factor a column). Columns lie in [0, 1], and outside `jit` a point with an
active one elsewhere is refused; a Choice column of m options holds j/(m−1) for the j-th. `active` says which columns matter:
a Space, which brings its categories along, or a function of a point, active(x (d,)) -> (d,) bool, such as `space.active`,
with `categories=space.categories` where there are Choices.
"""

import dataclasses
import math
from collections.abc import Callable
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from bonas.gp.kernel import Kernel, Params, check_kernel, gram
from bonas.gp.kernels import matern52
from bonas.gp.priors import Middle
from bonas.gp.relevance import Active, check_cube, check_relevance, columns_of, relevance
from bonas.linalg import sine_and_cosine

# Of some of the parameters, for points of d columns.
Prior = Callable[[int], Params]


def arc(
    active: Active,
    base: Kernel | None = None,
    *,
    categories: tuple[int, ...] = (),
    product: bool = False,
    prior: Prior | None = None,
) -> Kernel:
    """The arc kernel: an active column lies on an arc of radius omega and angle pi·rho, an inactive one at its centre.

    Swersky et al. 2014, eqs. 3 and 4; the distance between two active values is 2 omega |sin(pi rho Δ/2)|, and omega
    when one is inactive. `base` is any isotropic kernel with a `lengthscale` (default Matérn 5/2, as in the paper).
    categories (`space.categories`) gives Choice columns the distance of Hutter & Osborne 2013 (see `options_on_sphere`).
    product multiplies one factor a column instead of embedding all jointly; for the squared exponential it is the same (R-X2).
    prior: prior(d) -> {name: distribution} in place of the default one of some parameters, here and below.
    Parameters: variance, omega (d,) > 0, rho (d,) in [0, 1], and what else the base has.
    """
    return _conditional("arc", *columns_of(active, categories), base or matern52(), product, prior)


def box(
    active: Active,
    base: Kernel | None = None,
    *,
    categories: tuple[int, ...] = (),
    product: bool = False,
    prior: Prior | None = None,
) -> Kernel:
    """The box kernel: an active column at (x/lengthscale, 0), an inactive one at (default/lengthscale, distance).

    From the code of Swersky et al. (`covBox`, R-S3; the paper only names it, R-X3). Where everything is active it is the
    base kernel with one length scale a column. Parameters: variance, lengthscale (d,), default (d,), distance (d,) > 0.
    An inactive Choice is equally far from all its options.
    """
    return _conditional("box", *columns_of(active, categories), base or matern52(), product, prior)


def wedge(
    active: Active,
    base: Kernel | None = None,
    *,
    categories: tuple[int, ...] = (),
    product: bool = False,
    prior: Prior | None = None,
) -> Kernel:
    """The wedge kernel: an active column lies on the edge of a triangle opposite the corner where inactive ones are.

    After Horn et al. 2019 (GECCO): the two sides from that corner have lengths `low` and `high` and enclose pi·rho, so the
    distance to "inactive" may differ between the ends of the range; the arc kernel's is the same everywhere.
    Parameters: variance, low (d,) > 0, high (d,) > 0, rho (d,) in [0, 1]. Choice columns as in `arc`, of radius `low`.
    """
    return _conditional("wedge", *columns_of(active, categories), base or matern52(), product, prior)


def one_hot(categories: tuple[int, ...], kernel: Kernel) -> Kernel:
    """Any kernel of numbers, on points whose Choice columns are replaced by one coordinate an option, 1/√2 or 0.

    Different options are then at distance 1 from each other, in no order. The kernel's per-column parameters have one
    entry for each number and one for each option.
    """
    return _one_hot(tuple(categories), kernel)


def without_order(kernel: Kernel, categories: tuple[int, ...]) -> Kernel:
    """The kernel for points of a space with these `space.categories`: any kernel, and no Choice column is taken for a number.

    A kernel that knows the categories is returned as it is, one of numbers is wrapped in `one_hot`, and one that was told
    something else, such as `gp.arc(space.active)` without `categories=space.categories`, is refused.
    """
    categories = tuple(categories)
    if not any(categories) or kernel.categories == categories:
        return kernel
    if kernel.rebuild is not None:
        return dataclasses.replace(kernel.rebuild(without_order, categories), categories=categories)
    if kernel.categories is not None:
        raise ValueError(f"this space has categories {categories}, the kernel was made for {kernel.categories or 'none'}")
    return one_hot(categories, kernel)


@cache
def _one_hot(categories: tuple[int, ...], kernel: Kernel) -> Kernel:
    if kernel.categories is not None:
        raise ValueError("this kernel is told about categories by its own `categories=` argument")
    width = sum(max(m, 1) for m in categories)

    def check_width(d):
        if d != len(categories):
            raise ValueError(f"categories describe {len(categories)} columns, the points have {d}")

    def features(x):
        check_width(len(x))
        return jnp.concatenate([_indicator(x[i], m) / 2**0.5 if m else x[i : i + 1] for i, m in enumerate(categories)])

    def prior(d):
        check_width(d)
        return kernel.prior(width)

    def value(params, a, b):
        return kernel.value(params, features(a), features(b))

    def matrix(params, a, b):
        rows = jax.vmap(features)
        return gram(kernel, params, rows(a), rows(b))

    return Kernel(prior, value, matrix, categories)


def _indicator(x: Array, m: int) -> Array:
    """The unit vector (m,) of the option that column value x stands for."""
    return (jnp.round(x * (m - 1)).astype(int) == jnp.arange(m)).astype(x.dtype)


def options_on_sphere(omega: Array, rho: Array, indicator: Array, on: Array) -> Array:
    """An option as a point (m,) at distance omega from the origin, where an inactive Choice lies.

    Two options are √2 omega rho / √(1 + (m−1)(1−rho)²) apart: Hutter & Osborne 2013, with the square root that their
    text omits (R-S8).
    """
    m = len(indicator)
    point = indicator + (1.0 - rho) * (1.0 - indicator)
    return jnp.where(on, omega, 0.0) * point / jnp.sqrt(1.0 + (m - 1) * (1.0 - rho) ** 2)


def _angles(d):
    """Low at both ends, where a flat prior leaves no optimum inside: with few data the most probable angles were then 0 or π,
    and searches of a table of 24 columns ended twice as far from its minimum."""
    return Middle().expand([d])


def _arc_prior(d):
    return {
        "omega": dist.LogNormal(math.log(2.0) - 0.5 * math.log(d), 1.0).expand([d]),
        "rho": _angles(d),
    }


def _arc_numbers(params, x, on):
    sine, cosine = sine_and_cosine(jnp.pi * params["rho"] * x)
    radius = jnp.where(on, params["omega"], 0.0)
    return jnp.stack([radius * sine, radius * cosine], axis=-1)


def _arc_option(params, i, indicator, on):
    return options_on_sphere(params["omega"][i], params["rho"][i], indicator, on)


def _box_prior(d):
    return {
        "lengthscale": dist.LogNormal(math.log(0.5) + 0.5 * math.log(d), 1.0).expand([d]),
        "default": dist.Normal(0.5, 0.5).expand([d]),
        "distance": dist.LogNormal(math.log(2.0) - 0.5 * math.log(d), 1.0).expand([d]),
    }


def _box_numbers(params, x, on):
    place = jnp.where(on, x, params["default"]) / params["lengthscale"]
    return jnp.stack([place, jnp.where(on, 0.0, params["distance"])], axis=-1)


def _box_option(params, i, indicator, on):
    place = jnp.where(on, indicator, 1.0 / len(indicator)) / (2**0.5 * params["lengthscale"][i])
    return jnp.append(place, jnp.where(on, 0.0, params["distance"][i]))


def _wedge_prior(d):
    side = dist.LogNormal(math.log(2.0) - 0.5 * math.log(d), 1.0).expand([d])
    return {"low": side, "high": side, "rho": _angles(d)}


def _wedge_numbers(params, x, on):
    low, high, angle = params["low"], params["high"], jnp.pi * params["rho"]
    along = low + x * (high * jnp.cos(angle) - low)
    across = x * high * jnp.sin(angle)
    return jnp.where(on[:, None], jnp.stack([along, across], axis=-1), 0.0)


def _wedge_option(params, i, indicator, on):
    return options_on_sphere(params["low"][i], params["rho"][i], indicator, on)


_FORMS = {
    "arc": (_arc_prior, _arc_numbers, _arc_option),
    "box": (_box_prior, _box_numbers, _box_option),
    "wedge": (_wedge_prior, _wedge_numbers, _wedge_option),
}


@cache
def _conditional(
    form: str, columns: Active, categories: tuple[int, ...], base: Kernel, product: bool, own_prior: Prior | None
) -> Kernel:
    check_kernel(base)
    relevant = relevance(columns)
    place_prior, numbers, option = _FORMS[form]
    number_columns = [i for i, m in enumerate(categories) if not m]
    choice_columns = [i for i, m in enumerate(categories) if m]

    def check_width(d):
        if categories and len(categories) != d:
            raise ValueError(f"categories describe {len(categories)} columns, the points have {d}")

    def prior(d):
        check_relevance(columns, d)
        check_width(d)
        shape = {name: distribution for name, distribution in base.prior(1).items() if name != "lengthscale"}
        priors = {**shape, **place_prior(d)}
        own = own_prior(d) if own_prior else {}
        unknown = [name for name in own if name not in priors]
        if unknown:
            raise ValueError(f"this kernel has the parameters {', '.join(priors)}; {unknown[0]!r} is none of them")
        return {**priors, **own}

    def active(x: Array) -> Array:
        on = relevant(x)
        check_width(len(x))
        return on

    def blocks(params: Params, x: Array) -> list[Array]:
        """One vector a column."""
        on = active(x)
        pairs = numbers(params, x, on)
        plain = number_columns if categories else range(len(x))
        options = [option(params, i, _indicator(x[i], categories[i]), on[i]) for i in choice_columns]
        return [pairs[i] for i in plain] + options

    def embed(params: Params, x: Array) -> Array:
        if choice_columns:
            return jnp.concatenate(blocks(params, x))
        return numbers(params, x, active(x)).reshape(-1)

    def joint(params: Params) -> Params:
        return {**params, "lengthscale": 1.0}

    def factor(params: Params) -> Params:
        return {**params, "lengthscale": 1.0, "variance": 1.0}

    def value(params, a, b):
        if not product:
            return base.value(joint(params), embed(params, a), embed(params, b))
        factors = [base.value(factor(params), p, q) for p, q in zip(blocks(params, a), blocks(params, b), strict=True)]
        return params["variance"] * jnp.prod(jnp.stack(factors))

    def matrix(params, a, b):
        if not product:
            rows = jax.vmap(lambda x: embed(params, x))
            return gram(base, joint(params), rows(a), rows(b))
        split = jax.vmap(lambda x: blocks(params, x))
        widths: dict[int, list] = {}
        for p, q in zip(split(a), split(b), strict=True):
            widths.setdefault(p.shape[1], []).append((p, q))

        def times(result, pair):
            return result * gram(base, factor(params), *pair), None

        # a loop over columns of one width: one after the other they would take minutes to compile
        result = jnp.full((len(a), len(b)), params["variance"])
        for pairs in widths.values():
            result, _ = jax.lax.scan(times, result, tuple(jnp.stack(each) for each in zip(*pairs, strict=True)))
        return result

    return Kernel(prior, value, matrix, categories, check=partial(check_cube, columns))
