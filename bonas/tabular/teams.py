"""Teams of networks: one or several of the same architecture, trained side by side on every fold, whose answers are averaged.

A team of one is a plain network; a team of sparse ones is Wilton's ensemble (`nets.ensemble`, W-D4). Training goes from
checkpoint to checkpoint and can be looked at, left or gone on with after each. What a team of a shape costs to compile it
costs once: architecture, hyperparameters and the number of members are traced.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas.configure import for_long_arrays
from bonas.nets.ensemble import sound
from bonas.nets.many import bucket
from bonas.nets.mlp import Architecture, Params, Shape, apply, unflat
from bonas.nets.settings import Examples, Hyper, Settings
from bonas.nets.train import DIVERGED, State, go_on, start
from bonas.tabular.look import Look


@jax.tree_util.register_static
@dataclass(frozen=True)
class Plan:
    """What all teams of a search share. Static: each plan is compiled once."""

    shape: Shape
    settings: Settings
    most: int  # members that there is room for


class Team(NamedTuple):
    """What differs from team to team; all of it is traced."""

    architecture: Architecture
    hyper: Hyper
    members: int


class Training(NamedTuple):
    """A team in training."""

    plan: Plan
    team: Team
    key: Array
    folds: Examples  # leaves (k, ...), one a fold
    states: State  # leaves (k, most, ...)


def begin(key: Array, plan: Plan, team: Team, folds: Examples) -> Training:
    """A team before its first epoch, in the narrowest shape that holds it."""
    plan = replace(plan, shape=bucket(plan.shape, int(np.max(team.architecture.widths))))
    return Training(plan, team, key, folds, _begin(plan, team, key, folds))


def advance(training: Training, until: int) -> tuple[Training, Look]:
    """The team after epoch `until`, and what it then says of the rows held out."""
    states, outputs, counted = _advance(*training, np.int32(until))
    counted = np.asarray(counted)
    return training._replace(states=states), Look(np.asarray(outputs), counted, np.zeros(len(counted)))


def params_of(training: Training) -> Params:
    """The parameters, (k, most, ...), in the shape that the team was trained in."""
    return _params(training.plan, training.states.params)


@jax.jit
def _params(plan: Plan, flat: Array) -> Params:
    return jax.vmap(jax.vmap(lambda vector: unflat(vector, plan.shape)))(flat)


def _each(plan: Plan, team: Team, key: Array, folds: Examples, function, *states):
    """function(key, hyper, data, *state) of every member of every fold, one after the other: leaves (k, most, ...)."""
    k = len(folds.x)

    def one(turn):
        number, *state = turn
        fold, member = number // plan.most, number % plan.most
        data = jax.tree.map(lambda leaf: leaf[fold], folds)
        epochs = jnp.where(member < team.members, plan.settings.max_epochs, 0)
        own = jax.random.fold_in(jax.random.fold_in(key, fold), member)
        return function(own, team.hyper._replace(epochs=epochs), data, *state)

    flat = jax.tree.map(lambda leaf: leaf.reshape(k * plan.most, *leaf.shape[2:]), states)
    found = jax.lax.map(one, (jnp.arange(k * plan.most), *flat))
    return jax.tree.map(lambda leaf: leaf.reshape(k, plan.most, *leaf.shape[1:]), found)


def _to_train(data: Examples) -> Examples:
    """Without rows to validate on: teams are looked at from outside."""
    return data._replace(valid_x=None, valid_y=None)


@jax.jit
def _begin(plan: Plan, team: Team, key: Array, folds: Examples) -> State:
    def first(key, hyper, data):
        return start(key, plan.shape, plan.settings, team.architecture, hyper, _to_train(data))

    return _each(plan, team, key, folds, first)


@partial(jax.jit, compiler_options=for_long_arrays())
def _advance(plan: Plan, team: Team, key: Array, folds: Examples, states: State, until: Array) -> tuple[State, Array, Array]:
    shape, network = plan.shape, team.architecture

    def further(key, hyper, data, state):
        state = go_on(key, shape, plan.settings, network, hyper, _to_train(data), state, until)
        params = unflat(state.params, shape)
        outputs = apply(shape, params, data.valid_x, network)
        fine = jnp.isfinite(outputs).all() & (state.status != DIVERGED)
        varies = sound(apply(shape, params, data.x, network), data.y) if plan.most > 1 and data.y.ndim == 2 else True
        return state, outputs, fine, fine & varies

    states, outputs, fine, varies = _each(plan, team, key, folds, further, states)
    there = (jnp.arange(plan.most) < team.members)[None, :]
    # where every member of a fold is cut off from its inputs, those that are finite answer
    counted = there & jnp.where((there & varies).any(axis=1, keepdims=True), varies, fine)
    return states, outputs, counted
