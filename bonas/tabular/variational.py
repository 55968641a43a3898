"""Variational networks on every fold, from checkpoint to checkpoint, read by draws of whole networks from their posteriors."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas.configure import for_long_arrays
from bonas.nets.bnn_vi import VI, draw_weights
from bonas.nets.mlp import Architecture, Params, Shape, apply, masks
from bonas.nets.settings import Examples
from bonas.nets.vi_many import size_of
from bonas.nets.vi_train import Course, Run, Traits, climb, unpack
from bonas.nets.vi_train import Training as State
from bonas.nets.vi_train import begin as start
from bonas.tabular.look import Look

DRAWS = 20  # networks that stand for a posterior
_DRAW, _MASK = 1000, 0  # what the key of a fold is folded with: past the uses that training has for it, and its mask's


class Training(NamedTuple):
    """A network in training, once a fold."""

    shape: Shape
    vi: VI
    course: Course
    architecture: Architecture
    traits: Traits
    key: Array
    folds: Examples  # leaves (k, ...)
    states: State  # leaves (k, ...)


def begin(
    key: Array, shape: Shape, vi: VI, course: Course, architecture: Architecture, traits: Traits, folds: Examples
) -> Training:
    """A network before its first update, in the smallest shape that holds it."""
    widths = np.asarray(architecture.widths)
    small = size_of(shape, widths)
    told = Training(small, vi, course, architecture._replace(widths=widths[: small.depth]), traits, key, folds, None)  # type: ignore[arg-type]
    return told._replace(states=_begin(told))


def advance(training: Training, until: int) -> tuple[Training, Look]:
    """The network after so many updates, and what draws from its posterior say of the rows held out."""
    states, outputs, noise = _advance(training, np.int32(until))
    outputs = np.asarray(outputs)
    return training._replace(states=states), Look(outputs, np.isfinite(outputs).all(axis=(2, 3)), np.asarray(noise))


def params_of(training: Training) -> Params:
    """The draws that `advance` looked at, (k, draws, ...)."""
    return _drawn(training)


def _run(training: Training, fold: Array) -> Run:
    data = jax.tree.map(lambda leaf: leaf[fold], training.folds)
    key = jax.random.fold_in(training.key, fold)
    return Run(key, training.shape, training.vi, training.course, training.architecture, training.traits, data)


def _networks(run: Run, state: State) -> Params:
    """Draws of weights (draws, ...)."""
    mask = masks(jax.random.fold_in(run.key, _MASK), run.shape, run.architecture)
    keys = jax.random.split(jax.random.fold_in(run.key, _DRAW), DRAWS)
    q = unpack(state.vector, run.shape)
    return jax.lax.map(lambda key: draw_weights(key, run.shape, q, mask), keys)


@jax.jit
def _begin(training: Training) -> State:
    return jax.lax.map(lambda fold: start(_run(training, fold)), jnp.arange(len(training.folds.x)))


@partial(jax.jit, compiler_options=for_long_arrays())
def _advance(training: Training, until: Array) -> tuple[State, Array, Array]:
    def further(turn):
        fold, state = turn
        run = _run(training, fold)
        state, _ = climb(run, state, until)
        x = jnp.asarray(run.data.valid_x)
        outputs = jax.vmap(lambda params: apply(run.shape, params, x, run.architecture))(_networks(run, state))
        outputs = jnp.where(state.finite, outputs, jnp.nan)
        return state, outputs, jnp.exp(unpack(state.vector, run.shape).log_noise)

    return jax.lax.map(further, (jnp.arange(len(training.folds.x)), training.states))


@jax.jit
def _drawn(training: Training) -> Params:
    def one(turn):
        fold, state = turn
        return _networks(_run(training, fold), state)

    return jax.lax.map(one, (jnp.arange(len(training.folds.x)), training.states))
