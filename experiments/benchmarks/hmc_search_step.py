"""Time a search step with a Bayesian network as surrogate."""

import jax
import jax.numpy as jnp
import numpy as np

import bonas
from bonas.problems import functions
from bonas.search import Observation
from bonas.xla_options import for_long_arrays
from experiments.benchmarks.rivals.contenders import Clock


def search_step(config, seed: int, args) -> dict:
    """Return median seconds of an ask with its refit, each warm-started from the last."""
    problem = functions.six_hump_camel
    surrogate = bonas.surrogates.hmc_network(
        config.problem.widths, samples=config.draws
    )
    search = bonas.bayes(problem.space, surrogate=surrogate)
    ask, tell = (
        jax.jit(each, compiler_options=for_long_arrays())
        for each in (search.ask, search.tell)
    )

    def observe_point(state, u):
        y = problem.objective(jax.random.key(0), u)
        return tell(
            state,
            Observation(
                x=u, y=y, step=jnp.asarray(0), cost=jnp.ones(()), ok=jnp.asarray(True)
            ),
        )

    state = search.init(jax.random.key(seed), 64)  # the initial capacity of a study
    clocks = []
    for u in np.random.default_rng(seed).random((config.observations, 2)):
        state = observe_point(state, jnp.asarray(u))
    clock = Clock()
    for i in range(config.suggestions + 1):
        x, state, _ = jax.block_until_ready(ask(jax.random.key(i), state))
        clocks.append(clock.read())
        state = jax.block_until_ready(observe_point(state, x[0]))
        clock = Clock()
    warm = {
        name: float(np.median([each[name] for each in clocks[1:]]))
        for name in clocks[0]
    }
    return {**warm, "compile_seconds": clocks[0]["seconds"]}
