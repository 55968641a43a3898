"""Covariance functions: the stationary ones and the linear one, and how kernels are combined."""

import dataclasses
import operator
from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array

from bonas.gp import priors
from bonas.gp.kernel import Kernel, Params, check_kernel, check_points, gram
from bonas.linalg import safe_sqrt, squared_distances


def isotropic(
    prior: Callable[[int], Params],
    embed: Callable[[Params, Array], Array],
    profile: Callable[[Params, Array], Array],
) -> Kernel:
    """variance · profile(‖embed(a) − embed(b)‖²): every stationary kernel.

    embed(params, x (d,)) -> features; profile(params, r2) maps squared distances, of any shape, to correlations.
    """

    def value(params, a, b):
        difference = embed(params, a) - embed(params, b)
        return params["variance"] * profile(params, difference @ difference)

    def matrix(params, a, b):
        rows = jax.vmap(lambda x: embed(params, x))
        return params["variance"] * profile(params, squared_distances(rows(a), rows(b)))

    return Kernel(prior, value, matrix)


def scaled(params: Params, x: Array) -> Array:
    """Each column divided by its length scale; a single length scale serves all columns."""
    return x / params["lengthscale"]


# Profiles: correlation as a function of the squared distance. Written with their derivative where the naive one is 0/0 at
# coincident points.


def se_profile(params: Params, r2: Array) -> Array:
    """exp(−r²/2)."""
    return jnp.exp(-0.5 * r2)


def rq_profile(params: Params, r2: Array) -> Array:
    """(1 + r²/2α)^−α."""
    return jnp.exp(-params["alpha"] * jnp.log1p(0.5 * r2 / params["alpha"]))


@jax.custom_jvp
def _matern12(r2):
    return jnp.exp(-safe_sqrt(r2))


@_matern12.defjvp
def _matern12_jvp(primals, tangents):
    """−exp(−r)/2r, taken to 0 where r is rounding (below 4e-10 in float64): the limit depends on the direction.

    A compiler may find r = 1e-17 in one copy of this and 0 in another (see `safe_sqrt`); both must give nothing.
    """
    r2 = primals[0]
    r = safe_sqrt(r2)
    value = jnp.exp(-r)
    return value, -0.5 * value * r / jnp.maximum(r2, jnp.finfo(r2.dtype).eps ** 1.2) * tangents[0]


@jax.custom_jvp
def _matern32(r2):
    r = safe_sqrt(3.0 * r2)
    return (1.0 + r) * jnp.exp(-r)


@_matern32.defjvp
def _matern32_jvp(primals, tangents):
    r = safe_sqrt(3.0 * primals[0])
    decay = jnp.exp(-r)
    return (1.0 + r) * decay, -1.5 * decay * tangents[0]


@jax.custom_jvp
def _matern52(r2):
    r = safe_sqrt(5.0 * r2)
    return (1.0 + r + r * r / 3.0) * jnp.exp(-r)


@_matern52.defjvp
def _matern52_jvp(primals, tangents):
    r = safe_sqrt(5.0 * primals[0])
    decay = jnp.exp(-r)
    return (1.0 + r + r * r / 3.0) * decay, -5.0 / 6.0 * (1.0 + r) * decay * tangents[0]


def matern12_profile(params: Params, r2: Array) -> Array:
    """exp(−r)."""
    return _matern12(r2)


def matern32_profile(params: Params, r2: Array) -> Array:
    """(1 + √3 r) exp(−√3 r)."""
    return _matern32(r2)


def matern52_profile(params: Params, r2: Array) -> Array:
    """(1 + √5 r + 5r²/3) exp(−√5 r): Wilton 2020, eq. 8, with its bracket mended (W-X1)."""
    return _matern52(r2)


# Factories. Two equal calls return the same object, so that `jit` compiles once for both.


def blend_profile(params: Params, r2: Array) -> Array:
    """share · exp(−r²/2) + (1 − share) · (1 + √5 r + 5r²/3) exp(−√5 r)."""
    return params["share"] * jnp.exp(-0.5 * r2) + (1.0 - params["share"]) * _matern52(r2)


@cache
def se(prior: Callable[[int], Params] = priors.log_normal) -> Kernel:
    """variance · exp(−r²/2), r² = Σ (Δx_i / lengthscale_i)²: Twist, eq. 26; Wilton 2020 (W-D7)."""
    return isotropic(prior, scaled, se_profile)


@cache
def matern12(prior: Callable[[int], Params] = priors.log_normal) -> Kernel:
    """variance · exp(−r): continuous, nowhere smooth.

    It has no fast matrix form: its slope at r = 0 would turn the rounding of matrix products into gradients of order 1.
    """
    return dataclasses.replace(isotropic(prior, scaled, matern12_profile), gram=None)


@cache
def matern32(prior: Callable[[int], Params] = priors.log_normal) -> Kernel:
    """variance · (1 + √3 r) exp(−√3 r): once differentiable."""
    return isotropic(prior, scaled, matern32_profile)


@cache
def matern52(prior: Callable[[int], Params] = priors.log_normal) -> Kernel:
    """variance · (1 + √5 r + 5r²/3) exp(−√5 r): twice differentiable, the usual choice for response surfaces."""
    return isotropic(prior, scaled, matern52_profile)


@cache
def rq(prior: Callable[[int], Params] = priors.log_normal) -> Kernel:
    """variance · (1 + r²/2α)^−α: a mixture of squared exponentials of many length scales (R-D3)."""

    def with_alpha(d):
        return {**prior(d), "alpha": dist.LogNormal(0.0, 1.0)}

    return isotropic(with_alpha, scaled, rq_profile)


@cache
def blend(prior: Callable[[int], Params] = priors.log_normal) -> Kernel:
    """variance · (share · se + (1 − share) · matern52): smooth and rough parts, and how much of each is one more unknown.

    A function that is smoother than Matérn 5/2 takes it to be is followed with far fewer points, and a rough one is not
    taken for smooth.
    """

    def with_share(d):
        return {**prior(d), "share": dist.Uniform(0.0, 1.0)}

    return isotropic(with_share, scaled, blend_profile)


@cache
def linear() -> Kernel:
    """bias² + Σ slope_i² (a_i − centre_i)(b_i − centre_i): Hutchinson 2019, eq. 2.32, one slope a column.

    `bias` and `slope` are standard deviations of the line's height at `centre` and of its slopes.
    """

    def prior(d):
        return {
            "bias": dist.HalfNormal(1.0),
            "slope": dist.HalfNormal(1.0).expand([d]),
            "centre": dist.Normal(0.5, 0.5).expand([d]),
        }

    def scale(params, x):
        return params["slope"] * (x - params["centre"])

    def value(params, a, b):
        return params["bias"] ** 2 + scale(params, a) @ scale(params, b)

    def matrix(params, a, b):
        rows = jax.vmap(lambda x: scale(params, x))
        return params["bias"] ** 2 + rows(a) @ rows(b).T

    return Kernel(prior, value, matrix)


def add(*kernels: Kernel) -> Kernel:
    """The sum of kernels; the parameters of the i-th are params[str(i)]."""
    return _combine(_sum, kernels)


def multiply(*kernels: Kernel) -> Kernel:
    """The product of kernels; the parameters of the i-th are params[str(i)]. Of their variances only the product is known."""
    return _combine(_product, kernels)


def _sum(terms):
    return sum(terms[1:], terms[0])


def _product(terms):
    result = terms[0]
    for term in terms[1:]:
        result = result * term
    return result


@cache
def _combine(join, kernels: tuple[Kernel, ...]) -> Kernel:
    if not kernels:
        raise ValueError("expected one or more kernels; got none")
    for kernel in kernels:
        check_kernel(kernel)
    known = {kernel.categories for kernel in kernels}

    def prior(d):
        return {str(i): kernel.prior(d) for i, kernel in enumerate(kernels)}

    def value(params, a, b):
        return join([kernel.value(params[str(i)], a, b) for i, kernel in enumerate(kernels)])

    def matrix(params, a, b):
        return join([gram(kernel, params[str(i)], a, b) for i, kernel in enumerate(kernels)])

    def rebuild(change, categories):
        return _combine(join, tuple(change(kernel, categories) for kernel in kernels))

    def check(x):
        for kernel in kernels:
            check_points(kernel, x)

    return Kernel(prior, value, matrix, known.pop() if len(known) == 1 else None, rebuild, check)


def on(columns, kernel: Kernel) -> Kernel:
    """The kernel on some columns only; its per-column parameters have one entry for each of them."""
    check_kernel(kernel)
    return _on(tuple(operator.index(column) for column in columns), kernel)


@cache
def _on(columns: tuple[int, ...], kernel: Kernel) -> Kernel:
    if not columns or len(set(columns)) != len(columns):
        raise ValueError(f"expected one or more different columns; got {columns}")
    if min(columns) < 0:
        raise ValueError(f"columns are counted from 0; got {columns}")
    chosen = np.asarray(columns)

    def check_width(d):
        if max(columns) >= d:  # an index past the end would quietly give the last column
            raise ValueError(f"columns {columns} do not all exist in points of {d} columns")

    def prior(d):
        check_width(d)
        return kernel.prior(len(columns))

    def value(params, a, b):
        check_width(len(a))
        return kernel.value(params, a[chosen], b[chosen])

    def matrix(params, a, b):
        check_width(a.shape[1])
        return gram(kernel, params, a[:, chosen], b[:, chosen])

    def rebuild(change, categories):
        return _on(columns, change(kernel, tuple(categories[column] for column in columns)))

    def check(x):
        check_width(x.shape[1])
        check_points(kernel, x[:, chosen])

    return Kernel(prior, value, matrix, None, rebuild, check)
