"""Fit Gaussian processes to random and degenerate data, and check that every number is finite.

The points are duplicates, lines, corners or close to each other; the values are constant, have
outliers or are near the ends of the precision; the hyperparameters are drawn from the prior or far
from it. The problems of a batch are computed at once by `jax.vmap`, in arrays of more than 4096
elements, where reductions may treat NaN in another way than in small ones.

    python -m campaign.fuzz_gp --problems 20000 --seed 1 --dtype float32    (in tests/)

shows its progress, prints each failure with the seed that makes it again, and counts problems by
their first failure.
"""

import argparse
import sys
from collections import Counter
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import bonas
from bonas import acquire, gp
from bonas.data import Dataset, standardize
from bonas.search import progress_bar

BATCH = 144
_N = 24  # observations
_CAPACITY = 32  # BATCH · _CAPACITY is more than 4096
_NEW = 12  # points at which to predict
POINTS = ("random", "duplicates", "line", "corners", "one point", "close")
VALUES = ("normal", "normal", "constant", "outlier", "huge", "partly huge", "tiny")
HYPERPARAMETERS = ("prior", "prior", "extreme", "long", "short", "amplitude")
NOISES = (0.0, 1e-12, 1e-6, 1.0, 1e6, "prior", "prior", "prior")
# What is checked, in the order in which it is computed.
CHECKS = (
    "standardized",
    "kernel",
    "factor",
    "density",
    "gradient",
    "mean",
    "std",
    "acquisition",
)
# The largest value, and the largest exponent of hyperparameters far from the prior.
RANGES = {"float64": (1e300, 8.0), "float32": (1e37, 4.0)}


class Problem(NamedTuple):
    """The arrays of one problem, or of a batch."""

    x: jax.Array
    y: jax.Array
    params: object
    noise: jax.Array
    new: jax.Array


def make_problem(kernel, rng):
    """Return a problem in the default precision, and the kinds of its parts."""
    from cases import SPACE, draw

    kinds = tuple(
        kinds[rng.integers(len(kinds))]
        for kinds in (POINTS, VALUES, HYPERPARAMETERS, NOISES)
    )
    key = jax.random.key(int(rng.integers(2**31)))
    dtype = jnp.result_type(float)
    largest, exponent = RANGES[dtype.name]
    u = np.asarray(SPACE.sample(key, _N + _NEW), float)
    x = _place(SPACE, u[:_N], kinds[0], rng)
    y = _values(kinds[1], rng, largest)
    params = _spread(draw(kernel.prior(SPACE.dim), key), kinds[2], rng, exponent)
    noise = kinds[3]
    if noise == "prior":
        noise = float(gp.priors.log_normal_noise().sample(key))
    problem = Problem(x, y, params, noise, u[_N:])
    return jax.tree.map(lambda leaf: np.asarray(leaf, dtype), problem), kinds


def _place(space, x, kind, rng):
    if kind == "random":
        return x
    x = x.copy()
    if kind == "duplicates":
        x[_N // 2 :] = x[: _N - _N // 2]
    elif kind == "one point":
        x[:] = x[0]
    elif kind == "line":
        x = x[0] + np.linspace(0.0, 1.0, _N)[:, None] * (x[1] - x[0])
    elif kind == "corners":
        x = np.round(rng.uniform(size=x.shape))
    else:
        x = x[0] + 1e-6 * rng.normal(size=x.shape)
    return np.asarray(space.snap(jnp.asarray(np.clip(x, 0.0, 1.0))), float)


def _values(kind, rng, largest):
    y = rng.normal(size=_N)
    far = 1.7 * largest * y / np.abs(y).max()
    if kind == "constant":
        y[:] = 3.7
    elif kind == "outlier":
        y[3] = 1e8
    elif kind == "huge":
        y = far
    elif kind == "partly huge":
        y = np.where(rng.uniform(size=_N) < 0.3, far, y)
    elif kind == "tiny":
        y = y / largest
    return y


def _spread(params, kind, rng, exponent):
    """Move positive length scales and variances away from the prior."""

    def move(path, leaf):
        name = jax.tree_util.keystr(path)
        leaf = np.asarray(leaf, float)
        is_scale = "lengthscale" in name
        if not (is_scale or "variance" in name) or (leaf <= 0.0).any():
            return leaf
        if kind == "extreme":
            return 10.0 ** rng.uniform(-exponent, exponent, leaf.shape)
        if kind in ("long", "short") and is_scale:
            return leaf * (1e4 if kind == "long" else 1e-4)
        if kind == "amplitude" and not is_scale:
            return leaf * 10.0 ** rng.uniform(-exponent, exponent)
        return leaf

    return jax.tree_util.tree_map_with_path(move, params)


def check(kernel, problem):
    """Return whether each part is finite (checks,), and whether values or jitter were lost."""
    rest = _CAPACITY - _N
    rows = jnp.arange(_CAPACITY) < _N
    data, _, scale = standardize(
        Dataset(
            jnp.pad(problem.x, ((0, rest), (0, 0))),
            jnp.pad(problem.y, (0, rest))[:, None],
            rows[:, None],
            jnp.asarray(_N),
        )
    )
    posterior = gp.condition(kernel, problem.params, data, noise=problem.noise)
    density, gradient = jax.value_and_grad(
        lambda at: gp.log_evidence(kernel, at[0], data, noise=at[1])
    )((problem.params, problem.noise))
    mean, std = gp.predict(posterior, problem.new)
    best = gp.predict(posterior, problem.x).mean.min()
    score = acquire.log_ei(mean[None], std[None], best)
    is_standard = jnp.isfinite(scale) & (
        (data.y != 0.0).any() | (problem.y == problem.y[0]).all()
    )
    finite = [
        is_standard & _is_finite(data.y),
        _is_finite(gp.kernel.gram(kernel, problem.params, data.x, data.x)),
        _is_finite(posterior.lower),
        _is_finite(density),
        _is_finite(gradient),
        _is_finite(mean),
        _is_finite(std) & (std > 0.0).all(),
        # the logarithm of no improvement is −inf
        (score < jnp.inf).all(),
    ]
    return jnp.stack(finite), posterior.jitter > 0.0


def _is_finite(tree):
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)]).all()


def fuzz_batch(name, seed, number):
    """Check one batch; return its failures in words, and its counts."""
    from cases import KERNELS

    kernel = KERNELS[name]
    rng = np.random.default_rng([seed, number])
    problems, kinds = zip(
        *(make_problem(kernel, rng) for _ in range(BATCH)), strict=True
    )
    batch = jax.tree.map(lambda *leaves: np.stack(leaves), *problems)
    run = jax.jit(jax.vmap(lambda problem: check(kernel, problem)))
    passed, jittered = map(np.asarray, run(batch))
    failures = []
    counts = Counter(problems=BATCH, jitter=int(jittered.sum()))
    for i in np.flatnonzero(~passed.all(axis=1)):
        failed = [each for each, ok in zip(CHECKS, passed[i], strict=True) if not ok]
        counts[failed[0]] += 1
        parts = ", ".join(map(str, kinds[i]))
        failures.append(
            f"batch {number}, problem {i}, {name}, {parts}: {', '.join(failed)}"
        )
    return failures, counts


def fuzz(batches, seed=0, names=None, update=lambda done, text: None):
    """Fuzz with the batches of these numbers; return the failures and the counts."""
    if names is None:
        # Not imported above, because it computes, which must not happen before bonas.configure:
        # with several threads of XLA, batched factorizations may never return.
        from cases import KERNELS

        names = tuple(KERNELS)
    failures = []
    counts = Counter()
    for done, number in enumerate(batches, start=1):
        found, added = fuzz_batch(names[number % len(names)], seed, number)
        failures += found
        counts.update(added)
        for failure in found:
            print(failure, flush=True)
        update(done, f"{len(failures)} failures")
    return failures, counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=20 * BATCH)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=list(RANGES), default="float64")
    parser.add_argument("--only", type=int, help="one batch, by its number")
    args = parser.parse_args()
    bonas.configure(x64=args.dtype == "float64")
    batches = range(-(-args.problems // BATCH)) if args.only is None else [args.only]
    with progress_bar(len(batches)) as update:
        failures, counts = fuzz(batches, args.seed, update=update)
    print(f"{args.dtype}: {dict(counts)}, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
