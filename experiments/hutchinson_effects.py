"""What width, prior, first noise and amount of data do to a Bayesian network: Hutchinson's figures 5.1 to 5.3 (H-E1, H-E2).

Networks of two hidden layers under fixed normal priors, on UCI sets, scored on validation rows. The thesis says:
- log likelihood against width has a maximum on some sets and a plateau on others;
- a prior that is too narrow is clearly harmful, above that there is a plateau or a small drop;
- the noise that training starts from hardly matters in the end;
- fewer data make networks under-fit: validation passes its best and is then pushed off it by the divergence;
- data repeated make them over-fit: training likelihood up, validation far down.
Data repeated m times multiply the likelihood by m; by the author's code the divergence is weighed as if by m² (H-X12). Both are
here, and so are fewer rows. Scaled: 6,000 updates of 128 rows, one draw and a rate of 0.005, where the author has 30,000 to
50,000 passes, ten draws and 0.001. The author has one seed.

Every network is saved when it is done, and a second call trains what is missing. Without BONAS_DATA, --smoke takes synthetic
rows.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from script import flags, progress, ready, record
from variational import effects, sets

from bonas import nets
from bonas.problems import datasets


@dataclass(frozen=True)
class Config:
    sets: tuple[str, ...] = ("boston", "concrete", "energy", "yacht")
    seeds: int = 3
    widths: tuple[int, ...] = (1, 3, 5, 10, 30, 50, 100)  # against which priors ...
    priors: tuple[float, ...] = (0.01, 1.0, 10.0)  # ... of these variances (H-S2)
    structures: tuple[int, ...] = (5, 10, 30)  # widths against which ...
    prior_widths: tuple[float, ...] = (0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0)  # ... variances
    noises: tuple[float, ...] = (0.0025, 0.025, 0.25, 1.0, 4.0)  # variances of scaled values
    multiples: tuple[float, ...] = (0.1, 0.5, 1.0, 5.0, 10.0)
    multiplied: int = 50  # width of the networks whose data are multiplied
    # the first are early: with few data validation is soon past its best
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
    noise: float  # variance that it begins with
    multiple: float  # of the data
    weight: float  # how many times the likelihood of the rows counts
    seed: int


def plan(config: Config) -> Iterator[Job]:
    """Every network once, though figures share some."""
    usual = nets.Traits().noise
    for seed in range(config.seeds):
        for name in config.sets:
            found = [(width, prior, usual, 1.0, 1.0) for width in config.widths for prior in config.priors]
            found += [(width, prior, usual, 1.0, 1.0) for width in config.structures for prior in config.prior_widths]
            found += [(config.structures[-1], 1.0, noise, 1.0, 1.0) for noise in config.noises]
            for multiple in config.multiples:  # rows left out count nothing, rows repeated count so often
                right = max(multiple, 1.0)
                found += [(config.multiplied, 1.0, usual, multiple, weight) for weight in (right, right * multiple)]
            yield from (Job(name, *each, seed) for each in dict.fromkeys(found))


def train(config: Config, job: Job, synthetic: bool) -> dict:
    """The row of one network."""
    share = min(job.multiple, 1.0)
    rows = len(sets.data_of(job.name, synthetic)[0].x)
    course = nets.Course(config.checkpoints, min(config.batch, rows), config.draws, config.window)
    traits = nets.Traits(config.learning_rate, job.prior, job.noise, job.weight)
    vi, widths = nets.VI(prior="fixed", samples=1), [job.width, job.width]
    _, row = sets.train(job.name, widths, job.seed, vi, course, traits, synthetic=synthetic, share=share)
    return {"job": list(job), **row}


def settings_of(config: Config, synthetic: bool) -> dict:
    """How every network is trained, besides what its job says."""
    names = ("checkpoints", "batch", "learning_rate", "draws", "window")
    return {name: getattr(config, name) for name in names} | {"synthetic": synthetic}


def main() -> None:
    """Train what is missing, then draw and summarise."""
    args = arguments()
    config = SMOKE if args.smoke else Config() if args.seeds is None else Config(seeds=args.seeds)
    synthetic = args.smoke and not os.environ.get(datasets.FOLDER_VARIABLE)
    ready.begin(args.out)
    file, settings = args.out / "networks.jsonl", settings_of(config, synthetic)
    known = {Job(*row["job"]): row for row in record.lines(file, settings)}
    jobs = list(plan(config))
    missing = [job for job in jobs if job not in known]
    with progress.bar(disable=None) as bar, ThreadPoolExecutor(args.at_once) as pool:
        task = bar.add_task("networks", total=len(jobs), completed=len(jobs) - len(missing))
        for row in pool.map(lambda job: train(config, job, synthetic), missing):
            record.add(file, row, settings)
            known[Job(*row["job"])] = row
            bar.update(task, advance=1, description=row["job"][0])
    rows = {job: known[job] for job in jobs}
    found = effects.summary(config, rows)
    effects.draw(config, rows, args.out)
    record.write(
        args.out / "hutchinson_effects.json", {**record.about(), "synthetic": synthetic, "config": vars(config), **found}
    )
    effects.show(config, found)


def arguments():
    """The flags."""
    parser = flags.parser(__doc__, "hutchinson_effects", smoke="a few tiny networks", seeds="of each network (default 3)")
    parser.add_argument(
        "--at-once", type=flags.positive, default=os.cpu_count() or 1, metavar="N", help="networks (default: one a core)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
