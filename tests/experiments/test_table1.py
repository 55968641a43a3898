"""A small version of Table 1 of Swersky et al. 2014: the arc kernel against a plain GP."""

import os
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import bonas
from bonas import gp, infer
from bonas.data import standardize
from experiments.raiders import authors_table as raiders
from experiments.raiders.folds import random_folds

# halves: quick to fit, and 475 test rows tell models apart on nearly every fold
FOLDS = 2
SEEDS = 5
EVALUATIONS = 40  # from the middle of the prior
NOISE = dist.Uniform(1e-4, 1.0)  # a floor, because some rows occur ten times
MEAN = gp.learned_constant()


@partial(jax.jit, static_argnames="kernel")
def predict(kernel, data, at):
    """Values predicted at points under the most probable hyperparameters."""
    data, center, scale = standardize(data)
    target = gp.hyperposterior(kernel, data, noise=NOISE, mean=MEAN)
    found, _ = infer.maximize(
        jax.random.key(0), target.maximizing, target.start, steps=EVALUATIONS
    )
    best = target.constrain(jax.tree.map(lambda leaf: leaf[0], found))
    posterior = gp.condition(
        kernel,
        best["kernel"],
        data,
        noise=best["noise"],
        mean=MEAN,
        mean_params=best["mean"],
    )
    return center + scale * gp.predict(posterior, at).mean


def score(kernel, x, y, test):
    train = np.setdiff1d(np.arange(len(y)), test)
    capacity = len(y) - len(y) // FOLDS
    at = np.zeros((-(-len(y) // FOLDS), x.shape[1]))
    at[: len(test)] = x[test]
    found = predict(
        kernel, bonas.dataset(x[train], y[train], capacity), jnp.asarray(at)
    )[: len(test)]
    return float(np.mean((np.asarray(found) - y[test]) ** 2) / y.var(ddof=1))


@pytest.mark.slow
def test_the_arc_kernel_models_networks_better_than_a_gp_that_is_blind_to_relevance():
    """Swersky et al. 2014, Table 1, logarithms, in pairs on the same folds."""
    if not os.environ.get("BONAS_DATA"):
        pytest.skip("BONAS_DATA names no folder with the real data")
    table = raiders.load()
    y, arc, blind = np.log(table.y), gp.arc(raiders.active), gp.matern52()
    differences = [
        score(arc, table.x, y, test)
        - score(blind, raiders.fill(table, "random", seed), y, test)
        for seed in range(SEEDS)
        for test in random_folds(len(y), FOLDS, seed)
    ]
    assert np.mean(differences) < 0.0
    # Without a difference, 8 or more of 10 halves would favor the arc in 6 of 100 such tests.
    assert np.sum(np.array(differences) < 0.0) >= 8, differences
