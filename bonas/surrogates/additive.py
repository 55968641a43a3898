"""A Gaussian process that is a sum of functions of few columns each, with groups that are known or learned."""

from functools import cache
from operator import index
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas import gp as gaussian
from bonas.data import Dataset, empty, within
from bonas.gp import Kernel, Posterior, Prediction, priors
from bonas.gp.additive import ORDER, Groups, SumKernel, check_groups, even_sizes, grouped, regroup
from bonas.gp.hyper import Noise
from bonas.infer import Target, maximise, target
from bonas.infer.target import choose
from bonas.spaces import Listed, Space
from bonas.surrogates.interface import FitInfo, Surrogate
from bonas.surrogates.posteriors import covariance_each, predict_each, sample_in_turn
from bonas.surrogates.seldom import seldom


class AdditiveState(NamedTuple):
    """Hyperparameters, the grouping, and the posterior under them; s = 1 as everywhere a MAP estimate is used."""

    z: Any  # (1, ...) unconstrained hyperparameters
    order: Array  # (d,) int: the columns, group by group (`gp.additive`)
    posterior: Posterior  # (1, ...)
    fits: Array  # () int


def additive(
    groups: str | tuple = "learned",
    *,
    size: int = 2,
    base: Kernel | None = None,
    noise: Noise = priors.log_normal_noise,
    steps: int = 10,
    every: int = 5,
    draws: int = 8,
    moves: int = 100,
) -> Surrogate:
    """f = Σ_j f_j(columns of group j) with the kernel of `gp.additive`, its parameters by maximum a posteriori.

    groups: disjoint groups of all columns; or "learned": groups of `size` columns, at first random. Then, at every `every`-th
        fit, `draws` random groupings and `moves` exchanges of two columns lead to more probable ones (`gp.regroup`).
    base: the kernel of a term (default Matérn 5/2); steps: evaluations a fit, from the last optimum.
    """
    if groups != "learned" and isinstance(groups, str):
        raise ValueError(f'groups are "learned" or groups of columns, such as [(0, 1), (2,)]; got {groups!r}')
    if min(size, steps, every, draws, moves) < 1:
        raise ValueError(
            f"size, steps, every, draws and moves are at least 1; got {size}, {steps}, {every}, {draws} and {moves}"
        )
    fixed = None if isinstance(groups, str) else tuple(tuple(index(column) for column in group) for group in groups)
    if fixed is not None:
        check_groups(fixed)
    return _additive(fixed, size, base or gaussian.matern52(), noise, steps, every, draws, moves)


@cache
def _additive(
    groups: Groups | None, size: int, base: Kernel, noise: Noise, steps: int, every: int, draws: int, moves: int
) -> Surrogate:
    ordered = sorted(groups or (), key=len, reverse=True)

    def sizes_of(d: int) -> tuple[int, ...]:
        return tuple(len(group) for group in ordered) if groups else even_sizes(d, min(size, d))

    def kernel_of(d: int) -> SumKernel:
        return grouped(sizes_of(d), base)

    def evidence(data: Dataset, params: Any, order: Array) -> Array:
        kernel = kernel_of(data.x.shape[1])
        return gaussian.log_evidence(kernel, {**params["kernel"], ORDER: order}, data, noise=params.get("noise", noise))

    def target_of(data: Dataset, order: Array) -> Target:
        d = data.x.shape[1]
        prior = gaussian.hyperprior(kernel_of(d), d, noise=noise)
        return target(prior, lambda params: evidence(data, params, order))

    def condition(data: Dataset, z: Any, order: Array) -> Posterior:
        params, kernel = target_of(data, order).constrain(jax.tree.map(lambda leaf: leaf[0], z)), kernel_of(data.x.shape[1])
        found = gaussian.condition(kernel, {**params["kernel"], ORDER: order}, data, noise=params.get("noise", noise))
        return jax.tree.map(lambda leaf: leaf[None], found)

    def init(capacity: int, d: int, p: int = 1) -> AdditiveState:
        data = empty(capacity, d, p)
        order = jnp.asarray(np.concatenate(ordered) if groups else np.arange(d))
        z = jax.tree.map(lambda leaf: leaf[None], target_of(data, order).start)
        return AdditiveState(z, order, condition(data, z, order), jnp.asarray(0))

    def infer(data: Dataset, key: Array, last: Any, order: Array):
        return maximise(key, target_of(data, order).maximising, last, steps=steps)

    def regrouped(data: Dataset, key: Array, last: Any, order: Array) -> tuple[Any, Array]:
        """The most probable of the groupings found under the last parameters, and under those in the middle of the prior.

        Parameters that explain a wrong grouping may hide a right one: a column whose partner was missing looks like noise.
        """
        sizes = sizes_of(len(order))

        def attempt(both):
            key, z = both
            params = target_of(data, order).constrain(z)
            better, _ = regroup(key, lambda o: evidence(data, params, o), order, sizes, draws=draws, moves=moves)
            found, info = infer(data, key, z, better)
            return jax.tree.map(lambda leaf: leaf[0], found), better, info.log_density[0]

        starts = jax.tree.map(lambda *leaves: jnp.stack(leaves), last, target_of(data, order).start)
        z, orders, density = jax.lax.map(attempt, (jax.random.split(key), starts))
        best = jnp.argmax(jnp.where(jnp.isnan(density), -jnp.inf, density))
        return jax.tree.map(lambda leaf: leaf[best], z), orders[best]

    def fit(key: Array, data: Dataset, state: AdditiveState) -> tuple[AdditiveState, FitInfo]:
        first_key, group_key, climb_key = jax.random.split(key, 3)
        last, order = jax.tree.map(lambda leaf: leaf[0], state.z), state.order
        if groups is None:
            drawn = jnp.argsort(jax.random.uniform(first_key, order.shape)).astype(order.dtype)
            begun = (last, jnp.where(state.fits == 0, drawn, order))
            last, order = seldom(state.fits % every == 0, lambda: within(regrouped, data, group_key, *begun), lambda: begun)
        z, info = within(infer, data, climb_key, last, order)
        fine = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(z)]).all()
        z = choose(fine, z, state.z)
        posterior = condition(data, z, order)
        report = FitInfo(info.log_density.mean(), fine & info.accept.all().astype(bool), fine, posterior.jitter.max())
        return AdditiveState(z, order, posterior, state.fits + 1), report

    def update(data: Dataset, state: AdditiveState) -> AdditiveState:
        return state._replace(posterior=condition(data, state.z, state.order))

    def refresh(data: Dataset, state: AdditiveState) -> tuple[AdditiveState, FitInfo]:
        density = target_of(data, state.order).maximising(jax.tree.map(lambda leaf: leaf[0], state.z))
        state, yes = update(data, state), jnp.asarray(True)
        return state, FitInfo(density, yes, yes, state.posterior.jitter.max())

    def predict(state: AdditiveState, x: Array) -> Prediction:
        return predict_each(state.posterior, x)

    def covariance(state: AdditiveState, x: Array, at: Array) -> Array:
        return covariance_each(state.posterior, x, at)

    def sample(key: Array, state: AdditiveState, x: Array, k: int) -> Array:
        return sample_in_turn(key, state.posterior, x, k)

    def adapt(space: Space) -> Surrogate:
        check_plain(space)
        if groups is not None:
            check_groups(groups, space.dim)
        return _additive(groups, size, base, noise, steps, every, draws, moves)

    return Surrogate(init, fit, update, predict, covariance, sample, adapt, refresh)


def check_plain(space: Space) -> None:
    """A ValueError where the columns of a space cannot be grouped: every one must be there, and be a number."""
    if isinstance(space, Listed):
        raise ValueError("groups are put together column by column, and a listed space has few of the points that makes")
    for name, parameter in space.parameters.items():
        if parameter.when is not None:
            raise ValueError(f"groups need every column at every point; parameter {name!r} comes and goes")
    for name, options in zip(space.names, space.categories, strict=True):
        if options > 2:
            raise ValueError(f"groups are of numbers; parameter {name!r} is a Choice of {options} options, which have no order")
