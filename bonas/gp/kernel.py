"""What a kernel is: a covariance function of two points, with a prior over its parameters.

A kernel sees two points; batching is `vmap`, in one place (`gram`). `gp.Kernel(prior, value)` from a notebook cell works
wherever a built-in does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

Params = dict[str, Any]


@jax.tree_util.register_static
@dataclass(frozen=True)
class Kernel:
    """A covariance function and a prior over its parameters. Static: it may be passed to any jitted function.

    prior: prior(d) -> {name: NumPyro distribution} for points of d columns; the support is the constraint. A plain dict
        is accepted where d does not matter.
    value: value(params, a, b) -> () for two points a, b of shape (d,).
    gram: gram(params, a (n, d), b (m, d)) -> (n, m), optional: the same numbers, faster.
    categories: how many options each column has, 0 for numbers, if the kernel compares options by identity; None if it
        takes every column for a number (see `gp.without_order`).
    rebuild: for kernels made of others: rebuild(change, categories) is the same composition of change(part, categories
        of the part's columns).
    check: check(x (n, d)) is a ValueError where a point is not one that the kernel is for; called outside `jit` alone.
    """

    prior: Callable[[int], Params]
    value: Callable[[Params, Array, Array], Array]
    gram: Callable[[Params, Array, Array], Array] | None = None
    categories: tuple[int, ...] | None = None
    rebuild: Callable[[Callable, tuple[int, ...]], "Kernel"] | None = None
    check: Callable[[np.ndarray], None] | None = None

    def __post_init__(self):
        if isinstance(self.prior, dict):
            given = dict(self.prior)
            object.__setattr__(self, "prior", lambda d: given)

    def __add__(self, other: "Kernel") -> "Kernel":
        from bonas.gp.kernels import add

        return add(self, other)

    def __mul__(self, other: "Kernel") -> "Kernel":
        from bonas.gp.kernels import multiply

        return multiply(self, other)


def gram(kernel: Kernel, params: Params, a: Array, b: Array) -> Array:
    """The matrix k(a_i, b_j) (n, m) for points a (n, d) and b (m, d)."""
    check_kernel(kernel)
    if jnp.ndim(a) != 2 or jnp.ndim(b) != 2 or jnp.shape(a)[1] != jnp.shape(b)[1]:
        raise ValueError(f"expected points of shapes (n, d) and (m, d); got {jnp.shape(a)} and {jnp.shape(b)}")
    check_points(kernel, a, b)
    if kernel.gram is not None:
        return kernel.gram(params, a, b)
    return jax.vmap(lambda p: jax.vmap(lambda q: _value(kernel, params, p, q))(b))(a)


def variances(kernel: Kernel, params: Params, x: Array) -> Array:
    """k(x_i, x_i) (m,)."""
    return jax.vmap(lambda p: _value(kernel, params, p, p))(x)


def _value(kernel: Kernel, params: Params, a: Array, b: Array) -> Array:
    value = kernel.value(params, a, b)
    if jnp.shape(value) != ():
        raise ValueError(
            f"a kernel's value is one number for two points; this one has shape {jnp.shape(value)}: is a .sum() missing?"
        )
    return value


def check_kernel(kernel) -> None:
    """A ValueError in the caller's words where something else was given for a kernel."""
    if isinstance(kernel, Kernel):
        return
    hint = ": call it, as in gp.matern52()" if callable(kernel) else ""
    raise ValueError(f"expected a kernel, such as gp.matern52(); got {kernel!r}{hint}")


def check_points(kernel: Kernel, *points: Array | np.ndarray) -> None:
    """A ValueError where known points are none that the kernel is for; traced ones are not looked at."""
    for x in points:
        if kernel.check is not None and not isinstance(x, jax.core.Tracer):
            kernel.check(np.asarray(x))


def check_params(kernel: Kernel, params: Params, d: int) -> None:
    """A ValueError that names what is missing from, or of the wrong shape in, the parameters of a kernel."""
    _compare("kernel", kernel.prior(d), params)


def _compare(where: str, expected, given) -> None:
    if not isinstance(expected, dict):
        shape = expected.shape()
        if jnp.shape(given) not in ((), shape):
            raise ValueError(
                f"{where} has shape {jnp.shape(given)}; expected {shape} (samples of parameters: gp.condition_all)"
            )
        return
    missing = [name for name in expected if not isinstance(given, dict) or name not in given]
    if missing:
        names = list(given) if isinstance(given, dict) else given
        raise ValueError(f"{where} needs the parameters {', '.join(expected)}; {missing[0]!r} is not among {names}")
    for name, part in expected.items():
        _compare(f"{where} parameter {name!r}", part, given[name])
