"""Does a Bayesian network train better, or faster, on moments than on draws of its activations? (H-F10)

Hutchinson leaves it to future work: deterministic variational inference hands means and variances from layer to layer and
draws nothing, so that gradients have no noise but that of batches (Wu et al. 2018, who say that it is efficient and robust).
Theirs hands on covariances, too; here they are left out, as in their diagonal variant. Sampled activations are those of the
thesis (eqs. 2.10–2.12), by one draw an update, as in the table of networks that bonas ships, and by ten, as published.

Networks of 2 × 50 units on UCI sets, one split (H-S4), the same first weights, batches, updates and learning rate. All are
scored in the same way, by draws from what they have learned: validation log likelihood in nats a row and RMSE in the units of
the data. Seconds are processor time of a training with its scores, medians over seeds: the first of a way on a set compiles.
Ways are compared in pairs of seeds.

Every network is written down when it is done, and a second call trains what is missing. Without BONAS_DATA, --smoke takes
synthetic rows.
"""

import os
import time
from dataclasses import dataclass
from typing import NamedTuple

from script import flags, progress, ready, record
from variational import sets, ways

from bonas import nets
from bonas.problems import datasets


@dataclass(frozen=True)
class Config:
    sets: tuple[str, ...] = ("boston", "concrete", "energy", "wine_red", "yacht")
    seeds: int = 10
    widths: tuple[int, ...] = (50, 50)  # as for the amount of data (H-S2)
    draws: tuple[int, ...] = (1, 10)  # of activations an update; moments besides
    checkpoints: tuple[int, ...] = (250, 500, 1000, 2000, 4000, 6000)
    batch: int = 128
    learning_rate: float = 0.005  # as in the table of networks
    scored: int = 50  # draws of a score ...
    window: int = 4  # ... at each of so many updates
    resamples: int = 10_000  # of intervals


SMOKE = Config(sets=("yacht",), seeds=2, widths=(3, 3), draws=(1, 2), checkpoints=(10, 20), batch=16, scored=4, window=2)
MOMENTS = "moments"


class Job(NamedTuple):
    """A network to train."""

    name: str
    way: str
    seed: int


def names(config: Config) -> dict[str, nets.VI]:
    """The ways to train, by their names."""
    sampled = {f"{k} draw{'s' * (k > 1)}": nets.VI(samples=k) for k in config.draws}
    return {MOMENTS: nets.VI(forward="deterministic"), **sampled}


def plan(config: Config) -> list[Job]:
    """All networks; the ways of a seed one after the other, so that they share what else the machine does."""
    return [Job(name, way, seed) for name in config.sets for seed in range(config.seeds) for way in names(config)]


def train(config: Config, job: Job, synthetic: bool) -> dict:
    """The row of one network."""
    rows = len(sets.data_of(job.name, synthetic)[0].x)
    course = nets.Course(config.checkpoints, min(config.batch, rows), config.scored, config.window)
    traits, vi = nets.Traits(config.learning_rate), names(config)[job.way]
    began = time.process_time()
    _, row = sets.train(job.name, list(config.widths), job.seed, vi, course, traits, synthetic=synthetic)
    return {"job": list(job), **row, "cpu_seconds": time.process_time() - began}


def settings_of(config: Config, synthetic: bool) -> dict:
    """How every network is trained, besides what its job says."""
    kept = ("widths", "checkpoints", "batch", "learning_rate", "scored", "window")
    return {name: getattr(config, name) for name in kept} | {"synthetic": synthetic}


def main() -> None:
    """Train what is missing, then draw and summarise."""
    parser = flags.parser(__doc__, "hutchinson_deterministic", smoke="a few tiny networks", seeds="of each way (default 10)")
    args, config = flags.read(parser, Config(), SMOKE)
    synthetic = args.smoke and not os.environ.get(datasets.FOLDER_VARIABLE)
    ready.begin(args.out)
    file, settings = args.out / "networks.jsonl", settings_of(config, synthetic)
    known = {Job(*row["job"]): row for row in record.lines(file, settings)}
    jobs = plan(config)
    missing = [job for job in jobs if job not in known]
    with progress.bar(disable=None) as bar:
        task = bar.add_task("networks", total=len(jobs), completed=len(jobs) - len(missing))
        for job in missing:
            bar.update(task, description=f"{job.name}, {job.way}")
            known[job] = train(config, job, synthetic)
            record.add(file, known[job], settings)
            bar.advance(task)
    curves = ways.by_way(config.sets, list(names(config)), {job: known[job] for job in jobs})
    found = ways.summary(curves, MOMENTS, config.resamples)
    ways.draw(curves, config.checkpoints, args.out / "deterministic.png")
    about = {**record.about(), "synthetic": synthetic, "config": vars(config)}
    record.write(args.out / "hutchinson_deterministic.json", {**about, **found})
    ways.show(found, MOMENTS)


if __name__ == "__main__":
    main()
