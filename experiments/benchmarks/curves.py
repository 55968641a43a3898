"""What does a search on learning curves cost, compared with the `gpar` package and PyTorch?

GPAR: a fit of 60 curves of up to three checkpoints and 50 samples at 84 candidates, which is what
every iteration of the search computes. `gpar` is the package that Hutchinson used. Both libraries
have the same model, data, start and objective, float64, and one thread of one core; their log
evidences at the same hyperparameters must agree, and the difference is printed.

Variational networks: one update of one network and of 32, in float32, against a PyTorch loop.

The other libraries have their own environment; without it only bonas runs:

    python3 -m venv rivals_curves
    rivals_curves/bin/pip install -r experiments/benchmarks/rivals/requirements_curves.txt
    python -m experiments.benchmarks.curves --rivals rivals_curves/bin/python

Every result is saved, and a second call measures the missing ones.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.progress import track

import bonas
from experiments import common
from experiments.benchmarks import curves_gpar, curves_vi

GPAR, VI = curves_gpar.Gpar(), curves_vi.Vi()


@dataclass(frozen=True)
class Config:
    gpar: curves_gpar.Gpar = GPAR
    vi: curves_vi.Vi = VI
    seeds: int = 3  # problems; medians are reported


SMOKE = Config(curves_gpar.SMALL, curves_vi.SMALL, seeds=1)
# Modules by field of Config. Each has NAMES (first bonas, then other libraries), MEASURE (name ->
# function(settings, seed, args) -> row), summary(rows) and show(summary, console).
HALVES: dict[str, Any] = {"gpar": curves_gpar, "vi": curves_vi}


def main() -> None:
    args, config = arguments()
    if not args.smoke:
        common.pin_to_core(args.core)
    bonas.configure(cache=False)  # compiling is timed
    args.out.mkdir(parents=True, exist_ok=True)
    file, lines = (
        args.out / "benchmarks_curves.json",
        args.out / "benchmarks_curves.jsonl",
    )
    settings = {
        half: json.loads(json.dumps(asdict(getattr(config, half)))) for half in HALVES
    }
    rows = [
        row
        for row in common.read_lines(lines)
        if row["half"] in HALVES and row["config"] == settings[row["half"]]
    ]
    done = {(row["half"], row["name"], row["seed"]) for row in rows}
    wanted = [
        (half, name, seed)
        for half, module in HALVES.items()
        for seed in range(config.seeds)
        for name in (module.NAMES if args.rivals else module.NAMES[:1])
    ]
    for half, name, seed in track(
        [each for each in wanted if each not in done], description="contenders"
    ):
        found = HALVES[half].MEASURE[name](getattr(config, half), seed, args)
        rows.append(
            {
                "half": half,
                "name": name,
                "seed": seed,
                "config": settings[half],
                **found,
            }
        )
        common.append_line(lines, rows[-1])
    kept = [row for row in rows if row["seed"] < config.seeds]
    results = {
        half: module.summary([row for row in kept if row["half"] == half])
        for half, module in HALVES.items()
    }
    common.write_json(
        file,
        {
            **common.provenance(),
            "config": {**settings, "seeds": config.seeds},
            "results": results,
        },
    )
    for half, module in HALVES.items():
        module.show(results[half], Console(width=140))
    print(f"\nwritten to {file}")


def arguments():
    parser = common.benchmark_parser(
        __doc__,
        "benchmarks_curves",
        smoke="tiny sizes, as a quick test",
        seeds="number of problems; medians are reported (default 3)",
    )
    parser.add_argument(
        "--rivals",
        help="Python of the environment with the other libraries; without it, only bonas runs",
    )
    return common.parse(parser, Config(), SMOKE)


if __name__ == "__main__":
    main()
