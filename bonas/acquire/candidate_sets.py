"""Maximizers without gradients: over all points of a finite space, or random points."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from bonas.acquire.maximize import (
    MOST_JOINT,
    Maximizer,
    Score,
    Selection,
    choose,
)
from bonas.spaces import Space
from bonas.static_settings import check_counts


@dataclass(frozen=True)
class RandomCandidates(Maximizer):
    """A maximizer over uniform random candidates."""

    space: Space
    size: int

    def maximize(
        self, key: PRNGKeyArray, score: Score, around: Array, tried: Array, valid: Array
    ) -> Selection:
        points = self.space.sample(key, self.size)
        return choose(points, score(points), tried, valid)

    def candidates(self, key: PRNGKeyArray, around: Array) -> Array:
        points: Array = self.space.sample(key, min(self.size, MOST_JOINT))
        return points


def random_candidates(space: Space, *, candidates: int = 1000) -> Maximizer:
    """Create a maximizer that takes the best of random points (Twist, Algorithm 4; Wilton 2020).

    Args:
        space: The space.
        candidates: Number of points to draw uniformly from the space at each ask.
    """
    check_counts(candidates=candidates)
    return RandomCandidates(space, candidates)


@dataclass(frozen=True)
class Enumeration(Maximizer):
    """A maximizer over all points of a finite space."""

    space: Space
    points: np.ndarray = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", np.asarray(self.space.points()))

    def maximize(
        self, key: PRNGKeyArray, score: Score, around: Array, tried: Array, valid: Array
    ) -> Selection:
        points = self._shuffled(key)
        return choose(points, score(points), tried, valid)

    def candidates(self, key: PRNGKeyArray, around: Array) -> Array:
        return self._shuffled(key)[:MOST_JOINT]

    def _shuffled(self, key: PRNGKeyArray) -> Array:
        """Return all points in random order, which breaks ties at random."""
        shuffled: Array = jax.random.permutation(key, jnp.asarray(self.points))
        return shuffled


def enumeration(space: Space) -> Maximizer:
    """Create a maximizer that scores all points of a finite space and selects the best.

    Args:
        space: A space with finitely many points.
    """
    return Enumeration(space)
