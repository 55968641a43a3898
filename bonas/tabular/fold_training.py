"""Train one or several networks of one architecture on every fold, checkpoint by checkpoint.

A single network is an MLP; several sparse ones are an ensemble (Wilton 2020, Section 3.3).
Architecture, hyperparameters and the number of members are traced, so that all configurations of
one shape use one compiled program.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from bonas.nets import (
    DIVERGED,
    Architecture,
    Examples,
    Hyperparameters,
    Params,
    Settings,
    Shape,
    State,
    apply,
    bucket,
    has_plausible_spread,
    resume_training,
    start_training,
    unflatten,
)
from bonas.tabular.scores import FoldOutputs
from bonas.xla_options import for_long_arrays


@jax.tree_util.register_static
@dataclass(frozen=True)
class Plan:
    """Static settings shared by all configurations of a search; compiled once."""

    shape: Shape
    settings: Settings
    max_members: int


class Members(NamedTuple):
    """Traced description of the networks of one configuration."""

    architecture: Architecture
    hyper: Hyperparameters
    n_members: int  # at most `Plan.max_members`


class FoldTraining(NamedTuple):
    """State of networks in training on k folds."""

    plan: Plan
    members: Members
    key: PRNGKeyArray
    folds: Examples  # leaves (k, ...)
    states: State  # leaves (k, max_members, ...)


def start_folds(
    key: PRNGKeyArray, plan: Plan, members: Members, folds: Examples
) -> FoldTraining:
    """Initialize the networks on every fold, in the narrowest shape that holds them.

    Args:
        key: Random key.
        plan: Static settings, whose shape holds all configurations.
        members: The networks of one configuration.
        folds: Training and validation rows, leaves (k, ...).
    """
    width = int(np.max(members.architecture.widths))
    plan = replace(plan, shape=bucket(plan.shape, width))
    states = _start(plan, members, key, folds)
    return FoldTraining(plan, members, key, folds, states)


def train_folds(training: FoldTraining, until: int) -> tuple[FoldTraining, FoldOutputs]:
    """Train up to epoch `until`, and compute the outputs for the validation rows."""
    states, outputs, valid = _train(*training, np.int32(until))
    valid = np.asarray(valid)
    no_noise = np.zeros(len(valid))
    return training._replace(states=states), FoldOutputs(
        np.asarray(outputs), valid, no_noise
    )


def network_params(training: FoldTraining) -> Params:
    """Return the parameters of the networks; leaves have shape (k, max_members, ...)."""
    return _unflatten(training.plan, training.states.params)


@jax.jit
def _unflatten(plan: Plan, flat: Float[Array, "k s p"]) -> Params:
    return jax.vmap(jax.vmap(lambda vector: unflatten(vector, plan.shape)))(flat)


def _map_members(
    plan: Plan, members: Members, key: PRNGKeyArray, folds: Examples, function, *states
):
    """Call function(key, hyper, data, *state) for every member of every fold, one at a time.

    Returns:
        Its results; leaves have shape (k, max_members, ...).
    """
    k = len(folds.x)
    size = plan.max_members

    def one(arguments):
        number, *state = arguments
        fold = number // size
        member = number % size
        data = jax.tree.map(lambda leaf: leaf[fold], folds)
        epochs = jnp.where(member < members.n_members, plan.settings.max_epochs, 0)
        member_key = jax.random.fold_in(jax.random.fold_in(key, fold), member)
        return function(member_key, members.hyper._replace(epochs=epochs), data, *state)

    flat = jax.tree.map(lambda leaf: leaf.reshape(k * size, *leaf.shape[2:]), states)
    results = jax.lax.map(one, (jnp.arange(k * size), *flat))
    return jax.tree.map(lambda leaf: leaf.reshape(k, size, *leaf.shape[1:]), results)


def _without_validation(data: Examples) -> Examples:
    """Remove the validation rows, because the caller implements early stopping."""
    return data._replace(valid_x=None, valid_y=None)


@jax.jit
def _start(plan: Plan, members: Members, key: PRNGKeyArray, folds: Examples) -> State:
    def start_one(key, hyper, data):
        data = _without_validation(data)
        return start_training(
            key, plan.shape, plan.settings, members.architecture, hyper, data
        )

    return _map_members(plan, members, key, folds, start_one)


@partial(jax.jit, compiler_options=for_long_arrays())
def _train(
    plan: Plan,
    members: Members,
    key: PRNGKeyArray,
    folds: Examples,
    states: State,
    until: Array,
) -> tuple[State, Float[Array, "k s m c"], Bool[Array, "k s"]]:
    shape = plan.shape
    network = members.architecture

    def train_one(key, hyper, data, state):
        train = _without_validation(data)
        state = resume_training(
            key, shape, plan.settings, network, hyper, train, state, until
        )
        params = unflatten(state.params, shape)
        outputs = apply(shape, params, data.valid_x, network)
        finite = jnp.isfinite(outputs).all() & (state.status != DIVERGED)
        is_ensemble_of_values = plan.max_members > 1 and data.y.ndim == 2
        if not is_ensemble_of_values:
            return state, outputs, finite, finite
        plausible = has_plausible_spread(apply(shape, params, data.x, network), data.y)
        return state, outputs, finite, finite & plausible

    results = _map_members(plan, members, key, folds, train_one, states)
    states, outputs, finite, plausible = results
    used = (jnp.arange(plan.max_members) < members.n_members)[None, :]
    # Sparse members may have no connection to their inputs. If this is true for all members of a
    # fold, average the finite ones.
    any_plausible = (used & plausible).any(axis=1, keepdims=True)
    valid = used & jnp.where(any_plausible, plausible, finite)
    return states, outputs, valid
