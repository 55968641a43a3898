"""Kernels made of other kernels: sums, products and kernels on some of the columns."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Array

from bonas.gp.kernel import (
    Kernel,
    Params,
    check_kernel,
    check_points,
    gram,
    with_categories,
)


class CompositeKernel(Kernel):
    """A kernel made of other kernels, which `with_categories` adapts."""

    one_hot = True


@dataclass(frozen=True)
class Combination(CompositeKernel):
    """The sum or the product of kernels."""

    kernels: tuple[Kernel, ...]
    product: bool
    categories: tuple[int, ...] | None = None

    def prior(self, d: int) -> Params:
        return {str(i): kernel.prior(d) for i, kernel in enumerate(self.kernels)}

    def value(self, params: Params, a: Array, b: Array) -> Array:
        parts = enumerate(self.kernels)
        return self._join([kernel.value(params[str(i)], a, b) for i, kernel in parts])

    def gram(self, params: Params, a: Array, b: Array) -> Array:
        parts = enumerate(self.kernels)
        return self._join([gram(kernel, params[str(i)], a, b) for i, kernel in parts])

    def check(self, x: np.ndarray) -> None:
        for kernel in self.kernels:
            check_points(kernel, x)

    def with_categories(self, categories: tuple[int, ...]) -> Kernel:
        adapted = tuple(with_categories(kernel, categories) for kernel in self.kernels)
        return replace(self, kernels=adapted, categories=categories)

    def _join(self, terms: Sequence[Array]) -> Array:
        result = terms[0]
        for term in terms[1:]:
            result = result * term if self.product else result + term
        return result


def add(*kernels: Kernel) -> Kernel:
    """Create the sum of kernels.

    The parameters of the i-th kernel are `params[str(i)]`.
    """
    return _combine(kernels, product=False)


def multiply(*kernels: Kernel) -> Kernel:
    """Create the product of kernels.

    The parameters of the i-th kernel are `params[str(i)]`. Data identify only the product of the
    variances of the kernels.
    """
    return _combine(kernels, product=True)


def _combine(kernels: tuple[Kernel, ...], *, product: bool) -> Kernel:
    if not kernels:
        raise ValueError("expected at least one kernel; got none")
    for kernel in kernels:
        check_kernel(kernel)
    categories = {kernel.categories for kernel in kernels}
    return Combination(
        kernels, product, categories.pop() if len(categories) == 1 else None
    )


@dataclass(frozen=True)
class OnColumns(CompositeKernel):
    """A kernel on some of the columns."""

    columns: tuple[int, ...]
    kernel: Kernel
    categories: tuple[int, ...] | None = None

    def prior(self, d: int) -> Params:
        self._check_width(d)
        return self.kernel.prior(len(self.columns))

    def value(self, params: Params, a: Array, b: Array) -> Array:
        self._check_width(len(a))
        chosen = np.asarray(self.columns)
        return self.kernel.value(params, a[chosen], b[chosen])

    def gram(self, params: Params, a: Array, b: Array) -> Array:
        self._check_width(a.shape[1])
        chosen = np.asarray(self.columns)
        return gram(self.kernel, params, a[:, chosen], b[:, chosen])

    def check(self, x: np.ndarray) -> None:
        self._check_width(x.shape[1])
        check_points(self.kernel, x[:, np.asarray(self.columns)])

    def with_categories(self, categories: tuple[int, ...]) -> Kernel:
        options = tuple(categories[column] for column in self.columns)
        return replace(
            self, kernel=with_categories(self.kernel, options), categories=categories
        )

    def _check_width(self, d: int) -> None:
        # JAX would clamp an index past the end to the last column
        if max(self.columns) >= d:
            raise ValueError(
                f"expected points of at least {max(self.columns) + 1} columns, for the columns "
                f"{self.columns}; got {d}"
            )


def on_columns(columns: Iterable[int], kernel: Kernel) -> Kernel:
    """Create a kernel that depends on some of the columns only.

    Args:
        columns: Indices of the columns, from 0.
        kernel: The kernel to apply to these columns. Its per-column parameters have one entry for
            each of them.
    """
    check_kernel(kernel)
    chosen = tuple(operator.index(column) for column in columns)
    if not chosen or len(set(chosen)) != len(chosen):
        raise ValueError(f"columns must be one or more distinct indices; got {chosen}")
    if min(chosen) < 0:
        raise ValueError(f"column indices must be at least 0; got {chosen}")
    return OnColumns(chosen, kernel)
