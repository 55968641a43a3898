"""How do width, prior, initial noise and amount of data affect a Bayesian network?

Hutchinson's figures 5.1 to 5.3: networks of two hidden layers under fixed normal priors, on UCI
sets, scored on validation rows. The thesis claims:
- log likelihood against width has a maximum on some sets and a plateau on others;
- a prior that is too narrow is clearly harmful; above that there is a plateau or a small drop;
- the initial noise hardly matters in the end;
- with fewer data networks underfit: validation passes its best value and the divergence pulls it
  away;
- with repeated data they overfit: the training likelihood rises and validation falls.

Repeating data m times multiplies the likelihood by m; the author's code weights the divergence as
if by m². Both are here, and so are fewer rows. The scale is reduced to 6,000 updates of 128 rows,
one sample and a learning rate of 0.005; the author has 30,000 to 50,000 epochs, ten samples, 0.001
and one seed.

Every network is saved, and a second call trains the missing ones. Without BONAS_DATA, --smoke uses
synthetic rows.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from bonas import nets
from bonas.problems import datasets
from experiments import common
from experiments.hutchinson import effects_report as effects
from experiments.hutchinson import uci_networks as sets


@dataclass(frozen=True)
class Config:
    sets: tuple[str, ...] = ("boston", "concrete", "energy", "yacht")
    seeds: int = 3
    # widths, compared under priors ...
    widths: tuple[int, ...] = (1, 3, 5, 10, 30, 50, 100)
    priors: tuple[float, ...] = (0.01, 1.0, 10.0)  # ... of these variances
    structures: tuple[int, ...] = (5, 10, 30)  # widths, compared under ...
    # ... prior variances
    prior_widths: tuple[float, ...] = (
        0.001,
        0.01,
        0.05,
        0.1,
        0.5,
        1.0,
        5.0,
        10.0,
        50.0,
    )
    # Initial noise variances of scaled values
    noises: tuple[float, ...] = (0.0025, 0.025, 0.25, 1.0, 4.0)
    multiples: tuple[float, ...] = (0.1, 0.5, 1.0, 5.0, 10.0)
    multiplied: int = 50  # width of the networks whose data are multiplied
    # the first are early, because with few data the validation score soon passes its best
    checkpoints: tuple[int, ...] = (50, 100, 250, 500, 1000, 2000, 3000, 4000, 6000)
    batch: int = 128
    learning_rate: float = 0.005
    draws: int = 50
    window: int = 4


SMOKE = Config(
    sets=("boston",),
    seeds=1,
    widths=(2, 4),
    priors=(0.1, 1.0),
    structures=(3,),
    prior_widths=(0.1, 1.0),
    noises=(0.0025, 1.0),
    multiples=(0.5, 1.0, 2.0),
    multiplied=4,
    checkpoints=(10, 20),
    batch=16,
    draws=4,
    window=2,
)


class Job(NamedTuple):
    """A network to train."""

    name: str
    width: int
    prior: float  # variance
    noise: float  # initial variance
    multiple: float  # factor of the amount of data
    weight: float  # weight of the likelihood of the rows
    seed: int


def plan(config: Config) -> Iterator[Job]:
    """Yield every network once, although figures share some."""
    usual = nets.VIHyperparameters().noise
    for seed in range(config.seeds):
        for name in config.sets:
            found = [
                (width, prior, usual, 1.0, 1.0)
                for width in config.widths
                for prior in config.priors
            ]
            found += [
                (width, prior, usual, 1.0, 1.0)
                for width in config.structures
                for prior in config.prior_widths
            ]
            found += [
                (config.structures[-1], 1.0, noise, 1.0, 1.0) for noise in config.noises
            ]
            # excluded rows have no weight; repeated rows have the weight of their repetitions
            for multiple in config.multiples:
                right = max(multiple, 1.0)
                found += [
                    (config.multiplied, 1.0, usual, multiple, weight)
                    for weight in (right, right * multiple)
                ]
            yield from (Job(name, *each, seed) for each in dict.fromkeys(found))


def train(config: Config, job: Job, synthetic: bool) -> dict:
    """Train one network and return its row."""
    share = min(job.multiple, 1.0)
    rows = len(sets.data_of(job.name, synthetic)[0].x)
    course = nets.TrainingPlan(
        config.checkpoints, min(config.batch, rows), config.draws, config.window
    )
    traits = nets.VIHyperparameters(
        config.learning_rate, job.prior, job.noise, job.weight
    )
    vi, widths = nets.VI(prior="fixed", samples=1), [job.width, job.width]
    _, row = sets.train(
        job.name, widths, job.seed, vi, course, traits, synthetic=synthetic, share=share
    )
    return {"job": list(job), **row}


def settings_of(config: Config, synthetic: bool) -> dict:
    """Return the training settings besides those in the job."""
    names = ("checkpoints", "batch", "learning_rate", "draws", "window")
    return {name: getattr(config, name) for name in names} | {"synthetic": synthetic}


def main() -> None:
    """Train the missing networks, then draw and summarize."""
    args = arguments()
    config = (
        SMOKE
        if args.smoke
        else Config()
        if args.seeds is None
        else Config(seeds=args.seeds)
    )
    synthetic = args.smoke and not os.environ.get(datasets.FOLDER_VARIABLE)
    common.setup(args.out)
    file, settings = args.out / "networks.jsonl", settings_of(config, synthetic)
    finished = {Job(*row["job"]): row for row in common.read_lines(file, settings)}
    jobs = list(plan(config))
    missing = [job for job in jobs if job not in finished]
    with (
        common.progress_bar(disable=None) as bar,
        ThreadPoolExecutor(args.at_once) as pool,
    ):
        task = bar.add_task(
            "networks", total=len(jobs), completed=len(jobs) - len(missing)
        )
        for row in pool.map(lambda job: train(config, job, synthetic), missing):
            common.append_line(file, row, settings)
            finished[Job(*row["job"])] = row
            bar.update(task, advance=1, description=row["job"][0])
    rows = {job: finished[job] for job in jobs}
    found = effects.summary(config, rows)
    effects.draw(config, rows, args.out)
    common.write_json(
        args.out / "hutchinson_effects.json",
        {
            **common.provenance(),
            "synthetic": synthetic,
            "config": vars(config),
            **found,
        },
    )
    effects.show(config, found)


def arguments():
    """Parse the flags."""
    parser = common.parser(
        __doc__,
        "hutchinson_effects",
        smoke="a few tiny networks",
        seeds="seeds of each network (default 3)",
    )
    parser.add_argument(
        "--at-once",
        type=common.positive_int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="networks trained at once (default: one per core)",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
