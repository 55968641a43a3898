"""Whole searches as pure functions of a key: one run, or many at once."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from bonas.search.types import History, Search, Trial

Objective = Callable[[Array, Array], Array]


def run(search: Search, objective: Objective, key: Array, steps: int) -> History:
    """A whole search of `steps` evaluations, the initial ones included: a pure, jittable function of its key.

    objective(key, u (d,)) -> value must be traceable; a NaN or an infinite value is a failed evaluation.
    """
    init_key, run_key = jax.random.split(key)

    def step(state, i):
        ask_key, eval_key = jax.random.split(jax.random.fold_in(run_key, i))
        x, state, info = search.ask(ask_key, state)
        if len(x) != 1:
            raise ValueError(f"run evaluates one point at a time; this search asks for {len(x)}")
        y = jnp.asarray(objective(eval_key, x[0]), x.dtype)
        trial = Trial(x=x[0], y=y, step=jnp.asarray(0), cost=jnp.ones((), x.dtype), ok=jnp.isfinite(y))
        return search.tell(state, trial), (x[0], y, info)

    state, (x, y, info) = jax.lax.scan(step, search.init(init_key, steps), jnp.arange(steps))
    return History(x=x, y=y, best=jax.lax.cummin(jnp.where(jnp.isfinite(y), y, jnp.inf)), info=info, state=state)


@partial(jax.jit, static_argnames=("objective", "steps"))
def _in_turn(search, objective, keys, steps):
    return jax.lax.map(lambda key: run(search, objective, key, steps), keys)


@partial(jax.jit, static_argnames=("objective", "steps"))
def _at_once(search, objective, keys, steps):
    return jax.vmap(lambda key: run(search, objective, key, steps))(keys)


def run_many(search: Search, objective: Objective, keys: Array, steps: int) -> History:
    """One run a key, leaves (len(keys), ...), compiled once: in turn on a CPU, all at once on an accelerator."""
    on_cpu = jax.default_backend() == "cpu"
    return (_in_turn if on_cpu else _at_once)(search, objective, keys, steps)
