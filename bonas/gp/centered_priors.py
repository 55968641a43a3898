"""Find priors whose middle may be a saddle point, without computing a gradient."""

from typing import Any

import jax
import numpy as np
import numpyro.distributions as dist

from bonas.infer import Tree, is_distribution


def has_centered_leaf(prior: Tree) -> bool:
    """Return whether any parameter of a prior may be 0 in the middle of the prior."""
    leaves = jax.tree.leaves(prior, is_leaf=is_distribution)
    return any(map(is_centered, leaves))


def is_centered(distribution: dist.Distribution) -> bool:
    """Return whether the middle may be 0: the numbers are unbounded, or in an interval around 0.

    A weight is such a number. The default kernels have none, so that they need no gradient.
    """
    support: Any = distribution.support
    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    if support is dist.constraints.real:
        return True
    low = getattr(support, "lower_bound", 0.0)
    high = getattr(support, "upper_bound", 0.0)
    if any(isinstance(bound, jax.core.Tracer) for bound in (low, high)):
        return True  # unknown
    return bool(np.any((np.asarray(low) == -np.asarray(high)) & (np.asarray(low) < 0)))
