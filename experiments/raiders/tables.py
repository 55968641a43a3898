"""Does a kernel that knows which parameters are relevant find good networks faster?

Swersky et al. 2014, figure 3, on tables of trained networks.

A search looks up validation errors of networks that were really trained: the 917 distinct ones
among the authors' 951 networks of up to 5 hidden layers, and the convolutional networks of
MetaQNN, 1000 on CIFAR-10 and 1300 on SVHN. The paper claims that the arc kernel finds good
networks faster than a GP with random numbers in irrelevant columns, or finds better ones, and that
this GP prefers small networks while the arc spreads to deeper ones.

All searches maximize log EI of a GP of the log errors over all networks of the table, and differ
only in the kernel. Further kernels are a constant in irrelevant columns, products over columns,
box and wedge, the kernels of SMAC3 and BoTorch (gp.masked, gp.blocks) and a sum of two arcs;
regularized evolution and random search are baselines. Hyperparameters are MAP estimates, or
slice-sampled as in the paper. For a seed all searches start from the same networks and are
compared in pairs. --smoke uses a small synthetic table in the form of MetaQNN's.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial

import jax.numpy as jnp
import numpy as np
from rich.progress import Progress

from bonas.search import History, Search
from experiments import common
from experiments.common import SavedRuns, run_missing
from experiments.raiders import tables_problems as problems
from experiments.raiders import tables_report
from experiments.raiders.tables_searches import (
    ARC,
    BLIND,
    CHANCE,
    METHODS,
    SAMPLED,
    search_of,
)

# Time limit of the 24-column arc search with slice samples: table, method, seconds per seed
SPEED = ("raiders", ARC + SAMPLED, 10.0)


@dataclass(frozen=True)
class Config:
    evaluations: int = 50  # the paper's figures go to 50 and beyond
    initial: int = 5  # not stated: the default of bonas, for every search
    # Evaluations of evidence and gradient per fit, from the last optimum. Twice the default of
    # bonas, which suffices for a Matérn kernel but not for the arc, with twice the hyperparameters.
    steps: int = 20
    samples: int = 10  # slice samples per suggestion: not stated; Spearmint's number
    burn: int = 0  # burn-in sweeps: the chain continues from the last suggestion
    # Include MetaQNN's learning rate, although it depended on early training (metaqnn.RATES)
    rate: bool = True
    seeds: int = 50
    # fewer, because a suggestion costs about thirty times as much
    sampled_seeds: int = 20
    resamples: int = 10_000  # bootstrap resamples of the seeds, for intervals
    tables: tuple[str, ...] = problems.TABLES
    methods: tuple[str, ...] = METHODS
    synthetic: int = 0  # rows of a synthetic table; 0 for the real tables


SMOKE = Config(
    evaluations=7,
    initial=3,
    samples=2,
    seeds=2,
    tables=("cifar10",),
    methods=(ARC, BLIND, CHANCE),
    synthetic=30,
)


def settings(config: Config) -> list:
    """Return the settings that a run depends on."""
    return [
        config.evaluations,
        config.initial,
        config.steps,
        config.samples,
        config.burn,
        config.rate,
        config.synthetic,
    ]


def seeds_of(config: Config, method: str) -> int:
    return (
        min(config.seeds, config.sampled_seeds)
        if method.endswith(SAMPLED)
        else config.seeds
    )


def runs_of(config: Config, folder, table: str, method: str) -> SavedRuns:
    name = f"{table}_{method}".replace(",", "").replace(" ", "_")
    return SavedRuns(folder / "runs" / f"{name}.jsonl", settings(config))


def search_all(config: Config, folder, loaded: dict) -> None:
    """Run every missing search, the fast ones of all tables first."""
    jobs = [
        (table, method)
        for slow in (False, True)
        for table in loaded
        for method in config.methods
        if slow == method.endswith(SAMPLED)
    ]
    with Progress() as bars:
        total = bars.add_task("all", total=len(jobs))
        for table, method in jobs:
            runs, seeds = (
                runs_of(config, folder, table, method),
                seeds_of(config, method),
            )
            task = bars.add_task(
                f"{table}, {method}", total=seeds, completed=len(runs.first(seeds))
            )
            run_missing(
                runs,
                partial(search_of, method, loaded[table], config),
                partial(log_error, loaded[table].error),
                config.evaluations,
                seeds,
                describe=describe,
                advance=partial(bars.advance, task),
            )
            bars.remove_task(task)
            bars.advance(total)


def log_error(error: np.ndarray, search: Search) -> Callable:
    """Return the objective: the log error of the network in a row of the table."""
    values = jnp.log(error)
    return lambda key, u: values[search.space.row(u)]


def describe(search: Search, history: History) -> dict:
    """Return what is saved of a run; no network may be suggested twice."""
    rows = np.asarray(search.space.row(history.x[0]))
    if len(np.unique(rows)) < min(len(rows), len(search.space.rows)):
        raise ValueError(
            f"expected different networks, but one was suggested twice: {rows}"
        )
    return {
        "rows": rows.tolist(),
        "random": int(history.info.random.sum()),
        "converged": float(history.info.converged.mean()),
    }


def report(results: dict) -> None:
    for table, result in results.items():
        print(
            f"\n{table}: {result['networks']} networks, {result['columns']} columns, "
            f"lowest error {result['least_error']:.4f}"
        )
        heads = (
            f"{'seeds':>6}{'median regret':>15}{'quartiles':>18}{'finds best':>12}"
            f"{'rank':>6}{'CPU s':>8}"
        )
        print(f"{'':26}{heads}  final error − arc's")
        for name, row in result["searches"].items():
            final, rank = (
                row["final_regret"],
                result["mean_ranks"].get("methods", {}).get(name),
            )
            band = f"{final['quartile']:.4f} – {final['upper']:.4f}"
            seconds = row["cpu_seconds_a_seed"]
            print(
                f"{name:26}{row['seeds']:6}{final['median']:15.4f}{band:>18}{row['share_that_find_the_best']:12.0%}"
                f"{'' if rank is None else format(rank['final'], '.2f'):>6}"
                f"{'' if seconds is None else format(seconds, '.2f'):>8}  "
                + difference(result["pairs"].get(f"{name} against {ARC}"))
            )
    table, method, limit = SPEED
    used = (
        results.get(table, {})
        .get("searches", {})
        .get(method, {})
        .get("cpu_seconds_a_seed")
    )
    if used is not None:
        verdict = "within" if used <= limit else "beyond"
        print(
            f"\nspeed: {method} on {table}, {used:.1f} CPU seconds per seed without compiling: "
            f"{verdict} {limit:g} s"
        )


def difference(pair: dict | None) -> str:
    if pair is None:
        return ""
    row = pair["final_error"]
    band = (
        ""
        if row["interval"] is None
        else f" [{row['interval'][0]:+.4f}, {row['interval'][1]:+.4f}]"
    )
    return f"{row['mean_difference']:+.4f}{band}, {row['wins']}:{row['losses']}, {row['verdict']}"


def main() -> None:
    parser = common.parser(
        __doc__,
        "raiders_tables",
        smoke="a small synthetic table, as a quick test",
        seeds=f"number of seeds (default {Config.seeds}, {Config.sampled_seeds} if slice-sampled)",
    )
    parser.add_argument(
        "--tables",
        nargs="+",
        choices=problems.TABLES,
        help="which tables (default: all)",
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=METHODS,
        metavar="NAME",
        help=f"some of {', '.join(map(repr, METHODS))}",
    )
    given, config = common.parse(parser, Config(), SMOKE)
    config = replace(
        config,
        tables=tuple(given.tables or config.tables),
        methods=tuple(given.methods or config.methods),
    )

    common.setup(given.out)
    loaded = {
        name: problems.load(name, rate=config.rate, synthetic=config.synthetic)
        for name in config.tables
    }
    search_all(config, given.out, loaded)
    found = {
        table: {
            method: runs_of(config, given.out, table, method).first(
                seeds_of(config, method)
            )
            for method in METHODS
        }
        for table in loaded
    }
    found = {
        table: {method: runs for method, runs in methods.items() if runs}
        for table, methods in found.items()
    }
    results = {
        table: tables_report.summarize(config, loaded[table], methods)
        for table, methods in found.items()
    }
    tables_report.draw_progress(config, loaded, found, given.out / "figure_a.png")
    tables_report.draw_differences(results, given.out / "differences.png")
    tables_report.depths(loaded, results, given.out / "figure_c.png")
    data = (
        "synthetic"
        if config.synthetic
        else "the authors' networks (917 different), and MetaQNN's"
    )
    common.write_json(
        given.out / "raiders_tables.json",
        {
            **common.provenance(),
            "data": data,
            "config": asdict(config),
            "results": results,
        },
    )
    report(results)
    print(f"figures and numbers are in {given.out}")


if __name__ == "__main__":
    main()
