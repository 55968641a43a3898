"""Train variational networks on every fold, and draw networks from their posteriors."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.nets import (
    VI,
    Architecture,
    Examples,
    Params,
    Shape,
    TrainingPlan,
    VIHyperparameters,
    apply,
    bucket_shape,
    masks,
)
from bonas.nets.bnn_vi import draw_weights
from bonas.nets.vi_train import VIRun, VIState, init_training, train_until, unpack
from bonas.tabular.scores import FoldOutputs
from bonas.xla_options import for_long_arrays

# Networks drawn from each posterior.
N_DRAWS = 20
# Values folded into the key of a fold: one that training does not use for draws, and the same as in
# training for the mask.
_DRAW_STREAM = 1000
_MASK_STREAM = 0


class VariationalTraining(NamedTuple):
    """State of a variational network in training on k folds."""

    shape: Shape
    vi: VI
    plan: TrainingPlan
    architecture: Architecture
    hyper: VIHyperparameters
    key: PRNGKeyArray
    folds: Examples  # leaves (k, ...)
    states: VIState  # leaves (k, ...)


def start_variational(
    key: PRNGKeyArray,
    shape: Shape,
    architecture: Architecture,
    folds: Examples,
    *,
    vi: VI,
    plan: TrainingPlan,
    hyper: VIHyperparameters,
) -> VariationalTraining:
    """Initialize the posterior of every fold, in the smallest shape that holds the network."""
    widths = np.asarray(architecture.widths)
    small = bucket_shape(shape, widths)
    training = VariationalTraining(
        shape=small,
        vi=vi,
        plan=plan,
        architecture=architecture._replace(widths=widths[: small.depth]),  # type: ignore[arg-type]
        hyper=hyper,
        key=key,
        folds=folds,
        states=None,  # type: ignore[arg-type]
    )
    return training._replace(states=_start(training))


def train_variational(
    training: VariationalTraining, until: int
) -> tuple[VariationalTraining, FoldOutputs]:
    """Train up to update `until`, and compute validation outputs of posterior draws."""
    states, outputs, noise = _train(training, np.int32(until))
    outputs = np.asarray(outputs)
    valid = np.isfinite(outputs).all(axis=(2, 3))
    return training._replace(states=states), FoldOutputs(
        outputs, valid, np.asarray(noise)
    )


@jax.jit
def posterior_draws(training: VariationalTraining) -> Params:
    """Return the draws that `train_variational` evaluates; leaves have shape (k, N_DRAWS, ...)."""

    def one(arguments):
        fold, state = arguments
        return _draw_networks(_fold_run(training, fold), state)

    return jax.lax.map(one, (jnp.arange(len(training.folds.x)), training.states))


def _fold_run(training: VariationalTraining, fold: Array) -> VIRun:
    data = jax.tree.map(lambda leaf: leaf[fold], training.folds)
    key = jax.random.fold_in(training.key, fold)
    return VIRun(
        key,
        training.shape,
        training.vi,
        training.plan,
        training.architecture,
        training.hyper,
        data,
    )


def _draw_networks(run: VIRun, state: VIState) -> Params:
    """Draw weights; leaves have shape (N_DRAWS, ...)."""
    mask = masks(jax.random.fold_in(run.key, _MASK_STREAM), run.shape, run.architecture)
    keys = jax.random.split(jax.random.fold_in(run.key, _DRAW_STREAM), N_DRAWS)
    q = unpack(state.vector, run.shape)
    return jax.lax.map(lambda key: draw_weights(key, run.shape, q, mask), keys)


@jax.jit
def _start(training: VariationalTraining) -> VIState:
    def one(fold):
        return init_training(_fold_run(training, fold))

    return jax.lax.map(one, jnp.arange(len(training.folds.x)))


@partial(jax.jit, compiler_options=for_long_arrays())
def _train(
    training: VariationalTraining, until: Array
) -> tuple[VIState, Float[Array, "k s m c"], Float[Array, " k"]]:
    def one(arguments):
        fold, state = arguments
        run = _fold_run(training, fold)
        state, _ = train_until(run, state, until)
        x = jnp.asarray(run.data.valid_x)
        networks = _draw_networks(run, state)
        outputs = jax.vmap(
            lambda params: apply(run.shape, params, x, run.architecture)
        )(networks)
        outputs = jnp.where(state.finite, outputs, jnp.nan)
        return state, outputs, jnp.exp(unpack(state.vector, run.shape).log_noise)

    return jax.lax.map(one, (jnp.arange(len(training.folds.x)), training.states))
