"""The interface of kernels, kernels made of functions, and one-hot encoded columns.

A kernel is a covariance function of two points, with a prior over its parameters; `gram` applies it
to all pairs by `vmap`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Params = dict[str, Any]  # names to arrays, or to the Params of a part
Prior = Callable[[int], Params]  # number of columns -> {name: NumPyro distribution}
Points = Any  # an array of JAX or NumPy, (n, d)
Covariance = Callable[[Params, Points, Points], Array]


class Kernel:
    """A covariance function with a prior over its parameters.

    Make one from functions, ``gp.Kernel(prior={"scale": dist.HalfNormal(1.0)}, value=brownian)``,
    or subclass it as a frozen dataclass with methods of the same names, as the built-in kernels
    do. Kernels are static: they may be passed to any jitted function.

    Attributes:
        prior: Function from the number of columns d to {name: NumPyro distribution}. The support of
            a distribution is the constraint of its parameter. ``Kernel(...)`` also takes a dict.
        value: Function (params, a (d,), b (d,)) -> (), the covariance of two points.
        gram: Optional faster function (params, a (n, d), b (m, d)) -> (n, m) of the same values.
        categories: The number of options of each column, 0 for numbers, if the kernel compares
            options by identity; None if it treats every column as a number.
        one_hot: Whether searches in spaces with Choices wrap the kernel in `gp.one_hot`, as they
            do with most built-in kernels. Otherwise the kernel gets the columns of the space, in
            which option i of m is i / (m − 1).
    """

    prior: Prior
    value: Covariance
    gram: Covariance | None = None
    categories: tuple[int, ...] | None = None
    one_hot: bool = False

    def __new__(cls, *args: Any, **kwargs: Any) -> "Kernel":
        return super().__new__(FunctionKernel if cls is Kernel else cls)

    def __init_subclass__(cls) -> None:
        jax.tree_util.register_static(cls)

    def check(self, x: np.ndarray) -> None:
        """Raise a ValueError if points (n, d) are outside the domain of the kernel."""

    def diagonal(self, params: Params, x: Array) -> Array:
        """Return the variances (m,) of points x (m, d), the diagonal of `gram`."""
        return jax.vmap(lambda p: _value(self, params, p, p))(x)

    def with_categories(self, categories: tuple[int, ...]) -> "Kernel":
        """Adapt the kernel to columns with these numbers of options; see `gp.with_categories`."""
        if self.categories is not None:
            raise ValueError(
                f"the space has categories {categories}, but the kernel was made for "
                f"{self.categories or 'none'}; pass categories=space.categories to the kernel"
            )
        return one_hot(categories, self) if self.one_hot else self

    def __add__(self, other: "Kernel") -> "Kernel":
        from bonas.gp.composite_kernels import add

        return add(self, other)

    def __mul__(self, other: "Kernel") -> "Kernel":
        from bonas.gp.composite_kernels import multiply

        return multiply(self, other)


@dataclass(frozen=True)
class FunctionKernel(Kernel):
    """A kernel made of functions, as returned by ``Kernel(...)``.

    Such kernels are compared by the identity of their functions.
    """

    # a Prior, or a dict for any number of columns; always a Prior once it is made
    prior: Any
    value: Covariance
    gram: Covariance | None = None
    categories: tuple[int, ...] | None = None
    one_hot: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", as_prior(self.prior))
        if not callable(self.value):
            raise TypeError(
                "value must be a function of params and two points; "
                f"got {type(self.value).__name__}"
            )
        check_prior(self.prior)


# not a lambda, which could not be pickled; compared by identity, because dicts have no hash
@dataclass(frozen=True, eq=False)
class FixedPrior:
    """A prior that is the same for any number of columns."""

    params: Params

    def __call__(self, d: int) -> Params:
        return self.params


def as_prior(prior: Prior | Params) -> Prior:
    """Return a prior as a function of the number of columns; a dict applies to any number."""
    return FixedPrior(dict(prior)) if isinstance(prior, dict) else prior


def gram(kernel: Kernel, params: Params, a: Points, b: Points) -> Float[Array, "n m"]:
    """Return the covariance matrix k(a_i, b_j) of points a (n, d) and b (m, d)."""
    check_kernel(kernel)
    if jnp.ndim(a) != 2 or jnp.ndim(b) != 2 or jnp.shape(a)[1] != jnp.shape(b)[1]:
        raise ValueError(
            f"expected points of shapes (n, d) and (m, d); got {jnp.shape(a)} and {jnp.shape(b)}"
        )
    check_points(kernel, a, b)
    with explain_missing(params):
        if kernel.gram is not None:
            return kernel.gram(params, a, b)
        return jax.vmap(lambda p: jax.vmap(lambda q: _value(kernel, params, p, q))(b))(
            a
        )


@contextmanager
def explain_missing(names: Iterable[str]) -> Iterator[None]:
    """Raise a ValueError in place of the KeyError of a kernel that reads a missing parameter.

    Args:
        names: The parameters of the prior.
    """
    try:
        yield
    except KeyError as error:
        raise ValueError(
            f"the kernel needs the parameter {error}, but its prior has {', '.join(names)}: "
            "add a distribution for it to the prior"
        ) from error


def _value(kernel: Kernel, params: Params, a: Array, b: Array) -> Array:
    value = kernel.value(params, a, b)
    if jnp.shape(value) != ():
        raise ValueError(
            "the kernel must return one number for two points; "
            f"got shape {jnp.shape(value)}; a sum over columns may be missing"
        )
    return value


def check_kernel(kernel: Any) -> None:
    """Raise a ValueError unless the argument is a kernel."""
    if isinstance(kernel, Kernel):
        return
    hint = ": call it, as in gp.matern52()" if callable(kernel) else ""
    raise ValueError(f"expected a kernel, such as gp.matern52(); got {kernel!r}{hint}")


def check_prior(prior: Any) -> None:
    """Raise a TypeError if a prior is not a function of the number of columns."""
    if not callable(prior):
        raise TypeError(
            "prior must be a function of the number of columns, such as gp.priors.log_normal; got "
            f"{type(prior).__name__}. For a prior that is a dict, write lambda d: {{...}}"
        )


def check_points(kernel: Kernel, *points: Points) -> None:
    """Raise a ValueError if points are outside the kernel's domain; traced points are skipped."""
    for x in points:
        if not isinstance(x, jax.core.Tracer):
            kernel.check(np.asarray(x))


def check_params(kernel: Kernel, params: Params, d: int) -> None:
    """Raise a ValueError if a parameter of the kernel is missing or has the wrong shape."""
    _compare("kernel", kernel.prior(d), params)


def _compare(where: str, expected: Any, given: Any) -> None:
    if not isinstance(expected, dict):
        shape = expected.shape()
        if jnp.shape(given) not in ((), shape):
            raise ValueError(
                f"{where} has shape {jnp.shape(given)}; expected {shape} "
                "(for several samples of the parameters use gp.condition_all)"
            )
        return
    missing = [
        name for name in expected if not isinstance(given, dict) or name not in given
    ]
    if missing:
        names = list(given) if isinstance(given, dict) else given
        raise ValueError(
            f"{where} needs the parameters {', '.join(expected)}; "
            f"{missing[0]!r} is not among {names}"
        )
    for name, part in expected.items():
        _compare(f"{where} parameter {name!r}", part, given[name])


# Columns whose values have no order


@dataclass(frozen=True)
class OneHot(Kernel):
    """A kernel of numbers on one-hot encoded Choice columns."""

    kernel: Kernel
    categories: tuple[int, ...] = ()

    def prior(self, d: int) -> Params:
        check_width(self.categories, d)
        return self.kernel.prior(sum(max(m, 1) for m in self.categories))

    def value(self, params: Params, a: Array, b: Array) -> Array:
        return self.kernel.value(params, self._encode(a), self._encode(b))

    def gram(self, params: Params, a: Array, b: Array) -> Array:
        rows = jax.vmap(self._encode)
        return gram(self.kernel, params, rows(a), rows(b))

    def _encode(self, x: Array) -> Array:
        check_width(self.categories, len(x))
        columns = [
            indicator_of(x[i], m) / 2**0.5 if m else x[i : i + 1]
            for i, m in enumerate(self.categories)
        ]
        return jnp.concatenate(columns)


def one_hot(categories: Sequence[int], kernel: Kernel) -> Kernel:
    """Wrap a kernel of numbers so that Choice columns are one-hot encoded.

    A Choice of m options becomes m coordinates, 1/√2 for its option and 0 for the others, so that
    different options are at distance 1 and have no order.

    Args:
        categories: The number of options of each column, 0 for numbers (`space.categories`).
        kernel: The kernel of numbers. Its per-column parameters have one entry for each number and
            one for each option.
    """
    check_kernel(kernel)
    if kernel.categories is not None:
        raise ValueError(
            "this kernel supports Choice columns; pass categories= to it instead of using one_hot"
        )
    return OneHot(kernel, tuple(categories))


def with_categories(kernel: Kernel, categories: Sequence[int]) -> Kernel:
    """Adapt a kernel to the Choice columns of a space, so that their options have no order.

    A kernel made for these categories is returned unchanged, and one whose `Kernel.one_hot` is True
    is wrapped in `one_hot`.

    Args:
        kernel: The kernel.
        categories: The number of options of each column, 0 for numbers (`space.categories`).

    Raises:
        ValueError: If the kernel was made for other categories, such as ``gp.arc(space.active)``
            without ``categories=space.categories``.
    """
    categories = tuple(categories)
    if not any(categories) or kernel.categories == categories:
        return kernel
    return kernel.with_categories(categories)


def indicator_of(x: Array, m: int) -> Array:
    """Return the one-hot vector (m,) of the option that the column value x encodes."""
    return (jnp.round(x * (m - 1)).astype(int) == jnp.arange(m)).astype(x.dtype)


def check_width(categories: tuple[int, ...], d: int) -> None:
    """Raise a ValueError unless points and categories have the same number of columns."""
    if categories and d != len(categories):
        raise ValueError(
            f"expected points of {len(categories)} columns, as in categories; got {d}"
        )
