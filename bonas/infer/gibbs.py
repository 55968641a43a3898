"""Hamiltonian trajectories for some unknowns and draws from their conditionals for the others, in turn (Agrawal, Section 5.1).

The sampler is NumPyro's, with the density that the last draws left; `bonas.infer.hmc` is the case where nothing is drawn.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from numpyro.infer.hmc import hmc as numpyro_hmc
from numpyro.infer.util import ParamInfo

from bonas.infer.hamiltonian import adapt_step
from bonas.infer.target import Info, Tree, check_counts, flat

METHODS = ("hmc", "nuts")

Between = Callable[[Array, Tree, Tree], tuple[Tree, Tree]]


class Chain(NamedTuple):
    """Where a chain is: what the next run goes on from."""

    position: Tree  # moved by trajectories
    aside: Tree  # drawn between them; () where there is nothing to draw
    step_size: Array  # () of the leapfrog


class Trace(NamedTuple):
    """The states kept."""

    position: Tree  # (s, ...)
    aside: Tree  # (s, ...)


def hmc_within_gibbs(
    key: Array,
    log_density: Callable[[Tree, Tree], Array],
    between: Between | None,
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
    """`samples` states of a chain that goes on from `chain`, and where it is in the end.

    log_density: (position, aside) -> (), up to what does not depend on the position.
    between: (key, position, aside) -> (position, aside) before each trajectory: a draw of `aside` given the rest. It may
        move the position too where that is written in units of what is drawn. None: nothing is drawn.
    burn: may be traced for "hmc", so that a chain that has settled is not made to do so again.
    method: "hmc", trajectories of `steps` leapfrog steps with the adaptive step size of G-A3, which burn-in alone changes;
        or "nuts", trajectories of at most 2^depth, whose step size and masses NumPyro adapts.
    """
    _check(method, samples, burn, thin)
    position, aside, step_size = chain
    default = jnp.result_type(float)  # NumPyro draws momenta in it
    own = jnp.result_type(*jax.tree.leaves(position))
    _, vector, unflatten = flat(lambda position: jnp.zeros(()), position)

    def potential(aside):
        density, _, _ = flat(lambda position: log_density(position, aside), position)
        return lambda z: -density(z.astype(own)).astype(default)

    def place(z):
        return unflatten(z.astype(own))

    def vector_of(position):
        return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(position)]).astype(default)

    begin, move = numpyro_hmc(potential_fn_gen=potential, algo=method.upper())
    start_key, between_key = jax.random.split(key)
    z = vector.astype(default)
    # where something is drawn first, the energy there is computed after: not twice, since that is compiled twice
    place_only = ParamInfo(z, jnp.zeros((), default), jnp.zeros_like(z))
    first = begin(
        z if between is None else place_only,
        burn if method == "nuts" else 0,
        step_size,
        **_settings(method, steps, depth, target, vector),
        model_args=(aside,),
        rng_key=start_key,
    )

    def step(carry):
        state, aside, average, spent = carry
        if between is not None:
            position, aside = between(jax.random.fold_in(between_key, state.i), place(state.z), aside)
            z = vector_of(position)
            energy, gradient = jax.value_and_grad(potential(aside))(z)
            state = state._replace(z=z, potential_energy=energy, z_grad=gradient)
        settled = state.i >= burn
        state = move(state, (aside,), {})
        if method == "hmc":
            now = state.adapt_state.step_size
            adapted, average = adapt_step(now, average, state.accept_prob, target)
            now = jnp.where(settled, now, adapted).astype(now.dtype)
            state = state._replace(adapt_state=state.adapt_state._replace(step_size=now))
        return state, aside, average, spent + state.num_steps

    def keep(carry, i):
        # burn-in is part of the way to the first state, so that one step is compiled and not two
        moves = jnp.where(i == 0, burn + thin, thin)
        carry = jax.lax.fori_loop(0, moves, lambda _, carry: step(carry), carry)
        state, aside = carry[:2]
        return carry, (place(state.z), aside, -state.potential_energy, state.accept_prob, state.diverging)

    carry = (first, aside, jnp.asarray(target, default), jnp.zeros_like(first.num_steps))
    (last, aside, _, spent), (positions, asides, values, accept, diverging) = jax.lax.scan(keep, carry, jnp.arange(samples))
    # and one more where the chain begins, or wherever a draw has changed the density
    evaluations = spent + (1 if between is None else burn + samples * thin)
    now = last.adapt_state.step_size
    return Trace(positions, asides), Chain(place(last.z), aside, now), Info(values, accept, diverging, now, evaluations)


def _settings(method: str, steps: int, depth: int, target: float, vector: Array) -> dict[str, Any]:
    if method == "nuts":
        return {"target_accept_prob": target, "max_tree_depth": depth}
    return {
        "num_steps": steps,
        "trajectory_length": None,  # otherwise the step size is silently 2π/steps
        "adapt_step_size": False,
        "adapt_mass_matrix": False,
        "inverse_mass_matrix": jnp.ones(vector.shape),
    }


def _check(method: str, samples: int, burn: int | Array, thin: int) -> None:
    if method not in METHODS:
        raise ValueError(f"method is one of {', '.join(METHODS)}; got {method!r}")
    if isinstance(burn, int):
        check_counts(samples, burn, thin)
    elif method == "nuts":
        raise ValueError("nuts adapts by a schedule, so its burn-in is a number known before the run; got a traced one")
    else:
        check_counts(samples, 0, thin)
