"""What does a search by learning curves cost? bonas against `gpar` of PyPI, which Hutchinson used, and a loop in PyTorch.

GPAR: a fit of 60 curves of up to three checkpoints, and 50 samples at 84 candidates, which is what every iteration of the
search does. Both libraries have the same model, data, starting point and objective, float64 and one thread of one core; log
evidences at the same hyperparameters must agree, and how well they do is printed.

Variational networks: an update of one network and of 32, float32, against a loop in PyTorch written by hand.

The rivals live in an environment of their own; without it, bonas runs alone:

    python3 -m venv rivals_curves && rivals_curves/bin/pip install -r experiments/rivals/requirements_curves.txt
    python experiments/bench_curves.py --rivals rivals_curves/bin/python

That takes a few minutes. Each contender is written down as it ends, and a second call does what is missing.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

from learning import bench_gpar, bench_vi
from rich.console import Console
from rich.progress import track
from script import flags, record

import bonas

GPAR, VI = bench_gpar.Gpar(), bench_vi.Vi()


@dataclass(frozen=True)
class Config:
    gpar: bench_gpar.Gpar = GPAR
    vi: bench_vi.Vi = VI
    seeds: int = 3  # problems; the median counts


SMOKE = Config(bench_gpar.SMALL, bench_vi.SMALL, seeds=1)
# By the field of Config that they take: a module with NAMES (the first is ours, the others need the rivals), MEASURE (name ->
# function(settings, seed, args) -> row), summary(rows) and show(summary, console).
HALVES: dict[str, Any] = {"gpar": bench_gpar, "vi": bench_vi}


def main() -> None:
    args, config = arguments()
    if not args.smoke:
        flags.pin(args.core)
    bonas.configure(cache=False)  # compiling is timed
    args.out.mkdir(parents=True, exist_ok=True)
    file, lines = args.out / "bench_curves.json", args.out / "bench_curves.jsonl"
    settings = {half: json.loads(json.dumps(asdict(getattr(config, half)))) for half in HALVES}
    rows = [row for row in record.lines(lines) if row["half"] in HALVES and row["config"] == settings[row["half"]]]
    done = {(row["half"], row["name"], row["seed"]) for row in rows}
    wanted = [
        (half, name, seed)
        for half, module in HALVES.items()
        for seed in range(config.seeds)
        for name in (module.NAMES if args.rivals else module.NAMES[:1])
    ]
    for half, name, seed in track([each for each in wanted if each not in done], description="contenders"):
        found = HALVES[half].MEASURE[name](getattr(config, half), seed, args)
        rows.append({"half": half, "name": name, "seed": seed, "config": settings[half], **found})
        record.add(lines, rows[-1])
    kept = [row for row in rows if row["seed"] < config.seeds]
    results = {half: module.summary([row for row in kept if row["half"] == half]) for half, module in HALVES.items()}
    record.write(file, {**record.about(), "config": {**settings, "seeds": config.seeds}, "results": results})
    for half, module in HALVES.items():
        module.show(results[half], Console(width=140))
    print(f"\nwritten to {file}")


def arguments():
    parser = flags.benchmark(
        __doc__, "bench_curves", smoke="tiny sizes, to see that it runs", seeds="problems; the median counts (default 3)"
    )
    parser.add_argument("--rivals", help="Python of the environment with the rivals; without it, bonas runs alone")
    return flags.read(parser, Config(), SMOKE)


if __name__ == "__main__":
    main()
