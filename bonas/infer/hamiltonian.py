"""Hamiltonian Monte Carlo with Agrawal's adaptive step size, and the No-U-Turn sampler.

A chain may draw other unknowns from their conditional distributions between trajectories (Agrawal,
Section 5.1); `hmc` is the chain without such draws. The code scans over NumPyro's kernels, because
a call of its `MCMC` class takes twenty times as long.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray
from numpyro.infer.hmc import HMCState
from numpyro.infer.hmc import hmc as numpyro_hmc
from numpyro.infer.util import ParamInfo

from bonas.infer.posterior import Info, Tree, flat
from bonas.static_settings import check_chain

# The values of `method` in `hmc_within_gibbs`.
HAMILTONIAN_METHODS = ("hmc", "nuts")

# Adaptation of the step size as in the code of Ranzato et al. 2010, which Agrawal cites.
_INCREASE = 1.02
_DECREASE = 0.98
_AVERAGE_DECAY = 0.9
_MIN_STEP_SIZE = 0.001
_MAX_STEP_SIZE = 0.25

# A function (key, position, gibbs_values) -> (position, gibbs_values).
GibbsDraw = Callable[[PRNGKeyArray, Tree, Tree], tuple[Tree, Tree]]


class Chain(NamedTuple):
    """The state of a Markov chain, from which the next run continues."""

    position: Tree  # the unknowns updated by Hamiltonian trajectories
    gibbs_values: Tree  # the unknowns updated by Gibbs draws, or ()
    step_size: Float[Array, ""]  # step size of the leapfrog integrator


class Trace(NamedTuple):
    """The samples of a chain."""

    position: Tree  # (s, ...)
    gibbs_values: Tree  # (s, ...)


def hmc(
    key: PRNGKeyArray,
    log_density: Callable[[Tree], Float[Array, ""]],
    start: Tree,
    *,
    samples: int = 100,
    burn: int = 100,
    thin: int = 1,
    steps: int = 20,
    step_size: float = 0.01,
    target: float = 0.9,
) -> tuple[Tree, Info]:
    """Draw samples by Hamiltonian Monte Carlo (Agrawal, eqs. 3.11 to 3.14).

    The mass matrix is the identity. During burn-in the step size grows by 2% per trajectory while
    the moving average of the acceptance probability is above `target`, and shrinks by 2% otherwise,
    within [0.001, 0.25]. After burn-in it is fixed, which a valid chain requires.

    Args:
        key: Random key.
        log_density: Function of a pytree like `start`.
        start: The first position.
        samples: Number of samples to keep.
        burn: Number of trajectories before the first sample.
        thin: Number of trajectories per sample.
        steps: Number of leapfrog steps per trajectory.
        step_size: The first size of a leapfrog step.
        target: Acceptance probability to aim at.

    Returns:
        The samples, with a leading axis, and statistics of the run.
    """
    trace, _, info = hmc_within_gibbs(
        key,
        lambda position, _: log_density(position),
        None,
        Chain(start, (), jnp.asarray(step_size)),
        samples=samples,
        burn=burn,
        thin=thin,
        method="hmc",
        steps=steps,
        target=target,
    )
    return trace.position, info


def nuts(
    key: PRNGKeyArray,
    log_density: Callable[[Tree], Float[Array, ""]],
    start: Tree,
    *,
    samples: int = 256,
    burn: int = 256,
    thin: int = 1,
    target: float = 0.8,
    depth: int = 10,
    dense: bool = False,
) -> tuple[Tree, Info]:
    """Draw samples by the No-U-Turn sampler of NumPyro.

    Burn-in adapts the step size and the mass matrix.

    Args:
        key: Random key.
        log_density: Function of a pytree like `start`.
        start: The first position.
        samples: Number of samples to keep.
        burn: Number of trajectories before the first sample.
        thin: Number of trajectories per sample.
        target: Acceptance probability to aim at.
        depth: Maximum tree depth; a trajectory has at most 2^depth leapfrog steps.
        dense: Whether to adapt a dense mass matrix instead of a diagonal one.

    Returns:
        The samples, with a leading axis, and statistics of the run.
    """
    check_chain(samples, burn, thin)
    flattened = _flatten(lambda position, _: log_density(position), start)
    init, move = numpyro_hmc(flattened.potential(()), algo="NUTS")
    first = init(
        flattened.start,
        burn,
        target_accept_prob=target,
        max_tree_depth=depth,
        dense_mass=dense,
        rng_key=jax.random.split(key)[0],
    )

    def step(state: HMCState, _: Any) -> tuple[HMCState, tuple[Array, ...]]:
        state = move(state)
        record = (state.z, -state.potential_energy, state.accept_prob, state.diverging)
        return state, (*record, state.num_steps)

    last, (*record, leapfrogs) = jax.lax.scan(
        step, first, None, length=burn + samples * thin
    )
    z, values, accept, diverging = (field[burn + thin - 1 :: thin] for field in record)
    step_size = last.adapt_state.step_size
    info = Info(values, accept, diverging, step_size, leapfrogs.sum() + 1)
    return jax.vmap(flattened.position)(z), info


def hmc_within_gibbs(
    key: PRNGKeyArray,
    log_density: Callable[[Tree, Tree], Float[Array, ""]],
    gibbs_draw: GibbsDraw | None,
    chain: Chain,
    *,
    samples: int = 100,
    burn: int | Array = 100,
    thin: int = 1,
    method: str = "hmc",
    steps: int = 20,
    target: float = 0.9,
    depth: int = 10,
) -> tuple[Trace, Chain, Info]:
    """Continue a chain of Hamiltonian trajectories, each preceded by a Gibbs draw.

    Args:
        key: Random key.
        log_density: Function of (position, gibbs_values), up to a term that does not depend on the
            position.
        gibbs_draw: Function (key, position, gibbs_values) -> (position, gibbs_values) that draws
            `gibbs_values` given the position. It may also change the position if that is scaled by
            the drawn values. None for no draws.
        chain: The state from which to continue.
        samples: Number of samples to keep.
        burn: Number of trajectories before the first sample; it may be traced for "hmc", so that a
            chain that has converged can skip burn-in.
        thin: Number of trajectories per sample.
        method: "hmc", trajectories of `steps` leapfrog steps whose size burn-in adapts as in `hmc`,
            or "nuts", whose step size and masses NumPyro adapts.
        steps: Leapfrog steps per trajectory of "hmc".
        target: Acceptance probability to aim at.
        depth: Maximum tree depth of "nuts"; a trajectory has at most 2^depth leapfrog steps.

    Returns:
        The samples, the last state of the chain, and statistics of the run.
    """
    _check(method, samples, burn, thin)
    flattened = _flatten(log_density, chain.position)
    start_key, gibbs_key = jax.random.split(key)
    init, move = numpyro_hmc(potential_fn_gen=flattened.potential, algo=method.upper())
    z = flattened.start
    # A Gibbs draw changes the energy first; computing the energy here would compile it twice.
    without_energy = ParamInfo(z, jnp.zeros((), z.dtype), jnp.zeros_like(z))
    first = init(
        z if gibbs_draw is None else without_energy,
        burn if method == "nuts" else 0,
        chain.step_size,
        **_settings(method, z, steps=steps, target=target, depth=depth),
        model_args=(chain.gibbs_values,),
        rng_key=start_key,
    )

    def step(carry: _Carry) -> _Carry:
        state, gibbs_values, average, leapfrogs = carry
        if gibbs_draw is not None:
            draw_key = jax.random.fold_in(gibbs_key, state.i)
            position, gibbs_values = gibbs_draw(
                draw_key, flattened.position(state.z), gibbs_values
            )
            state = _moved_to(state, flattened.potential(gibbs_values), position)
        burned_in = state.i >= burn
        state = move(state, (gibbs_values,), {})
        if method == "hmc":
            state, average = _adapt(state, average, burned_in, target)
        return _Carry(state, gibbs_values, average, leapfrogs + state.num_steps)

    def keep(carry: _Carry, i: Array) -> tuple[_Carry, tuple[Any, ...]]:
        # burn-in is part of the loop of the first sample, so that `step` is compiled once
        moves = jnp.where(i == 0, burn + thin, thin)
        carry = jax.lax.fori_loop(0, moves, lambda _, carry: step(carry), carry)
        state = carry.state
        sample = Trace(flattened.position(state.z), carry.gibbs_values)
        return carry, (
            sample,
            -state.potential_energy,
            state.accept_prob,
            state.diverging,
        )

    average = jnp.asarray(target, z.dtype)
    carry = _Carry(first, chain.gibbs_values, average, jnp.zeros_like(first.num_steps))
    last, (trace, values, accept, diverging) = jax.lax.scan(
        keep, carry, jnp.arange(samples)
    )
    step_size = last.state.adapt_state.step_size
    # one more evaluation at the start, or after every Gibbs draw
    evaluations = last.leapfrogs + (1 if gibbs_draw is None else burn + samples * thin)
    return (
        trace,
        Chain(flattened.position(last.state.z), last.gibbs_values, step_size),
        Info(values, accept, diverging, step_size, evaluations),
    )


class _Flattened(NamedTuple):
    """A density of vectors in the default precision, because NumPyro draws momenta in it."""

    # gibbs_values -> (z (p,) -> energy ())
    potential: Callable[[Tree], Callable[[Array], Array]]
    # z (p,) -> position, in the precision of the chain
    position: Callable[[Array], Tree]
    start: Float[Array, " p"]


class _Carry(NamedTuple):
    state: HMCState
    gibbs_values: Tree
    average: Float[Array, ""]  # moving average of the acceptance probability
    leapfrogs: Array  # () int: leapfrog steps made


def _flatten(log_density: Callable[[Tree, Tree], Array], position: Tree) -> _Flattened:
    _, vector, unflatten = flat(lambda position: jnp.zeros(()), position)
    default = jnp.result_type(float)

    def potential(gibbs_values: Tree) -> Callable[[Array], Array]:
        density, _, _ = flat(
            lambda position: log_density(position, gibbs_values), position
        )
        return lambda z: -density(z.astype(vector.dtype)).astype(default)

    return _Flattened(
        potential, lambda z: unflatten(z.astype(vector.dtype)), vector.astype(default)
    )


def _moved_to(
    state: HMCState, potential: Callable[[Array], Array], position: Tree
) -> HMCState:
    leaves = [jnp.ravel(leaf) for leaf in jax.tree.leaves(position)]
    z = jnp.concatenate(leaves).astype(jnp.result_type(float))
    energy, gradient = jax.value_and_grad(potential)(z)
    return state._replace(z=z, potential_energy=energy, z_grad=gradient)


def _adapt(
    state: HMCState, average: Array, burned_in: Array, target: float
) -> tuple[HMCState, Array]:
    """Adapt the step size during burn-in, by the average acceptance before this trajectory."""
    now = state.adapt_state.step_size
    factor = jnp.where(average > target, _INCREASE, _DECREASE)
    adapted = jnp.clip(now * factor, _MIN_STEP_SIZE, _MAX_STEP_SIZE)
    average = _AVERAGE_DECAY * average + (1.0 - _AVERAGE_DECAY) * state.accept_prob
    now = jnp.where(burned_in, now, adapted).astype(now.dtype)
    return state._replace(
        adapt_state=state.adapt_state._replace(step_size=now)
    ), average


def _settings(
    method: str, z: Array, *, steps: int, target: float, depth: int
) -> dict[str, Any]:
    if method == "nuts":
        return {"target_accept_prob": target, "max_tree_depth": depth}
    return {
        "num_steps": steps,
        # otherwise NumPyro replaces the step size by 2π/steps
        "trajectory_length": None,
        "adapt_step_size": False,
        "adapt_mass_matrix": False,
        "inverse_mass_matrix": jnp.ones_like(z),
    }


def _check(method: str, samples: int, burn: int | Array, thin: int) -> None:
    if method not in HAMILTONIAN_METHODS:
        raise ValueError(
            f"method must be one of {', '.join(HAMILTONIAN_METHODS)}; got {method!r}"
        )
    check_chain(samples, burn if isinstance(burn, int) else 0, thin)
    if method == "nuts" and not isinstance(burn, int):
        raise ValueError(
            "method nuts needs burn as a Python integer; got a traced value"
        )
