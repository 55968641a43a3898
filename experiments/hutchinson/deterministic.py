"""Does a Bayesian network train better on moments than on samples of its activations?

Hutchinson leaves this to future work: deterministic variational inference propagates means and
variances from layer to layer, so that only batches make gradients noisy (Wu et al. 2018, who call
it efficient and robust). Their method also propagates covariances; here they are left out, as in
their diagonal variant. Activations are sampled as in the thesis (eqs. 2.10 to 2.12), with one
sample per update, as in the table of networks that bonas ships, and with ten, as published.

Networks of 2 × 50 units are trained on one split of UCI sets with the same initial weights,
batches, updates and learning rate. All are scored by samples from what they learned: validation
log likelihood in nats per row, and RMSE in the units of the data. Seconds are CPU time of a
training with its scores, medians over seeds, because the first training compiles. Results are
compared in pairs of seeds.

Every network is saved, and a second call trains the missing ones. Without BONAS_DATA, --smoke uses
synthetic rows.
"""

import os
import time
from dataclasses import dataclass
from typing import NamedTuple

from bonas import nets
from bonas.problems import datasets
from experiments import common
from experiments.hutchinson import deterministic_report as ways
from experiments.hutchinson import uci_networks as sets


@dataclass(frozen=True)
class Config:
    sets: tuple[str, ...] = ("boston", "concrete", "energy", "wine_red", "yacht")
    seeds: int = 10
    widths: tuple[int, ...] = (50, 50)  # as in `effects` for the amount of data
    # samples of activations per update, compared with moments
    draws: tuple[int, ...] = (1, 10)
    checkpoints: tuple[int, ...] = (250, 500, 1000, 2000, 4000, 6000)
    batch: int = 128
    learning_rate: float = 0.005  # as in the table of networks
    scored: int = 50  # posterior samples per score ...
    window: int = 4  # ... at each of this number of updates
    resamples: int = 10_000  # bootstrap resamples of intervals


SMOKE = Config(
    sets=("yacht",),
    seeds=2,
    widths=(3, 3),
    draws=(1, 2),
    checkpoints=(10, 20),
    batch=16,
    scored=4,
    window=2,
)
MOMENTS = "moments"


class Job(NamedTuple):
    """A network to train."""

    name: str
    way: str
    seed: int


def names(config: Config) -> dict[str, nets.VI]:
    """Return the ways to train by name."""
    sampled = {f"{k} draw{'s' * (k > 1)}": nets.VI(samples=k) for k in config.draws}
    return {MOMENTS: nets.VI(forward="deterministic"), **sampled}


def plan(config: Config) -> list[Job]:
    """Return all networks; the ways of a seed follow each other, so that they see the same load."""
    return [
        Job(name, way, seed)
        for name in config.sets
        for seed in range(config.seeds)
        for way in names(config)
    ]


def train(config: Config, job: Job, synthetic: bool) -> dict:
    """Train one network and return its row."""
    rows = len(sets.data_of(job.name, synthetic)[0].x)
    course = nets.TrainingPlan(
        config.checkpoints, min(config.batch, rows), config.scored, config.window
    )
    traits, vi = nets.VIHyperparameters(config.learning_rate), names(config)[job.way]
    began = time.process_time()
    _, row = sets.train(
        job.name, list(config.widths), job.seed, vi, course, traits, synthetic=synthetic
    )
    return {"job": list(job), **row, "cpu_seconds": time.process_time() - began}


def settings_of(config: Config, synthetic: bool) -> dict:
    """Return the training settings besides those in the job."""
    names_of_settings = (
        "widths",
        "checkpoints",
        "batch",
        "learning_rate",
        "scored",
        "window",
    )
    return {name: getattr(config, name) for name in names_of_settings} | {
        "synthetic": synthetic
    }


def main() -> None:
    """Train the missing networks, then draw and summarize."""
    parser = common.parser(
        __doc__,
        "hutchinson_deterministic",
        smoke="a few tiny networks",
        seeds="seeds of each method (default 10)",
    )
    args, config = common.parse(parser, Config(), SMOKE)
    synthetic = args.smoke and not os.environ.get(datasets.FOLDER_VARIABLE)
    common.setup(args.out)
    file, settings = args.out / "networks.jsonl", settings_of(config, synthetic)
    finished = {Job(*row["job"]): row for row in common.read_lines(file, settings)}
    jobs = plan(config)
    missing = [job for job in jobs if job not in finished]
    with common.progress_bar(disable=None) as bar:
        task = bar.add_task(
            "networks", total=len(jobs), completed=len(jobs) - len(missing)
        )
        for job in missing:
            bar.update(task, description=f"{job.name}, {job.way}")
            finished[job] = train(config, job, synthetic)
            common.append_line(file, finished[job], settings)
            bar.advance(task)
    curves = ways.by_way(
        config.sets, list(names(config)), {job: finished[job] for job in jobs}
    )
    found = ways.summary(curves, MOMENTS, config.resamples)
    ways.draw(curves, config.checkpoints, args.out / "deterministic.png")
    about = {**common.provenance(), "synthetic": synthetic, "config": vars(config)}
    common.write_json(args.out / "hutchinson_deterministic.json", {**about, **found})
    ways.show(found, MOMENTS)


if __name__ == "__main__":
    main()
