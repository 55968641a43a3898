"""Hamiltonian Monte Carlo with Agrawal's adaptive step, and the No-U-Turn sampler, on NumPyro's kernels.

The kernels are scanned over directly: NumPyro's `MCMC` costs twenty times more a call, and is for people.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from numpyro.infer import HMC, NUTS

from bonas.infer.target import Info, Tree, check_counts, flat

# Adaptation of the step size (G-S1): the numbers of the code that Agrawal's reference [37] goes back to.
_FASTER, _SLOWER = 1.02, 0.98
_SLOWNESS = 0.9  # of the moving average of the acceptance
_SHORTEST, _LONGEST = 0.001, 0.25


def hmc(
    key: Array,
    log_density: Callable[[Tree], Array],
    start: Tree,
    *,
    samples: int = 100,
    burn: int = 100,
    thin: int = 1,
    steps: int = 20,
    step_size: float = 0.01,
    target: float = 0.9,
) -> tuple[Tree, Info]:
    """`samples` draws by trajectories of `steps` leapfrog steps: Agrawal, eqs. 3.11 to 3.14, unit masses.

    During burn-in the step grows by 2% while the moving average of the acceptance is above `target` and shrinks by 2%
    otherwise, within [0.001, 0.25] (G-A3). After it the step is fixed, as a valid chain needs.
    """
    check_counts(samples, burn, thin)
    density, vector, unflatten = _default_precision(*flat(log_density, start))
    kernel = HMC(
        potential_fn=lambda z: -density(z),
        step_size=step_size,
        num_steps=steps,
        trajectory_length=None,  # otherwise the step size is silently 2π/steps
        adapt_step_size=False,
        adapt_mass_matrix=False,
        inverse_mass_matrix=jnp.ones_like(vector),
    )
    first = kernel.init(key, 0, vector, (), {})
    average = jnp.asarray(target, vector.dtype)

    def step(carry, i):
        state, average = carry
        state = kernel.sample(state, (), {})
        now = state.adapt_state.step_size
        adapted, average = adapt_step(now, average, state.accept_prob, target)
        now = jnp.where(i < burn, adapted, now).astype(now.dtype)
        state = state._replace(adapt_state=state.adapt_state._replace(step_size=now))
        return (state, average), _record(state)

    total = burn + samples * thin
    (last, _), trace = jax.lax.scan(step, (first, average), jnp.arange(total))
    evaluations = jnp.asarray(total * steps + 1)
    return _keep(trace, unflatten, burn, thin, last.adapt_state.step_size, evaluations)


def adapt_step(step_size: Array, average: Array, accept: Array, target: float) -> tuple[Array, Array]:
    """The next step size and the next moving average of the acceptance; compared is the average before (G-A3, G-S1)."""
    adapted = jnp.clip(step_size * jnp.where(average > target, _FASTER, _SLOWER), _SHORTEST, _LONGEST)
    return adapted, _SLOWNESS * average + (1.0 - _SLOWNESS) * accept


def nuts(
    key: Array,
    log_density: Callable[[Tree], Array],
    start: Tree,
    *,
    samples: int = 256,
    burn: int = 256,
    thin: int = 1,
    target: float = 0.8,
    depth: int = 10,
    dense: bool = False,
) -> tuple[Tree, Info]:
    """`samples` draws by NumPyro's NUTS; step size and (diagonal, or dense) masses are adapted during burn-in.

    target: acceptance probability aimed at; depth: a trajectory has at most 2^depth leapfrog steps.
    """
    check_counts(samples, burn, thin)
    density, vector, unflatten = _default_precision(*flat(log_density, start))
    kernel = NUTS(potential_fn=lambda z: -density(z), target_accept_prob=target, max_tree_depth=depth, dense_mass=dense)
    first = kernel.init(key, burn, vector, (), {})

    def step(state, _):
        state = kernel.sample(state, (), {})
        return state, (*_record(state), state.num_steps)

    last, (*trace, leapfrogs) = jax.lax.scan(step, first, None, length=burn + samples * thin)
    return _keep(tuple(trace), unflatten, burn, thin, last.adapt_state.step_size, leapfrogs.sum() + 1)


def _default_precision(density, vector: Array, unflatten):
    """NumPyro draws momenta in the default precision: so runs the chain, and the density keeps that of the start."""
    default, own = jnp.result_type(float), vector.dtype

    def cast(z):
        return density(z.astype(own)).astype(default)

    return cast, vector.astype(default), lambda z: unflatten(z.astype(own))


def _record(state):
    return state.z, -state.potential_energy, state.accept_prob, state.diverging


def _keep(trace, unflatten, burn, thin, step_size, evaluations) -> tuple[Tree, Info]:
    kept = slice(burn + thin - 1, None, thin)
    chain, values, accept, diverging = (field[kept] for field in trace)
    return jax.vmap(unflatten)(chain), Info(values, accept, diverging, step_size, evaluations)
