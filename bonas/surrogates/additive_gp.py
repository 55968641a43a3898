"""Additive Gaussian processes: sums over given or learned groups of columns."""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import index
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from bonas import gp as gaussian
from bonas.data import Dataset, empty
from bonas.gp import Groups, Kernel, Noise, Posterior, priors
from bonas.gp.additive_kernels import (
    ORDER,
    SumKernel,
    check_groups,
    even_sizes,
    grouped,
    regroup,
)
from bonas.gp.starting_point import has_centered_leaf, leave_saddle
from bonas.half_capacity import call_on_half
from bonas.infer import Info, Target, all_finite, choose, maximize, target
from bonas.spaces import Space, TableSpace
from bonas.static_settings import check_counts, check_static
from bonas.surrogates.lazy_cond import lazy_cond
from bonas.surrogates.noise_samples import noise_samples
from bonas.surrogates.surrogate import FitInfo, PosteriorSurrogate


class AdditiveState(NamedTuple):
    """State of an additive Gaussian process: hyperparameters, grouping and posterior."""

    z: Any  # (1, ...) unconstrained hyperparameters
    order: Array  # (d,) int: the columns, group by group (`gp.additive`)
    posterior: Posterior  # (1, ...)
    fits: Array  # () int: the number of fits


@dataclass(frozen=True)
class AdditiveGP(PosteriorSurrogate):
    """Additive Gaussian process surrogate; see `additive`.

    If `groups` is None, the groups are learned.
    """

    groups: Groups | None
    size: int
    base: Kernel
    noise: Noise
    steps: int
    every: int
    draws: int
    moves: int

    has_evidence = True

    def init(self, capacity: int, d: int, p: int = 1) -> AdditiveState:
        data = empty(capacity, d, p)
        order = jnp.asarray(
            np.concatenate(self._ordered()) if self.groups else np.arange(d)
        )
        z = _add_axis(self._target(data, order).start)
        return AdditiveState(z, order, self._condition(data, z, order), jnp.asarray(0))

    def fit(
        self, key: PRNGKeyArray, data: Dataset, state: AdditiveState
    ) -> tuple[AdditiveState, FitInfo]:
        order_key, group_key, optimize_key = jax.random.split(key, 3)
        last = _first(state.z)
        order = state.order
        if self.groups is None:
            random = jnp.argsort(jax.random.uniform(order_key, order.shape)).astype(
                order.dtype
            )
            start = (last, jnp.where(state.fits == 0, random, order))
            last, order = lazy_cond(
                state.fits % self.every == 0,
                lambda: call_on_half(self._regroup, data, group_key, *start),
                lambda: start,
            )
        z, info = call_on_half(self._infer, data, optimize_key, last, order)
        finite = all_finite(z) & jnp.isfinite(info.log_density).all()
        z = choose(finite, z, state.z)
        posterior = self._condition(data, z, order)
        converged = finite & info.accept.all().astype(bool)
        return AdditiveState(z, order, posterior, state.fits + 1), FitInfo(
            info.log_density.mean(), converged, finite, posterior.jitter.max()
        )

    def update(self, data: Dataset, state: AdditiveState) -> AdditiveState:
        return state._replace(posterior=self._condition(data, state.z, state.order))

    def refresh(
        self, data: Dataset, state: AdditiveState
    ) -> tuple[AdditiveState, FitInfo]:
        density = self._target(data, state.order).maximizing(_first(state.z))
        state = self.update(data, state)
        finite = jnp.isfinite(density)
        return state, FitInfo(density, finite, finite, state.posterior.jitter.max())

    def noise_variance(self, state: AdditiveState) -> Float[Array, " s"]:
        return noise_samples(self, lambda data: self._target(data, state.order), state)

    def adapt(self, space: Space) -> "AdditiveGP":
        check_groupable(space)
        if self.groups is not None:
            check_groups(self.groups, space.dim)
        return self

    def _ordered(self) -> list[tuple[int, ...]]:
        """Return the given groups, largest first."""
        return sorted(self.groups or (), key=len, reverse=True)

    def _sizes(self, d: int) -> tuple[int, ...]:
        if self.groups:
            return tuple(len(group) for group in self._ordered())
        return even_sizes(d, min(self.size, d))

    def _kernel(self, d: int) -> SumKernel:
        return grouped(self._sizes(d), self.base)

    def _evidence(
        self, data: Dataset, params: Any, order: Int[Array, " d"]
    ) -> Float[Array, ""]:
        kernel_params = {**params["kernel"], ORDER: order}
        noise = self._noise(params)
        return gaussian.log_evidence(
            self._kernel(data.x.shape[1]), kernel_params, data, noise=noise
        )

    def _target(self, data: Dataset, order: Int[Array, " d"]) -> Target:
        d = data.x.shape[1]
        prior = gaussian.hyperprior(self._kernel(d), d, noise=self.noise)

        def log_likelihood(params: Any, data: Dataset = data) -> Array:
            return self._evidence(data, params, order)

        posterior = target(prior, log_likelihood)
        if has_centered_leaf(prior):
            return leave_saddle(posterior, prior, log_likelihood, data.x)
        return posterior

    def _condition(self, data: Dataset, z: Any, order: Int[Array, " d"]) -> Posterior:
        params = self._target(data, order).constrain(_first(z))
        kernel_params = {**params["kernel"], ORDER: order}
        noise = self._noise(params)
        kernel = self._kernel(data.x.shape[1])
        posterior = gaussian.condition(kernel, kernel_params, data, noise=noise)
        stacked: Posterior = _add_axis(posterior)
        return stacked

    def _noise(self, params: Any) -> Any:
        if "noise" in params:
            return params["noise"]
        return gaussian.resolve_noise(self.noise)

    def _infer(
        self, data: Dataset, key: PRNGKeyArray, last: Any, order: Int[Array, " d"]
    ) -> tuple[Any, Info]:
        return maximize(
            key, self._target(data, order).maximizing, last, steps=self.steps
        )

    def _regroup(
        self, data: Dataset, key: PRNGKeyArray, last: Any, order: Int[Array, " d"]
    ) -> tuple[Any, Array]:
        """Return the more probable of two groupings and its hyperparameters.

        One search starts from the last hyperparameters, the other from the center of the prior.
        Hyperparameters fitted to a wrong grouping may prevent finding the right one, because a
        column without the other columns of its group looks like noise.
        """
        sizes = self._sizes(len(order))

        def attempt(start: tuple[PRNGKeyArray, Any]) -> tuple[Any, Array, Array]:
            key, z = start
            params = self._target(data, order).constrain(z)
            better, _ = regroup(
                key,
                lambda order: self._evidence(data, params, order),
                order,
                sizes,
                draws=self.draws,
                moves=self.moves,
            )
            found, info = self._infer(data, key, z, better)
            return _first(found), better, info.log_density[0]

        center = self._target(data, order).start
        starts = jax.tree.map(lambda *leaves: jnp.stack(leaves), last, center)
        z, orders, density = jax.lax.map(attempt, (jax.random.split(key), starts))
        best = jnp.argmax(jnp.where(jnp.isnan(density), -jnp.inf, density))
        return jax.tree.map(lambda leaf: leaf[best], z), orders[best]


def additive(
    groups: str | Iterable[Iterable[int]] = "learned",
    *,
    size: int = 2,
    base: Kernel | None = None,
    noise: Noise = priors.log_normal_noise,
    steps: int = 10,
    every: int = 5,
    draws: int = 8,
    moves: int = 100,
) -> AdditiveGP:
    """Model the objective by a sum of Gaussian processes over groups of columns.

    The model is f(x) = Σ_j f_j(x in the columns of group j), with the kernel `gp.additive`. The
    hyperparameters maximize their posterior density.

    Args:
        groups: Disjoint groups that contain every column once, such as [(0, 3), (1, 2)], or
            "learned" to search for the groups of `size` columns with the highest evidence.
        size: The number of columns in a learned group. One group takes the remainder.
        base: The kernel of each group. Default: Matérn 5/2.
        noise: The noise variance, as in `surrogates.gp`.
        steps: The number of density evaluations per fit, starting from the last optimum.
        every: The number of fits from one search for better groups to the next.
        draws: The number of random groupings that each search compares.
        moves: The number of Metropolis steps of each search, each of which exchanges two columns
            (`gp.regroup`).
    """
    check_static("groups", groups)
    if isinstance(groups, str) and groups != "learned":
        raise ValueError(
            'groups must be "learned" or groups of columns, such as [(0, 1), (2,)]; '
            f"got {groups!r}"
        )
    check_counts(size=size, steps=steps, every=every, draws=draws, moves=moves)
    fixed = None
    if not isinstance(groups, str):
        fixed = tuple(tuple(index(column) for column in group) for group in groups)
        check_groups(fixed)
    base = gaussian.matern52() if base is None else base
    variance = gaussian.check_noise(noise)
    return AdditiveGP(fixed, size, base, variance, steps, every, draws, moves)


def check_groupable(space: Space) -> None:
    """Raise a ValueError unless all columns of a space are unconditional numbers."""
    if isinstance(space, TableSpace):
        raise ValueError(
            "groups are combined column by column, but few combinations are rows of a TableSpace"
        )
    for name, parameter in space.parameters.items():
        if parameter.when is not None:
            raise ValueError(
                f"groups need unconditional parameters; {name!r} is conditional"
            )
    for name, options in zip(space.names, space.categories, strict=True):
        if options > 2:
            raise ValueError(
                f"groups need numbers; parameter {name!r} is a Choice of {options} options, which "
                "have no order"
            )


def _first(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[0], tree)


def _add_axis(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[None], tree)
