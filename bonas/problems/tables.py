"""Recorded learning curves as objectives, to test searches without training networks.

A curve is the minimized value at each of c checkpoints. If a network was trained several times, the
key of an evaluation selects one of its runs, so a search that uses the same key at all checkpoints
of a network follows one run.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, PRNGKeyArray

from bonas.curves import PartialCurves, gpar
from bonas.data import empty
from bonas.spaces import Int, Space, TableSpace

# Depths, widths and checkpoints of Hutchinson's synthetic search.
_DEPTHS = range(1, 6)
_WIDTHS = (*range(1, 10), *range(10, 100, 5), *range(100, 1000, 50))
_STEPS = (1000, 4000, 50000)


class Table(NamedTuple):
    """Networks and their recorded learning curves, made by `table` or `table_from_runs`."""

    space: TableSpace  # contains only these networks
    x: Array  # (n, d) rows of the unit cube, without repetitions
    steps: Array  # (c,) int: training steps at each checkpoint, increasing
    # (n, s, c) minimized values of s runs; NaN from the checkpoint of divergence
    values: Array


def table(space: TableSpace, steps: Sequence[int] | Array, values: ArrayLike) -> Table:
    """Make a table from the learning curves of the networks of a TableSpace.

    Args:
        space: The networks.
        steps: The number of training steps up to each checkpoint (c,), increasing.
        values: The values to minimize (n, s, c) of s runs of each network, in the order of the
            space, or (n, c) for one run each; NaN from the checkpoint of divergence.
    """
    at = np.asarray(steps)
    values = np.asarray(values, float)
    n = len(space.rows)
    _check_steps(at)
    values = values[:, None, :] if values.ndim == 2 else values
    if (
        values.ndim != 3
        or (len(values), values.shape[2]) != (n, len(at))
        or not values.shape[1]
    ):
        raise ValueError(
            f"expected values of shape ({n}, runs, {len(at)}), one row per network of the space "
            f"and one column per checkpoint; got {values.shape}"
        )
    _check_curves(values)
    return Table(space, space.points(), jnp.asarray(at), jnp.asarray(values))


def table_from_runs(
    space: Space, rows: ArrayLike, steps: Sequence[int] | Array, curves: ArrayLike
) -> Table:
    """Make a table from training runs, of which several may belong to one network.

    If a network has fewer runs than another, its runs are repeated in turn, so that each is drawn
    about equally often.

    Args:
        space: The space of the networks.
        rows: The network of each run, a point of the unit cube (m, d). Equal rows are one network.
        steps: The number of training steps up to each checkpoint (c,), increasing.
        curves: The values to minimize of each run (m, c); NaN from the checkpoint of divergence.
    """
    rows = np.asarray(rows, float)
    curves = np.asarray(curves, float)
    if curves.ndim != 2 or len(curves) != len(rows):
        raise ValueError(
            f"curves must have shape ({len(rows)}, c), one curve per row; got shape {curves.shape}"
        )
    _, first, network, counts = np.unique(
        rows.round(6),
        axis=0,
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    # Networks in the order of their first appearance.
    runs = [np.flatnonzero(network.ravel() == i) for i in np.argsort(first)]
    chosen = np.stack([np.resize(own, counts.max()) for own in runs])
    return table(TableSpace(space, rows[np.sort(first)]), steps, curves[chosen])


def objective(table: Table) -> Callable[[Array, Array, ArrayLike], Array]:
    """Make an objective for `curves.run_curves` that looks values up in a table.

    The objective is a function (key, x (d,), step ()) -> (). Its key selects a run, and `step` is
    the position of a checkpoint. The value is NaN if training diverged or there is no such
    checkpoint.
    """
    runs = table.values.shape[1]

    def look_up(key: Array, x: Array, step: ArrayLike) -> Array:
        run = jax.random.randint(key, (), 0, runs)
        curve = table.values[table.space.row(x), run]
        step = jnp.asarray(step)
        place = jnp.where(step < 0, len(curve), step)
        return curve.at[place].get(mode="fill", fill_value=jnp.nan)

    return look_up


def checkpoints(table: Table, steps: Sequence[int], *, average: int = 1) -> Table:
    """Return a table with some checkpoints of another, each averaged over the last values up to it.

    Hutchinson keeps the steps 1000, 4000 and the last one, averaged over 20 values in the thesis
    and 50 in the published code. A mean that includes a diverged checkpoint is NaN.

    Args:
        table: The table.
        steps: The training steps of the checkpoints to keep.
        average: The number of checkpoints in each mean, of which the last is the one to keep.
    """
    available = np.asarray(table.steps)
    wanted = np.asarray(steps)
    _check_steps(wanted)
    missing = wanted[~np.isin(wanted, available)]
    if len(missing):
        known = ", ".join(map(str, available))
        raise ValueError(
            f"no checkpoint at step {missing[0]}; the table has steps {known}"
        )
    ends = np.searchsorted(available, wanted)
    if not 1 <= average <= ends[0] + 1:
        raise ValueError(
            f"average must be between 1 and {ends[0] + 1}, the number of checkpoints up to step "
            f"{wanted[0]}; got {average}"
        )
    windows = ends[:, None] - np.arange(average)[None, :]
    values = table.values[:, :, windows].mean(axis=3)
    return Table(table.space, table.x, jnp.asarray(wanted), values)


def gpar_prior(
    key: PRNGKeyArray, *, runs: int = 1, slope: float = 0.1, noise: float = 0.01
) -> Table:
    """Draw a table of random learning curves from the prior of a GPAR model.

    This is Hutchinson's synthetic search, over 225 pairs of depth and width with 3 checkpoints. The
    length scales are 2 layers of depth and half a power of ten of width; the variance is 1. The
    prior is symmetric, so minimizing is as hard as maximizing.

    Args:
        key: A random key.
        runs: The number of runs of every network.
        slope: The standard deviation of the slopes of an output in the earlier outputs. With the
            default, a checkpoint is hardly informative about the next one; with 1, curves continue
            as they started.
        noise: The variance of the noise, which is drawn independently in every run.
    """
    model = gpar(markov=None)
    p = len(_STEPS)
    pairs = np.array([(depth, width) for depth in _DEPTHS for width in _WIDTHS], float)
    scaled = np.stack([pairs[:, 0], np.log10(pairs[:, 1])], axis=1)
    places = jnp.asarray(np.repeat(scaled, runs, axis=0))
    kernel = {
        "variance": jnp.ones(p),
        "lengthscale": jnp.array([2.0, 0.5]),
        "slope": jnp.full((p, p), slope),
    }
    prior = model.condition(
        {"kernel": kernel, "noise": jnp.full(p, noise)}, empty(1, 2, p)
    )
    draw = jax.jit(lambda key, known: model.sample(key, prior, places, 1, known)[0])
    y = jnp.zeros((len(places), p))
    for i in range(p):  # each layer depends on the noisy values of the table
        layer_key, noise_key = jax.random.split(jax.random.fold_in(key, i))
        known = PartialCurves(y, jnp.broadcast_to(jnp.arange(p)[None, :] < i, y.shape))
        latent = draw(layer_key, known)[:, i]
        y = y.at[:, i].set(
            latent + jnp.sqrt(noise) * jax.random.normal(noise_key, latent.shape)
        )
    space = Space(
        depth=Int(_DEPTHS[0], _DEPTHS[-1]), width=Int(_WIDTHS[0], _WIDTHS[-1], log=True)
    )
    unit = [
        parameter.unit(jnp.asarray(column))
        for parameter, column in zip(space.parameters.values(), pairs.T, strict=True)
    ]
    return table(
        TableSpace(space, np.stack(unit, axis=1)),
        _STEPS,
        y.reshape(len(pairs), runs, p),
    )


def _check_steps(steps: np.ndarray) -> None:
    integers = steps.ndim == 1 and len(steps) > 0 and steps.dtype.kind in "iu"
    if not integers or steps[0] < 0 or (np.diff(steps) <= 0).any():
        raise ValueError(
            f"steps must be increasing integers of at least 0; got {steps.tolist()}"
        )


def _check_curves(values: np.ndarray) -> None:
    """Raise a ValueError for curves that are infinite or continue after they diverged."""
    diverged = np.isnan(values)
    infinite = np.isinf(values).any(axis=2)
    continues = (diverged[:, :, :-1] & ~diverged[:, :, 1:]).any(axis=2)
    problems = (
        (
            infinite,
            "an infinite value; use NaN from the checkpoint at which training diverged",
        ),
        (continues, "a number after a NaN; a curve must stay NaN after divergence"),
    )
    for wrong, message in problems:
        if wrong.any():
            row, run = np.argwhere(wrong)[0]
            raise ValueError(f"row {row}, run {run} has {message}: {values[row, run]}")
