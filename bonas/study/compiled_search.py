"""Compile a search for a capacity, as functions of flat states that can be stored and exported."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.interpreters.partial_eval import dce_jaxpr
from jaxtyping import PRNGKeyArray

from bonas.search import AskInfo, Observation, Search, make_observation
from bonas.study.program_cache import (
    Programs,
    export_programs,
    load_programs,
    program_file,
)

State = tuple[Array, ...]  # the leaves of a search's state


class CompiledSearch(NamedTuple):
    """The functions of a search for one capacity."""

    init: Callable[[PRNGKeyArray], State]
    ask: Callable[[PRNGKeyArray, State], tuple[Array, State, AskInfo]]
    tell: Callable[[State, Observation], State]
    batch_size: int  # points per ask
    # for each leaf of a state, whether any later point depends on it
    persistent: tuple[bool, ...]


def compile_search(
    search: Search, capacity: int, name: str | None = None
) -> CompiledSearch:
    """Compile a search for a capacity.

    Args:
        search: The search.
        capacity: Points that its state can hold.
        name: A text that identifies the search in every process. If it is given and JAX has a
            persistent compilation cache, the traced programs are stored beside that cache, because
            tracing and lowering an ask takes seconds. The same programs run whether they were
            stored or not.
    """
    file = program_file(name, capacity) if name else None
    stored = load_programs(file) if file else None
    if stored:
        return _compiled(stored)
    functions = _flat_functions(search, capacity)
    arguments = _argument_shapes(search, capacity)
    batch_size, persistent = _analyze(functions, arguments)
    programs = Programs(*functions, batch_size, persistent)
    if file:
        programs = export_programs(file, programs, arguments)
    return _compiled(programs)


def state_structure(search: Search, capacity: int) -> Any:
    """Return the tree structure of a state, to unflatten its leaves."""
    return jax.tree.structure(_state_shapes(search, capacity))


def _state_shapes(search: Search, capacity: int) -> Any:
    return jax.eval_shape(lambda: search.init(jax.random.key(0), capacity))


def _flat_functions(search: Search, capacity: int) -> tuple[Any, Any, Any]:
    """Return jitted init, ask and tell on tuples of arrays, with raw key data as keys."""
    structure = state_structure(search, capacity)

    def init(key: Array) -> State:
        return tuple(
            jax.tree.leaves(search.init(jax.random.wrap_key_data(key), capacity))
        )

    def ask(key: Array, state: State) -> tuple[Array, State, tuple[Array, ...]]:
        whole = jax.tree.unflatten(structure, state)
        x, whole, info = search.ask(jax.random.wrap_key_data(key), whole)
        return x, tuple(jax.tree.leaves(whole)), tuple(info)

    def tell(state: State, observation: tuple[Array, ...]) -> State:
        whole = jax.tree.unflatten(structure, state)
        return tuple(jax.tree.leaves(search.tell(whole, Observation(*observation))))

    return jax.jit(init), jax.jit(ask), jax.jit(tell)


def _argument_shapes(search: Search, capacity: int) -> tuple[Any, Any, Any]:
    """Return the shapes of the arguments of init, ask and tell."""
    key = jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0)))
    state = tuple(jax.tree.leaves(_state_shapes(search, capacity)))
    point = jnp.zeros(search.space.dim)
    observation = tuple(
        jax.eval_shape(lambda: make_observation(point, 0.0, 0.0, ok=True))
    )
    return (key,), (key, state), (state, observation)


def _analyze(
    functions: tuple[Any, Any, Any], arguments: tuple[Any, Any, Any]
) -> tuple[int, tuple[bool, ...]]:
    """Return the points per ask, and which leaves of a state any later point depends on.

    A leaf is persistent if the next point, or another persistent leaf, is computed from it by an
    ask or a tell. A posterior that every fit recomputes is not; the hyperparameters from which
    the fit starts are.
    """
    _, ask_function, tell_function = functions
    _, ask_arguments, tell_arguments = arguments
    ask = ask_function.trace(*ask_arguments).jaxpr.jaxpr
    tell = tell_function.trace(*tell_arguments).jaxpr.jaxpr
    leaves = len(ask_arguments[1])
    info_outputs = len(ask.outvars) - 1 - leaves
    persistent = [False] * leaves
    while True:
        _, used_by_ask = dce_jaxpr(ask, [True, *persistent, *[False] * info_outputs])
        _, used_by_tell = dce_jaxpr(tell, persistent)
        uses = zip(persistent, used_by_ask[1:], used_by_tell[:leaves], strict=True)
        wider = [any(use) for use in uses]
        if wider == persistent:
            return ask.outvars[0].aval.shape[0], tuple(persistent)
        persistent = wider


def _compiled(programs: Programs) -> CompiledSearch:
    def init(key: PRNGKeyArray) -> State:
        state: State = programs.init(jax.random.key_data(key))
        return state

    def ask(key: PRNGKeyArray, state: State) -> tuple[Array, State, AskInfo]:
        x, state, info = programs.ask(jax.random.key_data(key), state)
        return x, state, AskInfo(*info)

    def tell(state: State, observation: Observation) -> State:
        told: State = programs.tell(state, tuple(observation))
        return told

    return CompiledSearch(init, ask, tell, programs.batch_size, programs.persistent)
