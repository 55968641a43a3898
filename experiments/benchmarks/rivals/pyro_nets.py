"""Sample the posterior of benchmarks.hmc by NUTS in Pyro; needs requirements.txt.

    python pyro_nets.py job.json

Runs on one thread in float64. Prints one line of JSON per chain: function values on the grid,
seconds of burn-in and of sampling.
"""

import json
import sys
import warnings
from itertools import pairwise
from pathlib import Path

import pyro
import pyro.distributions as dist
import torch
from contenders import Clock, tell
from pyro.infer.mcmc import NUTS


def network(job: dict, x):
    sizes = (x.shape[1], *job["widths"], 1)
    gamma = dist.Gamma(*(torch.tensor(number) for number in job["weight_prior"]))
    for i, (incoming, units) in enumerate(pairwise(sizes)):
        of_kernel, of_bias = (
            pyro.sample(f"{name}{i}", gamma) for name in ("tau", "tau_bias")
        )
        kernel = pyro.sample(
            f"kernel{i}", dist.Normal(torch.zeros(incoming, units), 1.0).to_event(2)
        )
        bias = pyro.sample(f"bias{i}", dist.Normal(torch.zeros(units), 1.0).to_event(1))
        width = 1.0 if i == 0 else incoming**-0.5
        x = x @ (kernel * (width * of_kernel**-0.5)) + bias * of_bias**-0.5
        x = torch.tanh(x) if i < len(job["widths"]) else x
    return x[:, 0]


def model(job: dict, x, y):
    outputs = network(job, x)
    noise = pyro.sample(
        "noise", dist.Gamma(*(torch.tensor(number) for number in job["noise_prior"]))
    )
    with pyro.plate("points", len(x)):
        pyro.sample("y", dist.Normal(outputs, noise**-0.5), obs=y)


def chain(job: dict, x, y, grid) -> None:
    kernel, values = NUTS(model, jit_compile=True, ignore_jit_warnings=True), []
    kernel.setup(job["burn"], job, x, y)
    params = kernel.initial_params
    params = kernel.sample(params)  # traces the model
    clock = Clock()
    for _ in range(job["burn"] - 1):
        params = kernel.sample(params)
    burnt = clock.read()
    kernel.end_warmup()
    spent = {"seconds": 0.0, "cpu_seconds": 0.0}
    for _ in range(job["samples"]):
        clock = Clock()
        params = kernel.sample(params)
        spent = {name: spent[name] + seconds for name, seconds in clock.read().items()}
        constrained = {
            name: kernel.transforms[name].inv(z) if name in kernel.transforms else z
            for name, z in params.items()
        }
        with torch.no_grad():
            values.append(
                pyro.poutine.condition(network, data=constrained)(job, grid).tolist()
            )
    kernel.cleanup()
    tell(
        {"values": values, "burnt": burnt, "spent": spent, "version": pyro.__version__}
    )


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    x, y, grid = (torch.tensor(job[name]) for name in ("x", "y", "grid"))
    for i in range(job["chains"]):
        pyro.set_rng_seed(job["seed"] * 1000 + i)
        chain(job, x, y, grid)


if __name__ == "__main__":
    main()
