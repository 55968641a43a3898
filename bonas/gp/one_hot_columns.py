"""One-hot encoding of columns whose values have no order."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array

from bonas.gp.kernel import Kernel, Params, check_kernel, gram


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
    """Create a kernel that one-hot encodes Choice columns for a kernel of numbers.

    An option is one coordinate per option, 1/√2 or 0, so that different options are at distance 1
    and have no order. The kernel's per-column parameters have one entry for each number and one
    for each option.
    """
    check_kernel(kernel)
    if kernel.categories is not None:
        raise ValueError(
            "this kernel supports Choice columns; pass categories= to it instead of using one_hot"
        )
    return OneHot(kernel, tuple(categories))


def with_categories(kernel: Kernel, categories: Sequence[int]) -> Kernel:
    """Return the kernel for a space with these `space.categories`, so that options have no order.

    A kernel with the same categories is returned unchanged, and one that requires the encoding by
    `Kernel.one_hot`, as built-in kernels of numbers do, is wrapped in `one_hot`. A kernel made for
    other categories, such as ``gp.arc(space.active)`` without ``categories=space.categories``, is
    an error.
    """
    categories = tuple(categories)
    if not any(categories) or kernel.categories == categories:
        return kernel
    return kernel.with_categories(categories)


def indicator_of(x: Array, m: int) -> Array:
    """Return the unit vector (m,) of the option that the column value x encodes."""
    return (jnp.round(x * (m - 1)).astype(int) == jnp.arange(m)).astype(x.dtype)


def check_width(categories: tuple[int, ...], d: int) -> None:
    """Raise a ValueError unless points and categories have the same number of columns."""
    if categories and d != len(categories):
        raise ValueError(
            f"expected points of {len(categories)} columns, as in categories; got {d}"
        )
