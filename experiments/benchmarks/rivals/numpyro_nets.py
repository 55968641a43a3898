"""The posterior of benchmarks.hmc as one would write it in NumPyro, and NumPyro's samplers on it.

All unknowns are sampled: precisions, and weights in units of their prior scale, which suits these
samplers better than unscaled weights. Kernels run in a compiled scan, which is faster than
`MCMC.run`.
"""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import HMC, NUTS

METHODS = {
    # target 0.8, at most 1023 leapfrog steps, diagonal masses
    "nuts": lambda model: NUTS(model),
    "hmc": lambda model: HMC(model),  # trajectories of length 2π, the same adaptation
    # with short trajectories, as in bonas, which suit this posterior better than the defaults
    "short nuts": lambda model: NUTS(model, max_tree_depth=6),
    "short hmc": lambda model: HMC(model, num_steps=20, trajectory_length=None),
}


def model(job, x, y):
    outputs = network(job, x)
    noise = numpyro.sample("noise", dist.Gamma(*job["noise_prior"]))
    numpyro.sample("y", dist.Normal(outputs, noise**-0.5), obs=y)


def network(job, x):
    sizes = (x.shape[1], *job["widths"], 1)
    for i, (incoming, units) in enumerate(pairwise(sizes)):
        of_kernel, of_bias = (
            numpyro.sample(f"{name}{i}", dist.Gamma(*job["weight_prior"]))
            for name in ("tau", "tau_bias")
        )
        kernel = numpyro.sample(
            f"kernel{i}", dist.Normal(jnp.zeros((incoming, units)), 1.0).to_event(2)
        )
        bias = numpyro.sample(
            f"bias{i}", dist.Normal(jnp.zeros(units), 1.0).to_event(1)
        )
        width = 1.0 if i == 0 else incoming**-0.5
        x = x @ (kernel * (width * of_kernel**-0.5)) + (bias * of_bias**-0.5)[None, :]
        x = jnp.tanh(x) if i < len(job["widths"]) else x
    return x[:, 0]


def sample(job: dict, method: str, clock, options: dict):
    """Return function values (chains, samples, grid), times and numbers of gradients."""
    x, y, grid = (jnp.asarray(job[name]) for name in ("x", "y", "grid"))
    kernel = METHODS[method](model)
    arguments = (job, x, y)

    def states(state, count, collect):
        def one(state, _):
            state = kernel.sample(state, arguments, {})
            return state, (collect(state), state.num_steps)

        return jax.lax.scan(one, state, None, length=count)

    def on_grid(state):
        values = kernel.postprocess_fn(arguments, {})(state.z)
        return numpyro.handlers.substitute(network, data=values)(job, grid)

    def burn(state):
        return states(state, job["burn"], lambda state: ())[0]

    def draw(state):
        return states(state, job["samples"], on_grid)

    programs, values, spent, steps = None, [], [], 0
    for key in jax.random.split(jax.random.key(job["seed"]), job["chains"]):
        state = kernel.init(key, job["burn"], None, arguments, {})
        if programs is None:
            programs = [
                jax.jit(each, compiler_options=options).lower(state).compile()
                for each in (burn, draw)
            ]
        started = clock()
        state = jax.block_until_ready(programs[0](state))
        burnt = started.read()
        started = clock()
        _, (found, leaps) = jax.block_until_ready(programs[1](state))
        spent.append((burnt, started.read()))
        values.append(found)
        steps += int(leaps.sum())
    return jnp.stack(values), spent, steps
