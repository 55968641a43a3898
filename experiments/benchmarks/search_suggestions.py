"""Time single suggestions of bonas."""

import jax
import jax.numpy as jnp
import numpy as np

import bonas
from bonas.problems import functions
from bonas.search import Observation, Search
from experiments.benchmarks.rivals.contenders import Clock


def suggestions(config, args):
    """Time one suggestion of bonas, by default and averaged over hyperparameter samples."""
    space = functions.hartmann6.space
    sampled = bonas.surrogates.gp(
        bonas.gp.matern52(), infer="slice", samples=config.samples
    )
    slices = bonas.bayes(space, surrogate=sampled, acquisition=bonas.log_ei)
    for name, search, sizes in (
        ("bonas", bonas.bayes(space), config.sizes),
        ("bonas, slice", slices, config.slice_sizes),
    ):
        for n in sizes:
            yield {"contender": name, "n": n, **suggestion(config, search, n)}


def suggestion(config, search: Search, n: int) -> dict:
    """Return median seconds of an ask around n observations, each warm-started from the last."""
    ask, tell, problem = jax.jit(search.ask), jax.jit(search.tell), functions.hartmann6
    # a study's capacity, which doubles from 64
    capacity = max(64, 1 << (n + config.suggestions - 1).bit_length())

    def observe(state, u):
        y = problem.objective(jax.random.key(0), u)
        return tell(
            state,
            Observation(
                x=u, y=y, step=jnp.asarray(0), cost=jnp.ones(()), ok=jnp.asarray(True)
            ),
        )

    state, clocks = search.init(jax.random.key(0), capacity), []
    for u in np.random.default_rng(0).random((max(config.sizes), 6))[
        : n - config.suggestions // 2
    ]:
        state = observe(state, jnp.asarray(u))
    compiling = Clock()
    jax.block_until_ready(ask(jax.random.key(0), state))
    first_call = compiling.read()["seconds"]
    for i in range(config.suggestions):
        clock = Clock()
        x, state, _ = jax.block_until_ready(ask(jax.random.key(i), state))
        clocks.append(clock.read())
        state = observe(state, x[0])
    return {
        name: float(np.median([c[name] for c in clocks[1:]])) for name in clocks[0]
    } | {"first_call_seconds": first_call}
