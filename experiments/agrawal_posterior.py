"""Does HMC find the posterior of a Bayesian network? Agrawal's verification (G-E2), figures 1 and 6 to 9, with numbers.

The function is sin 7x + cos 17x on [-1, 1], seen at 20 random points with noise, the network three layers of 50 tanh units,
5,251 parameters. The claims: chains move between modes (figures 6 and 7), single draws pass near the data and differ away
from it (figure 8), and the average "follows the true function reasonably well; uncertainty low near data and high away"
(figure 9). What Agrawal does not ask: have the chains mixed? A network is the same function after its units are swapped,
so parameters have more modes than any chain visits and their R-hat says little; functions are what must mix, so R-hat
and effective sample sizes are of function values on a grid, and those of parameters stand beside them.

Two ways, on the same data:
- bonas: a precision for the weights and one for the biases of each layer, whitened weights, the output layer integrated
  out, and precisions that move with the weights;
- published: what Agrawal states. One precision for all, the weights themselves, 20 leapfrog steps, acceptance 0.9, Gibbs
  draws of the precisions (G-D5, G-S1, G-S2).

The noise, the priors of the precisions, the number of chains and what is thinned are not stated; those here are ours.
Parameters are counted as bonas orders them, kernels before biases; the order behind the document's "parameter 2501" is unknown.
Figures show the first seed, numbers average over all. Chains are saved as they end, and a second call does what is missing.
"""

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from posterior import figures
from posterior.problem import PROBLEM, Problem, grid, network, observe, truth
from rich.console import Console
from rich.table import Table
from script import flags, progress, ready, record

from bonas import infer
from bonas.configure import for_long_arrays
from bonas.nets import bnn_hmc

WAYS = ("bonas", "published")


@dataclass(frozen=True)
class Config:
    problem: Problem = PROBLEM
    chains: int = 4
    samples: int = 1250  # a chain: 5000 in all, as stated
    burn: int = 1000  # trajectories before: the step size needs some hundred, the precisions more
    thin: int = 4  # trajectories a sample: functions decorrelate in one or two, precisions in some ten
    steps: int = 20  # of a trajectory, both ways
    target: float = 0.8  # acceptance of ours; 0.9 of the published way
    shared_prior: tuple[float, float] = (2.0, 2.0)  # of the one precision: a weight's standard deviation about 1
    hold: int = 300  # trajectories of the published way before its first Gibbs draw; at once, all would be taken for noise
    shown: tuple[int, ...] = (25, 3000, 5075)  # parameters of figure 6: of the first layer, of the third, of the output
    histogram: int = 2501  # stated: the parameter of figure 7
    every: int = 25  # one parameter in so many is diagnosed
    near: float = 0.1  # further from every point than this is "away from the data"; points are 0.1 apart on average
    first: int = 100  # seed of the first data set. The priors were chosen among ten or so by how chains mixed and bands
    # covered on data sets 0 to 2, so those are left out
    seeds: int = 10  # data sets

    @property
    def data_sets(self) -> range:
        return range(self.first, self.first + self.seeds)


SMOKE = Config(
    replace(PROBLEM, widths=(4, 4), grid=21),
    chains=2,
    samples=8,
    burn=8,
    thin=1,
    steps=3,
    hold=2,
    shown=(2, 10, 30),
    histogram=25,
    every=5,
    seeds=1,
)


def main() -> None:
    parser = flags.parser(
        __doc__,
        "agrawal_posterior",
        smoke="a tiny network and a few samples, to see that everything runs",
        seeds=f"data sets (default {Config.seeds})",
    )
    given, config = flags.read(parser, Config(), SMOKE)
    ready.begin(given.out)
    chains = all_chains(config, given.out)
    rows = {way: [measure(config, seed, chains[way, seed]) for seed in config.data_sets] for way in WAYS}
    numbers = {way: summarise(of) for way, of in rows.items()}
    record.write(given.out / "agrawal_posterior.json", {**record.about(), "config": asdict(config), "results": numbers})
    figures.prior_draws(given.out / "figure_1.png", smoke=given.smoke)
    shown = {way: chains[way, config.first] for way in WAYS}
    data = observe(config.problem, config.first)
    figures.traces(given.out / "figure_6.png", shown, config.shown)
    figures.histogram(given.out / "figure_7.png", shown["bonas"], config.histogram)
    figures.fits(given.out / "figure_8.png", config.problem, shown["bonas"], data)
    figures.band(given.out / "figure_9.png", config.problem, shown["bonas"], data)
    show(numbers)
    print(f"figures and numbers are in {given.out}")


# The chains.


def all_chains(config: Config, out: Path) -> dict:
    """What every chain left, by way and seed, leaves (chains, ...): read where it is known, and run where it is not."""
    found: dict = {}
    with progress.bar(28) as bar:
        task = bar.add_task("chains", total=len(WAYS) * config.seeds * config.chains)
        for seed in config.data_sets:
            for way in WAYS:
                bar.update(task, description=f"data set {seed}, {way}")
                for chain in range(config.chains):
                    found.setdefault((way, seed), []).append(one_chain(config, out, way, seed, chain))
                    bar.advance(task)
    return {name: {field: np.stack([each[field] for each in chains]) for field in chains[0]} for name, chains in found.items()}


def one_chain(config: Config, out: Path, way: str, seed: int, chain: int) -> dict:
    """One chain, from its file where that was made with these settings."""
    file, settings = out / f"{way}_{seed}_{chain}.npz", repr(replace(config, seeds=1, near=0.0, chains=1))
    if file.exists():
        with np.load(file) as saved:
            if str(saved["settings"]) == settings:
                return {name: saved[name] for name in saved.files if name != "settings"}
    key = jax.random.fold_in(jax.random.key(seed), chain)
    made = {name: np.asarray(array) for name, array in run(config, way)(key, observe(config.problem, seed)).items()}
    part = file.with_suffix(".part.npz")  # a file is whole or not there
    np.savez(part, settings=settings, **made)
    part.replace(file)
    return made


_PROGRAMS: dict = {}


def run(config: Config, way: str):
    """The compiled run of one chain of a way."""
    if way not in _PROGRAMS:
        _PROGRAMS[way] = jax.jit(partial(sample, config, way), compiler_options=for_long_arrays())
    return _PROGRAMS[way]


def sample(config: Config, way: str, key, data) -> dict:
    """Function values (s, grid), parameters (s, k), and what the chain did."""
    bnn, moves = network(config.problem), {"precisions": "joint", "output": "integrated", "target": config.target}
    if way == "published":
        bnn = network(config.problem, shared=True, scaled=False, whitened=False, weight_prior=config.shared_prior)
        moves = {"precisions": "gibbs", "hold": config.hold, "target": 0.9}
    start_key, run_key = jax.random.split(key)
    start = bnn_hmc.begin(start_key, bnn)
    lengths = {"samples": config.samples, "burn": config.burn, "thin": config.thin, "steps": config.steps}
    draws, _, info = bnn_hmc.sample(run_key, bnn, data, start, **lengths, **moves)
    draws, info = jax.tree.map(lambda leaf: leaf[0], (draws, info))
    flat = jnp.concatenate([leaf.reshape(config.samples, -1) for leaf in jax.tree.leaves(draws.weights)], axis=1)
    return {
        "values": bnn_hmc.outputs(bnn, draws.weights, grid(config.problem))[:, :, 0],
        "at_points": bnn_hmc.outputs(bnn, draws.weights, data.x)[:, :, 0],
        "shown": flat[:, jnp.asarray((*config.shown, config.histogram))],
        "parameters": flat[:, :: config.every],
        "log_precisions": jnp.log(jnp.concatenate([draws.precisions.weights, draws.precisions.noise[:, None]], axis=1)),
        "accept": info.accept,
        "diverging": info.diverging,
        "step_size": info.scale,
    }


# The numbers.


def measure(config: Config, seed: int, chains: dict) -> dict:
    """What the chains of one data set say; the first R-hat and effective sizes are of functions, on the grid."""
    values, line = chains["values"], np.asarray(grid(config.problem))[:, 0]
    mean, std = values.mean(axis=(0, 1)), values.std(axis=(0, 1))
    error = mean - truth(line)
    distance = np.abs(line[:, None] - np.asarray(observe(config.problem, seed).x)[:, 0][None, :]).min(axis=1)
    row = {
        "coverage": np.mean(np.abs(error) <= 2.0 * std),
        "rmse": np.sqrt(np.mean(error**2)),
        "std_at_the_data": chains["at_points"].std(axis=(0, 1)).mean(),
        "std_away": std[distance > config.near].mean() if np.any(distance > config.near) else std.max(),
        "acceptance": chains["accept"].mean(),
        "divergences": chains["diverging"].sum(),
        "smallest_step": chains["step_size"].min(),
        "largest_step": chains["step_size"].max(),
    }
    for name, draws in (
        ("functions", values),
        ("parameters", chains["parameters"]),
        ("log_precisions", chains["log_precisions"]),
    ):
        hats, sizes = infer.r_hat(draws), infer.effective_sample_size(draws)
        row |= {f"{name}_r_hat_median": np.median(hats), f"{name}_r_hat_largest": np.max(hats)}
        row |= {f"{name}_ess_median": np.median(sizes), f"{name}_ess_smallest": np.min(sizes)}
    return {name: float(number) for name, number in row.items()}


def summarise(rows: list[dict]) -> dict:
    """Mean, least and most over data sets, and every data set."""

    def over(name):
        numbers = [row[name] for row in rows]
        return {"mean": float(np.mean(numbers)), "least": min(numbers), "most": max(numbers)}

    return {"over_data_sets": {name: over(name) for name in rows[0]}, "data_sets": rows}


def show(numbers: dict) -> None:
    table = Table("mean over data sets (least to most)", *WAYS)
    for name in numbers[WAYS[0]]["over_data_sets"]:
        cells = ("{mean:.3g} ({least:.3g} to {most:.3g})".format(**numbers[way]["over_data_sets"][name]) for way in WAYS)
        table.add_row(name.replace("_", " "), *cells)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
