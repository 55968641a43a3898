"""How many effective samples of functions a second? bonas against NumPyro and Pyro on the posterior of a Bayesian network.

The network is Agrawal's of three layers of 50 units, given 20 noisy points of sin 7x + cos 17x (G-E2): 5,251 weights and 9
precisions. Every contender has the same priors and data, float64, and one thread of one core; XLA's flags are the same too.
Effective samples are those of function values on a grid, by one estimator. Means over the posterior must agree, and how
well they do, in Monte-Carlo standard errors, is printed. Neither compiling nor burn-in counts, and both are shown.

bonas moves the hidden layers and the logarithms of the precisions, with the output layer integrated out. The others sample
every unknown, as they would for any model; NumPyro also by trajectories as short as ours. Also: a warm search step with that
network in two dimensions.

Pyro lives in the environment of the rivals; without it, the others run:

    python3 -m venv rivals && rivals/bin/pip install -r experiments/rivals/requirements.txt
    python experiments/bench_hmc.py --rivals rivals/bin/python

That takes about half an hour, most of it Pyro's. Each contender is written down as it ends, and a second call does what is
missing.
"""

import json
import subprocess
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from posterior.problem import Problem, grid, network, observe
from posterior.rates import OURS, show, summarise
from rich.progress import track
from rivals import numpyro_nets
from rivals.contenders import Clock
from script import flags, record

import bonas
from bonas import infer
from bonas.configure import for_long_arrays
from bonas.nets import bnn_hmc
from bonas.problems import functions
from bonas.search import Trial

PROBLEM = Problem(grid=41)  # every twentieth of [-1, 1]


@dataclass(frozen=True)
class Length:
    """How long a contender runs; the slower, the shorter."""

    burn: int
    samples: int  # a chain
    chains: int = 4


@dataclass(frozen=True)
class Config:
    problem: Problem = PROBLEM  # the posterior of agrawal_posterior.py
    data_seed: int = 0
    steps: int = 20  # of a trajectory of bonas: stated for the code that Agrawal's goes back to
    target: float = 0.8  # acceptance, as NumPyro's
    depth: int = 6  # of NUTS in bonas: the integrated density needs no longer trajectories
    bonas: Length = Length(burn=500, samples=1000)  # burn-in is 1500: see by_bonas
    bonas_nuts: Length = Length(burn=200, samples=250)
    numpyro: Length = Length(burn=300, samples=150)
    short: Length = Length(burn=500, samples=500)
    pyro: Length = Length(burn=60, samples=50, chains=2)
    draws: int = 100  # kept networks of a search step: what surrogates.hmc_network is asked for
    told: int = 15  # evaluations before the first step that counts
    suggestions: int = 10
    seeds: int = 1  # runs of every contender; the median counts


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
    told=3,
    suggestions=2,
)
STUCK = 1e6  # stands for the R-hat of chains that never moved, which is no number
NUMPYRO = {  # by name: the sampler of rivals/numpyro_nets.py
    "NumPyro NUTS": "nuts",
    "NumPyro HMC": "hmc",
    "NumPyro NUTS, depth 6": "short nuts",
    "NumPyro HMC, 20 steps": "short hmc",
}
CONTENDERS = (OURS, "bonas NUTS", *NUMPYRO, "Pyro NUTS")
ENDLESS = "NumPyro HMC"  # its usual trajectories had not ended after seven minutes: measured when it is asked for
USUAL = (*(name for name in CONTENDERS if name != ENDLESS), "search step")


def main() -> None:
    args, config = arguments()
    if not args.smoke:
        flags.pin(args.core)
    bonas.configure()
    args.out.mkdir(parents=True, exist_ok=True)
    file, lines = args.out / "bench_hmc.json", args.out / "bench_hmc.jsonl"
    rows = [row for row in record.lines(lines) if row["config"] == plain(replace(config, seeds=1))]
    wanted = [(name, seed) for seed in range(config.seeds) for name in (*CONTENDERS, "search step")]
    done = {(row["name"], row["seed"]) for row in rows}
    missing = [each for each in wanted if each not in done and (each[0] != "Pyro NUTS" or args.rivals)]
    missing = [each for each in missing if each[0] in (args.only or USUAL)]
    for name, seed in track(missing, description="contenders"):
        print(f"... {name}, seed {seed}", flush=True)
        row = {"name": name, "seed": seed, "config": plain(replace(config, seeds=1)), **MEASURE[name](config, seed, args)}
        rows.append(row)
        record.add(lines, row)
    report = {**record.about(), "config": plain(config), **summarise([row for row in rows if row["seed"] < config.seeds])}
    record.write(file, report)
    show(report)
    print(f"\nwritten to {file}")


def arguments():
    parser = flags.benchmark(
        __doc__, "bench_hmc", smoke="tiny sizes, to see that it runs", seeds="runs of every contender; the median counts"
    )
    parser.add_argument("--rivals", help="Python of the environment with Pyro; without it, the others run")
    names, told = (*CONTENDERS, "search step"), f"some of the contenders (default: all but {ENDLESS})"
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=told)
    return flags.read(parser, Config(), SMOKE)


def plain(config: Config) -> dict:
    return json.loads(json.dumps(asdict(config)))


# The contenders: each returns what `measured` does.


def by_bonas(config: Config, seed: int, args) -> dict:
    """Burn-in in one call, whose samples are thrown away too, and samples in another of the same program."""
    length, bnn, data = config.bonas, network(config.problem), observe(config.problem, config.data_seed)

    def run(key, chains, burn):
        moves = {"precisions": "joint", "output": "integrated", "steps": config.steps, "target": config.target}
        draws, chains, info = bnn_hmc.sample(key, bnn, data, chains, samples=length.samples, burn=burn, **moves)
        return on_grid(config, bnn, draws), chains, info.evaluations

    start_key, burn_key, key = jax.random.split(jax.random.key(seed), 3)
    chains = bnn_hmc.begin(start_key, bnn, length.chains)
    program, compiling = compiled(run, key, chains, jnp.asarray(0))
    clock = Clock()
    _, chains, _ = jax.block_until_ready(program(burn_key, chains, jnp.asarray(length.burn)))
    burnt, clock = clock.read(), Clock()
    values, _, evaluations = jax.block_until_ready(program(key, chains, jnp.asarray(0)))
    return measured(values, [burnt], [clock.read()], compiling, int(evaluations.sum()))


def by_bonas_nuts(config: Config, seed: int, args) -> dict:
    """NUTS adapts anew in every call: burn-in's share of the time is its share of the gradients, known from a call of one."""
    length, bnn, data = config.bonas_nuts, network(config.problem), observe(config.problem, config.data_seed)

    def run(key, chains, samples):
        moves = {"precisions": "joint", "output": "integrated", "method": "nuts", "target": config.target}
        draws, _, info = bnn_hmc.sample(key, bnn, data, chains, samples=samples, burn=length.burn, depth=config.depth, **moves)
        return on_grid(config, bnn, draws), info.evaluations

    start_key, key = jax.random.split(jax.random.key(seed))
    chains = bnn_hmc.begin(start_key, bnn, length.chains)
    program, compiling = compiled(partial(run, samples=length.samples), key, chains)
    clock = Clock()
    values, evaluations = jax.block_until_ready(program(key, chains))
    spent = clock.read()
    _, before = compiled(partial(run, samples=1), key, chains)[0](key, chains)
    share = int(before.sum()) / int(evaluations.sum())
    burnt, sampling = ({name: part * seconds for name, seconds in spent.items()} for part in (share, 1.0 - share))
    return measured(values, [burnt], [sampling], compiling, int(evaluations.sum()) - int(before.sum()))


def on_grid(config: Config, bnn, draws):
    return jax.vmap(lambda weights: bnn_hmc.outputs(bnn, weights, grid(config.problem))[:, :, 0])(draws.weights)


def compiled(function, *arguments):
    clock = Clock()
    program = jax.jit(function, compiler_options=for_long_arrays()).lower(*arguments).compile()
    return program, clock.read()["seconds"]


def job(config: Config, length: Length, seed: int) -> dict:
    """The posterior as arrays and numbers, for contenders that know nothing of bonas."""
    data, problem = observe(config.problem, config.data_seed), config.problem
    arrays = {"x": data.x, "y": data.y[:, 0], "grid": grid(problem)}
    posterior = {"widths": problem.widths, "weight_prior": problem.weight_prior, "noise_prior": problem.noise_prior}
    return {**{name: np.asarray(array).tolist() for name, array in arrays.items()}, **posterior, **asdict(length), "seed": seed}


def by_numpyro(method: str):
    def measure(config: Config, seed: int, args) -> dict:
        clock = Clock()
        task = job(config, config.short if method.startswith("short") else config.numpyro, seed)
        values, spent, steps = numpyro_nets.sample(task, method, Clock, for_long_arrays())
        burnt, sampling = zip(*spent, strict=True)
        rest = clock.read()["seconds"] - sum(each["seconds"] for each in (*burnt, *sampling))
        return measured(values, burnt, sampling, rest, steps)

    return measure


def by_pyro(config: Config, seed: int, args) -> dict:
    file = args.out / "job.json"
    file.write_text(json.dumps(job(config, config.pyro, seed)), encoding="utf-8")
    command = [args.rivals, str(Path(__file__).parent / "rivals" / "pyro_nets.py"), str(file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        chains = [json.loads(line) for line in track(process.stdout, total=config.pyro.chains, description="Pyro's chains")]
        if process.wait() or len(chains) != config.pyro.chains:
            raise SystemExit(f"{' '.join(command)} ended with code {process.returncode}")
    finally:
        process.terminate()
        file.unlink()
    burnt, spent = ([chain[name] for chain in chains] for name in ("burnt", "spent"))
    row = measured([chain["values"] for chain in chains], burnt, spent, 0.0, None)
    return {**row, "version": chains[0]["version"]}


def measured(values, burnt, spent, compiling: float, gradients: int | None) -> dict:
    """What is kept of function values (chains, samples, grid) and of the time they took."""
    values = np.asarray(values, float)
    ess = np.clip(np.nan_to_num(infer.effective_sample_size(values)), 1.0, values[..., 0].size)
    total = {name: sum(each[name] for each in spent) for name in spent[0]}
    return {
        "mean": values.mean(axis=(0, 1)).tolist(),
        "std": values.std(axis=(0, 1)).tolist(),
        "effective": ess.tolist(),
        "largest_r_hat": float(np.nan_to_num(infer.r_hat(values), nan=STUCK, posinf=STUCK).max()),
        "draws": values[..., 0].size,
        "gradients": gradients,
        **total,
        "burn_in_cpu_seconds": sum(each["cpu_seconds"] for each in burnt),
        "compile_seconds": compiling,
    }


# A search step.


def search_step(config: Config, seed: int, args) -> dict:
    """Median seconds of an ask, the refit of the network included, each warm from the one before it."""
    problem = functions.six_hump_camel
    surrogate = bonas.surrogates.hmc_network(config.problem.widths, samples=config.draws)
    search = bonas.bayes(problem.space, surrogate=surrogate)
    ask, tell = (jax.jit(each, compiler_options=for_long_arrays()) for each in (search.ask, search.tell))

    def told(state, u):
        y = problem.objective(jax.random.key(0), u)
        return tell(state, Trial(x=u, y=y, step=jnp.asarray(0), cost=jnp.ones(()), ok=jnp.asarray(True)))

    state, clocks = search.init(jax.random.key(seed), 64), []  # a study's capacity, which doubles from 64
    for u in np.random.default_rng(seed).random((config.told, 2)):
        state = told(state, jnp.asarray(u))
    clock = Clock()
    for i in range(config.suggestions + 1):
        x, state, _ = jax.block_until_ready(ask(jax.random.key(i), state))
        clocks.append(clock.read())
        state = jax.block_until_ready(told(state, x[0]))
        clock = Clock()
    warm = {name: float(np.median([each[name] for each in clocks[1:]])) for name in clocks[0]}
    return {**warm, "compile_seconds": clocks[0]["seconds"]}


MEASURE = {
    OURS: by_bonas,
    "bonas NUTS": by_bonas_nuts,
    **{name: by_numpyro(method) for name, method in NUMPYRO.items()},
    "Pyro NUTS": by_pyro,
    "search step": search_step,
}


if __name__ == "__main__":
    main()
