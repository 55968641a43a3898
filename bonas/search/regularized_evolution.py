"""Regularized evolution: mutate the best of a random sample of the youngest points.

Real et al. 2019, Algorithm 1.
"""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.data import Dataset
from bonas.search.baselines import PlanState, RandomSearch, check_plan
from bonas.search.repeated_points import are_observed
from bonas.search.search import AskInfo, ask_info
from bonas.spaces import Parameter, Space, TableSpace
from bonas.traced_settings import Setting, as_setting, setting_value

# Number of children per ask; the first new one is proposed.
_CHILDREN = 16


@dataclass(frozen=True)
class Evolution(RandomSearch):
    """Regularized evolution; see `evolution`."""

    population: int = 20
    tournament: int = 5
    step: Setting = 0.1

    @property
    def is_exhaustive(self) -> bool:
        """Whether the plan contains all points, as it does for a TableSpace of any size."""
        return isinstance(self.space, TableSpace) or super().is_exhaustive

    def suggest(
        self, key: PRNGKeyArray, state: PlanState
    ) -> tuple[Float[Array, " d"], AskInfo]:
        data = state.observations.data
        plan_key, chance_key, change_key = jax.random.split(key, 3)
        rows, members = _youngest(data.mask[:, 0], self.population)
        young = data.size < self.population
        planned, exhausted = self.next_planned(plan_key, state)
        infertile = members == 0
        if isinstance(self.space, TableSpace):
            child = self._listed_child(
                self.space, chance_key, change_key, state, rows, members
            )
            random = young | infertile | exhausted
            duplicates: ArrayLike = 0
        else:
            children = self._children(chance_key, change_key, data, rows, members)
            tried = are_observed(state.observations, children)
            first = jnp.argmin(tried)
            child = children[first]
            random = young | infertile | (tried.all() & ~exhausted)
            skipped = jnp.where(tried.all(), _CHILDREN, first)
            duplicates = jnp.where(young | infertile, 0, skipped)
        info = ask_info(
            planned,
            duplicates=duplicates,
            exhausted=exhausted,
            random=random,
            fallback=jnp.where(infertile & ~young, 1, 0),
        )
        return jnp.where(random, planned, child), info

    def _children(
        self,
        chance_key: PRNGKeyArray,
        change_key: PRNGKeyArray,
        data: Dataset,
        rows: Array,
        members: Array,
    ) -> Float[Array, "c d"]:
        """Return mutated points."""
        d = self.space.dim
        # One column per child: this compiles several times faster than one row per child.
        chances = jax.random.uniform(chance_key, (self.tournament + 2 * d, _CHILDREN))
        changes = jax.random.normal(change_key, (d, _CHILDREN))
        make = jax.vmap(self._child, (1, 1, None, None, None))
        return make(chances, changes, data, rows, members)

    def _listed_child(
        self,
        space: TableSpace,
        chance_key: PRNGKeyArray,
        change_key: PRNGKeyArray,
        state: PlanState,
        rows: Array,
        members: Array,
    ) -> Float[Array, " d"]:
        """Return the new row of a table nearest to a mutated point."""
        data = state.observations.data
        listed = space.points()
        chances = jax.random.uniform(chance_key, (self.tournament + 2 * space.dim,))
        changes = jax.random.normal(change_key, (space.dim,))
        child = self._child(chances, changes, data, rows, members)
        tried = are_observed(state.observations, listed)
        return listed[jnp.argmin(jnp.where(tried, jnp.inf, space.distances(child)))]

    def _child(
        self, chances: Array, changes: Array, data: Dataset, rows: Array, members: Array
    ) -> Float[Array, " d"]:
        """Mutate the best of a tournament among the members of the population."""
        space = self.space.space if isinstance(self.space, TableSpace) else self.space
        entrants = rows[_to_integer(chances[: self.tournament], members)]
        parent = data.x[entrants[jnp.argmin(data.y[entrants, 0])]]
        return mutate(
            space,
            parent,
            chances[self.tournament :],
            setting_value(self.step) * changes,
        )


def evolution(
    space: Space,
    *,
    population: int = 20,
    tournament: int = 5,
    step: ArrayLike = 0.1,
    batch: int = 1,
) -> Evolution:
    """Search by regularized evolution (Real et al. 2019, Algorithm 1).

    The first `population` points are random. Then the parent is the best of `tournament` points
    that are drawn, with replacement, from the population: the `population` successful points that
    were asked last. The oldest point leaves the population, not the worst. The order of
    observations in a batch does not matter.

    The child differs from its parent in one active parameter. A number takes a Gaussian step on its
    own scale, reflected at the bounds, and an integer changes by at least one; a Choice becomes any
    other option. Parameters that become active are drawn at random. If 16 children have all been
    evaluated before, the next point is random.

    In a TableSpace the child is the new row nearest to the mutated point, because few mutations are
    rows themselves.

    Args:
        space: The space to search.
        population: The number of points that may become parents.
        tournament: The number of points of the population that compete to become the parent.
        step: The standard deviation of a step, as a fraction of the range.
        batch: The number of points per ask.
    """
    check_plan(space, population=population, tournament=tournament, batch=batch)
    width = as_setting("step", step)
    if isinstance(width, float) and not 0.0 < width < math.inf:
        raise ValueError(f"step must be a positive number; got {step}")
    return Evolution(space, batch, population, tournament, width)


def mutate(
    space: Space,
    parent: Float[Array, " d"],
    chances: Array,
    changes: Float[Array, " d"],
) -> Float[Array, " d"]:
    """Change one active parameter, chosen uniformly among those with more than one value.

    Args:
        space: The space of the parent.
        parent: The point to change.
        chances: Uniform draws (2 d,): which parameter to change, and the values of options and of
            parameters that become active.
        changes: Steps of numeric parameters, as fractions of the range.
    """
    parameters = list(space.parameters.values())
    free = np.array([p.low < p.high for p in parameters])
    active = space.active(parent)
    priority = chances[: space.dim]
    draws = chances[space.dim :]
    column = jnp.argmax(jnp.where(active & free, priority, -1.0))
    moved = [
        _move(p, parent[i], changes[i], draws[i]) for i, p in enumerate(parameters)
    ]
    fresh = [p.spread(draws[i]) for i, p in enumerate(parameters)]
    others = jnp.where(active, parent, jnp.stack(fresh))
    return space.snap(
        jnp.where(jnp.arange(space.dim) == column, jnp.stack(moved), others)
    )


def _move(parameter: Parameter, u: Array, change: Array, draw: Array) -> Array:
    """Return another column value: a random other option, or a number moved and reflected."""
    if not parameter.ordered:
        other = parameter.value(u) + 1 + _to_integer(draw, parameter.categories - 1)
        return parameter.unit((other % parameter.categories).astype(u.dtype))
    reflected = 1.0 - jnp.abs(1.0 - (u + change) % 2.0)
    if parameter.size == math.inf:
        return reflected
    value = parameter.value(u)
    other = parameter.value(reflected)
    up = (value < parameter.high) & ((change > 0) | (value == parameter.low))
    # A step that is rounded to zero becomes a step of one.
    neighbor = value + jnp.where(up, 1, -1)
    return parameter.unit(jnp.where(other == value, neighbor, other).astype(u.dtype))


def _youngest(mask: Array, most: int) -> tuple[Array, Array]:
    """Return the last `most` rows in the mask (n,), newest first, and their number."""
    _, rows = jax.lax.top_k(
        jnp.where(mask, jnp.arange(len(mask)), -1), min(most, len(mask))
    )
    return rows, jnp.minimum(mask.sum(), most)


def _to_integer(draw: Array, n: ArrayLike) -> Array:
    """Map a uniform draw to 0, ..., n − 1; to 0 if n is 0."""
    return jnp.clip(jnp.floor(draw * n), 0, jnp.maximum(jnp.asarray(n) - 1, 0)).astype(
        int
    )
