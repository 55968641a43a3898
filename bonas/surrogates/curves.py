"""The last output of an autoregressive model of learning curves, as a surrogate."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas import gp as gaussian
from bonas.data import Dataset, empty, within
from bonas.gp import GPAR, Curves, Prediction
from bonas.gp.gpar import check_draws
from bonas.gp.gpar_pairs import last_covariance
from bonas.gp.hyper import Noise
from bonas.infer import Info, Target, maximise, slice_sample
from bonas.infer.target import choose
from bonas.spaces import Space
from bonas.surrogates.interface import FitInfo, Surrogate

INFER = ("map", "slice")


class GPARState(NamedTuple):
    """Hyperparameter samples and the models under them."""

    z: Any  # (s, ...) unconstrained hyperparameters
    scale: Array  # widths of slice sampling, where it is used
    curves: Curves  # (s, ...)


def gpar(
    model: GPAR | None = None,
    *,
    noise: Noise | None = None,
    infer: str = "map",
    samples: int = 16,
    steps: int = 10,
    draws: int = 64,
) -> Surrogate:
    """What a GPAR says of the last of the p outputs in Dataset.y (n, p), at points of which nothing has been seen.

    Curves that have only begun inform it too: data must be closed downwards, no output without those before it, unless the
    model imputes. With p = 1 it is a Gaussian process with a squared exponential kernel. Columns are numbers to it: a Choice of
    more than two options is refused, and a column that is inactive is 0.

    model: made by `gp.gpar`, by default Hutchinson's; the layers are fitted jointly.
    infer: "map", by `steps` evaluations from the last optimum, or "slice", `samples` draws after 2 sweeps.
    draws: of the outputs before the last, by which predictions and covariances are averaged; an even number.
    """
    if infer not in INFER:
        raise ValueError(f"infer is one of {', '.join(INFER)}; got {infer!r}")
    check_draws(draws)
    return _gpar(model or gaussian.gpar(), noise, infer, samples, steps, draws)


@cache
def _gpar(model: GPAR, noise: Noise | None, infer: str, samples: int, steps: int, draws: int) -> Surrogate:
    s = samples if infer == "slice" else 1

    def target_of(data: Dataset) -> Target:
        return model.hyperposterior(data, noise=noise)

    def condition(z: Any, data: Dataset) -> Curves:
        return jax.vmap(lambda one: model.condition(target_of(data).constrain(one), data))(z)

    def density(z: Any, data: Dataset, curves: Curves) -> Array:
        """The mean over samples of the log density of data and hyperparameters, in the units of the data."""
        target = target_of(data)
        each = jax.vmap(target.maximising if infer == "map" else target.sampling)(z)
        return each.mean() - (data.mask.sum(axis=0) * jnp.log(curves.scale[0])).sum()

    def init(capacity: int, d: int, p: int = 1) -> GPARState:
        data = empty(capacity, d, p)
        z = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (s, *leaf.shape)), target_of(data).start)
        width = sum(leaf[0].size for leaf in jax.tree.leaves(z))
        return GPARState(z, jnp.ones(width), condition(z, data))

    def infer_from(data: Dataset, key: Array, last: Any, scale: Array) -> tuple[Any, Info, Array]:
        target = target_of(data)
        if infer == "map":
            return *maximise(key, target.maximising, last, steps=steps), scale
        z, info = slice_sample(key, target.sampling, last, samples=samples, burn=2, width=scale)
        return z, info, info.scale

    def fit(key: Array, data: Dataset, state: GPARState) -> tuple[GPARState, FitInfo]:
        z, info, scale = within(infer_from, data, key, jax.tree.map(lambda leaf: leaf[-1], state.z), state.scale)
        fine = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(z)]).all()
        found, report = refresh(data, GPARState(choose(fine, z, state.z), scale, state.curves))
        converged = fine & jnp.where(infer == "map", info.accept.all(), ~info.diverging.any())
        return found, report._replace(converged=converged & report.finite, finite=fine & report.finite)

    def update(data: Dataset, state: GPARState) -> GPARState:
        return state._replace(curves=condition(state.z, data))

    def refresh(data: Dataset, state: GPARState) -> tuple[GPARState, FitInfo]:
        state = update(data, state)
        value = density(state.z, data, state.curves)
        return state, FitInfo(value, jnp.asarray(True), jnp.isfinite(value), state.curves.layers.jitter.max())

    def predict(state: GPARState, x: Array) -> Prediction:
        few = draws if state.curves.noise.shape[1] > 1 else 2  # nothing comes before a single output
        each = jax.vmap(lambda curves: model.predict(curves, x, draws=few))(state.curves)
        return Prediction(each.mean[:, :, -1], each.std[:, :, -1])

    def covariance(state: GPARState, x: Array, at: Array) -> Array:
        return jax.vmap(lambda curves: last_covariance(model, curves, x, at, draws=draws))(state.curves)

    def sample(key: Array, state: GPARState, x: Array, k: int) -> Array:
        """The i-th draw is from the i-th hyperparameter sample, in turn."""
        each = -(-k // s)
        keys = jax.random.split(key, s)
        found = jax.vmap(lambda key, curves: model.sample(key, curves, x, each)[:, :, -1])(keys, state.curves)
        return jnp.swapaxes(found, 0, 1).reshape(each * s, len(x))[:k]

    def adapt(space: Space) -> Surrogate:
        for name, options in zip(space.names, space.categories, strict=True):
            if options > 2:
                raise ValueError(
                    f"columns are numbers to this model; parameter {name!r} is a Choice of {options} options, which have no "
                    "order: use surrogates.gp()"
                )
        return _gpar(model, noise, infer, samples, steps, draws)

    return Surrogate(init, fit, update, predict, covariance, sample, adapt, refresh)
