"""How many effective samples of functions per second, compared with NumPyro and Pyro?

The model is Agrawal's network of three layers of 50 units, given 20 noisy points of sin 7x + cos
17x: 5,251 weights and 9 precisions. All libraries have the same priors and data, float64, one
thread of one core, and the same XLA flags. Effective samples are counted for function values on a
grid, by one estimator. Posterior means must agree; the difference in Monte Carlo standard errors is
printed. Compiling and burn-in are not counted, and both are shown.

bonas samples the hidden layers and the log precisions, with the output layer integrated out. The
others sample every unknown, as for any model; NumPyro also with trajectories as short as ours. A
warm search step with that network in two dimensions is timed too.

Pyro has its own environment; without it the others run:

    python3 -m venv rivals
    rivals/bin/pip install -r experiments/benchmarks/rivals/requirements.txt
    python -m experiments.benchmarks.hmc --rivals rivals/bin/python

Most of the half hour is Pyro's. Every result is saved, and a second call measures the missing ones.
"""

import json
import subprocess
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from rich.progress import track

import bonas
from bonas import infer
from bonas.nets import bnn_hmc
from bonas.xla_options import for_long_arrays
from experiments import common
from experiments.agrawal.problem import Problem, grid, network, observe
from experiments.benchmarks.hmc_report import OURS, show, summarize
from experiments.benchmarks.hmc_search_step import search_step
from experiments.benchmarks.rivals import numpyro_nets
from experiments.benchmarks.rivals.contenders import Clock

PROBLEM = Problem(grid=41)  # inputs in [-1, 1], 0.05 apart


@dataclass(frozen=True)
class Length:
    """How long a method runs; slower methods run shorter."""

    burn: int
    samples: int  # per chain
    chains: int = 4


@dataclass(frozen=True)
class Config:
    problem: Problem = PROBLEM  # the posterior of agrawal.posterior
    data_seed: int = 0
    # Leapfrog steps per trajectory of bonas: stated for the code that Agrawal's is based on
    steps: int = 20
    target: float = 0.8  # acceptance rate, as in NumPyro
    depth: int = 6  # tree depth of NUTS in bonas: enough for the integrated density
    bonas: Length = Length(burn=500, samples=1000)  # burn-in is 1500: see by_bonas
    bonas_nuts: Length = Length(burn=200, samples=250)
    numpyro: Length = Length(burn=300, samples=150)
    short: Length = Length(burn=500, samples=500)
    pyro: Length = Length(burn=60, samples=50, chains=2)
    # networks per search step, the `samples` of surrogates.hmc_network
    draws: int = 100
    observations: int = 15  # evaluations before the first timed step
    suggestions: int = 10
    seeds: int = 1  # runs of every contender; medians are reported


SHORT = Length(burn=5, samples=5, chains=2)
SMOKE = Config(
    Problem(widths=(4,), grid=5),
    steps=4,
    depth=3,
    bonas=SHORT,
    bonas_nuts=SHORT,
    numpyro=SHORT,
    short=SHORT,
    pyro=SHORT,
    draws=10,
    observations=3,
    suggestions=2,
)
STUCK = 1e6  # replaces the R-hat of chains that never moved, which is NaN
# By name: the sampler of rivals/numpyro_nets.py
NUMPYRO = {
    "NumPyro NUTS": "nuts",
    "NumPyro HMC": "hmc",
    "NumPyro NUTS, depth 6": "short nuts",
    "NumPyro HMC, 20 steps": "short hmc",
}
CONTENDERS = (OURS, "bonas NUTS", *NUMPYRO, "Pyro NUTS")
# NumPyro's default HMC trajectories take over seven minutes, so it runs only with --only.
ENDLESS = "NumPyro HMC"
USUAL = (*(name for name in CONTENDERS if name != ENDLESS), "search step")
QUICK = (OURS, "NumPyro NUTS, depth 6", "search step")  # with --smoke


def main() -> None:
    args, config = arguments()
    if not args.smoke:
        common.pin_to_core(args.core)
    bonas.configure()
    args.out.mkdir(parents=True, exist_ok=True)
    file, lines = args.out / "benchmarks_hmc.json", args.out / "benchmarks_hmc.jsonl"
    rows = [
        row
        for row in common.read_lines(lines)
        if row["config"] == config_as_json(replace(config, seeds=1))
    ]
    jobs = [
        (name, seed)
        for seed in range(config.seeds)
        for name in (*CONTENDERS, "search step")
    ]
    done = {(row["name"], row["seed"]) for row in rows}
    missing = [
        each
        for each in jobs
        if each not in done and (each[0] != "Pyro NUTS" or args.rivals)
    ]
    chosen = args.only or (QUICK if args.smoke else USUAL)
    missing = [each for each in missing if each[0] in chosen]
    for name, seed in track(missing, description="contenders"):
        print(f"... {name}, seed {seed}", flush=True)
        row = {
            "name": name,
            "seed": seed,
            "config": config_as_json(replace(config, seeds=1)),
            **MEASURE[name](config, seed, args),
        }
        rows.append(row)
        common.append_line(lines, row)
    report = {
        **common.provenance(),
        "config": config_as_json(config),
        **summarize([row for row in rows if row["seed"] < config.seeds]),
    }
    common.write_json(file, report)
    show(report)
    print(f"\nwritten to {file}")


def arguments():
    parser = common.benchmark_parser(
        __doc__,
        "benchmarks_hmc",
        smoke="tiny sizes, as a quick test",
        seeds="runs of every contender; medians are reported",
    )
    parser.add_argument(
        "--rivals",
        help="Python of the environment with Pyro; without it, all others run",
    )
    names = (*CONTENDERS, "search step")
    text = f"some of the contenders (default: all but {ENDLESS})"
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=text)
    return common.parse(parser, Config(), SMOKE)


def config_as_json(config: Config) -> dict:
    return json.loads(json.dumps(asdict(config)))


# Contenders: each returns the row of `measured`.


def by_bonas(config: Config, seed: int, args) -> dict:
    """Run burn-in, whose samples are discarded, and sampling with the same program."""
    length, bnn, data = (
        config.bonas,
        network(config.problem),
        observe(config.problem, config.data_seed),
    )

    def run(key, chains, burn):
        moves = {
            "precisions": "joint",
            "output": "integrated",
            "steps": config.steps,
            "target": config.target,
        }
        draws, chains, info = bnn_hmc.sample(
            key, bnn, data, chains, samples=length.samples, burn=burn, **moves
        )
        return on_grid(config, bnn, draws), chains, info.evaluations

    start_key, burn_key, key = jax.random.split(jax.random.key(seed), 3)
    chains = bnn_hmc.init_chains(start_key, bnn, length.chains)
    program, compiling = compiled(run, key, chains, jnp.asarray(0))
    clock = Clock()
    _, chains, _ = jax.block_until_ready(
        program(burn_key, chains, jnp.asarray(length.burn))
    )
    burnt, clock = clock.read(), Clock()
    values, _, evaluations = jax.block_until_ready(program(key, chains, jnp.asarray(0)))
    return summarize_samples(
        values, [burnt], [clock.read()], compiling, int(evaluations.sum())
    )


def by_bonas_nuts(config: Config, seed: int, args) -> dict:
    """Run NUTS; burn-in's share of the time is its share of the gradients."""
    length, bnn, data = (
        config.bonas_nuts,
        network(config.problem),
        observe(config.problem, config.data_seed),
    )

    def run(key, chains, samples):
        moves = {
            "precisions": "joint",
            "output": "integrated",
            "method": "nuts",
            "target": config.target,
        }
        draws, _, info = bnn_hmc.sample(
            key,
            bnn,
            data,
            chains,
            samples=samples,
            burn=length.burn,
            depth=config.depth,
            **moves,
        )
        return on_grid(config, bnn, draws), info.evaluations

    start_key, key = jax.random.split(jax.random.key(seed))
    chains = bnn_hmc.init_chains(start_key, bnn, length.chains)
    program, compiling = compiled(partial(run, samples=length.samples), key, chains)
    clock = Clock()
    values, evaluations = jax.block_until_ready(program(key, chains))
    spent = clock.read()
    _, before = compiled(partial(run, samples=1), key, chains)[0](key, chains)
    share = int(before.sum()) / int(evaluations.sum())
    burnt, sampling = (
        {name: part * seconds for name, seconds in spent.items()}
        for part in (share, 1.0 - share)
    )
    return summarize_samples(
        values,
        [burnt],
        [sampling],
        compiling,
        int(evaluations.sum()) - int(before.sum()),
    )


def on_grid(config: Config, bnn, draws):
    return jax.vmap(
        lambda weights: bnn_hmc.outputs(bnn, weights, grid(config.problem))[:, :, 0]
    )(draws.weights)


def compiled(function, *arguments):
    clock = Clock()
    program = (
        jax.jit(function, compiler_options=for_long_arrays())
        .lower(*arguments)
        .compile()
    )
    return program, clock.read()["seconds"]


def job(config: Config, length: Length, seed: int) -> dict:
    """Return the posterior as plain arrays and numbers for the other libraries."""
    data, problem = observe(config.problem, config.data_seed), config.problem
    arrays = {"x": data.x, "y": data.y[:, 0], "grid": grid(problem)}
    posterior = {
        "widths": problem.widths,
        "weight_prior": problem.weight_prior,
        "noise_prior": problem.noise_prior,
    }
    return {
        **{name: np.asarray(array).tolist() for name, array in arrays.items()},
        **posterior,
        **asdict(length),
        "seed": seed,
    }


def by_numpyro(method: str):
    def measure(config: Config, seed: int, args) -> dict:
        clock = Clock()
        task = job(
            config, config.short if method.startswith("short") else config.numpyro, seed
        )
        values, spent, steps = numpyro_nets.sample(
            task, method, Clock, for_long_arrays()
        )
        burnt, sampling = zip(*spent, strict=True)
        rest = clock.read()["seconds"] - sum(
            each["seconds"] for each in (*burnt, *sampling)
        )
        return summarize_samples(values, burnt, sampling, rest, steps)

    return measure


def by_pyro(config: Config, seed: int, args) -> dict:
    file = args.out / "job.json"
    file.write_text(json.dumps(job(config, config.pyro, seed)), encoding="utf-8")
    command = [
        args.rivals,
        str(Path(__file__).parent / "rivals" / "pyro_nets.py"),
        str(file),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        chains = [
            json.loads(line)
            for line in track(
                process.stdout, total=config.pyro.chains, description="Pyro's chains"
            )
        ]
        if process.wait() or len(chains) != config.pyro.chains:
            raise SystemExit(
                f"{' '.join(command)} ended with code {process.returncode}"
            )
    finally:
        process.terminate()
        file.unlink()
    burnt, spent = ([chain[name] for chain in chains] for name in ("burnt", "spent"))
    row = summarize_samples(
        [chain["values"] for chain in chains], burnt, spent, 0.0, None
    )
    return {**row, "version": chains[0]["version"]}


def summarize_samples(
    values, burnt, spent, compiling: float, gradients: int | None
) -> dict:
    """Summarize function values (chains, samples, grid) and the time they took."""
    values = np.asarray(values, float)
    ess = np.clip(
        np.nan_to_num(infer.effective_sample_size(values)), 1.0, values[..., 0].size
    )
    total = {name: sum(each[name] for each in spent) for name in spent[0]}
    return {
        "mean": values.mean(axis=(0, 1)).tolist(),
        "std": values.std(axis=(0, 1)).tolist(),
        "effective": ess.tolist(),
        "largest_r_hat": float(
            np.nan_to_num(infer.r_hat(values), nan=STUCK, posinf=STUCK).max()
        ),
        "draws": values[..., 0].size,
        "gradients": gradients,
        **total,
        "burn_in_cpu_seconds": sum(each["cpu_seconds"] for each in burnt),
        "compile_seconds": compiling,
    }


MEASURE = {
    OURS: by_bonas,
    "bonas NUTS": by_bonas_nuts,
    **{name: by_numpyro(method) for name, method in NUMPYRO.items()},
    "Pyro NUTS": by_pyro,
    "search step": search_step,
}


if __name__ == "__main__":
    main()
