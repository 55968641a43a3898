"""Which searches work in many dimensions, and what do they assume?

Agrawal reviews random embeddings and additive models, tries neither, and hopes for networks that
learn a representation. Here both are compared with later methods: a trust region (Eriksson et al.
2019), a prior under which few columns matter (Eriksson & Jankowiak 2021), GPs whose length scales
grow with the number of columns (Hvarfner, Hellsten & Nardi 2024), linear models, also on a sphere
(Doumont et al. 2025), and Bayesian networks by HMC (Li, Rudner & Wilson 2023). Five problems have
known optima: two active columns of 25 and of 100, ten additive pairs of columns, three
directions of 50, and the 61 weights of a network without known structure.

For a seed the GPs, TuRBO, the network and random search start from the same points; Sobol and
REMBO, whose points lie in planes, have their own. REMBO is given the number of directions if there
are few, and 5 otherwise. "Matérn" has the default prior of bonas, whose length scales already grow
like √d; the length scales of "short scales" do not grow, and "long scales" are Hvarfner's.
"""

from dataclasses import asdict, dataclass, replace
from functools import partial

import jax
import numpy as np
from rich.progress import Progress

from bonas.search import History, Search
from experiments import common
from experiments.beyond import high_report
from experiments.beyond.high_problems import CASES
from experiments.beyond.high_searches import CHANCE, EVEN, METHODS, SAAS
from experiments.common import SavedRuns, run_missing


@dataclass(frozen=True)
class Config:
    # A realistic budget for an expensive objective, small for this many columns
    evaluations: int = 100
    initial: int = 10  # few for the same reason: two per column would use up the budget
    # Evaluations of evidence and gradient per fit, from the last optimum: 10 are too few for 100
    # length scales
    steps: int = 20
    # embeddings of REMBO: the paper's advice for budgets of this size
    embeddings: int = 4
    every: int = 5  # suggestions between new groupings, and between chains of SAAS
    candidates: int = 500  # candidates of TuRBO, sampled jointly
    # A network of 50 units, 40 draws of 4 chains: the smallest setting that still fits; the cost is
    # proportional to the draws.
    widths: tuple[int, ...] = (50,)
    chains: int = 4
    draws: int = 40
    burn: int = 5
    first: int = 100
    leapfrogs: int = 10
    # SAAS: the paper keeps 16 of 256 draws after 512 of burn-in with trajectories of up to 2^6
    saas_samples: int = 8
    saas_thin: int = 2
    saas_burn: int = 64
    saas_depth: int = 5
    seeds: int = 20
    # Seeds of methods that take at least ten times as long: Add-GP-UCB and the network
    slow_seeds: int = 10
    saas_seeds: int = 3  # even fewer, because SAAS takes longer still
    # Problems with few active columns, as SAAS assumes
    saas_cases: tuple[str, ...] = ("branin25", "branin100")
    resamples: int = 10_000  # bootstrap resamples of the seeds, for intervals
    cases: tuple[str, ...] = tuple(CASES)
    methods: tuple[str, ...] = tuple(METHODS)


SMOKE = Config(
    evaluations=9,
    initial=4,
    steps=4,
    candidates=50,
    seeds=2,
    cases=("branin25",),
    methods=(CHANCE, EVEN, "REMBO, low", "TuRBO-1"),
)


def settings(config: Config, method: str) -> dict:
    """Return the settings that a run depends on."""
    names = ("evaluations", "initial", *METHODS[method].uses)
    return {
        name: list(value)
        if isinstance(value := getattr(config, name), tuple)
        else value
        for name in names
    }


def seeds_of(config: Config, method: str) -> int:
    most = (
        config.saas_seeds
        if method == SAAS
        else config.slow_seeds
        if METHODS[method].slow
        else config.seeds
    )
    return min(config.seeds, most)


def jobs_of(config: Config) -> list[tuple[str, str]]:
    """Return every problem with every suitable method, expensive ones last."""
    jobs = [(case, method) for case in config.cases for method in config.methods]
    jobs = [
        (case, method)
        for case, method in jobs
        if not METHODS[method].needs_groups or CASES[case].groups
    ]
    jobs = [
        (case, method)
        for case, method in jobs
        if method != SAAS or case in config.saas_cases
    ]
    return sorted(jobs, key=lambda job: (METHODS[job[1]].slow, job[1] == SAAS))


def runs_of(config: Config, folder, case: str, method: str) -> SavedRuns:
    name = f"{case}_{method}".replace(",", "").replace(" ", "_")
    return SavedRuns(folder / "runs" / f"{name}.jsonl", settings(config, method))


def search_all(config: Config, folder) -> None:
    jobs = jobs_of(config)
    with Progress() as bars:
        total = bars.add_task(
            "all", total=sum(seeds_of(config, method) for _, method in jobs)
        )
        for case, method in jobs:
            runs, seeds = (
                runs_of(config, folder, case, method),
                seeds_of(config, method),
            )
            bars.update(total, description=f"{case}, {method}")
            bars.advance(total, len(runs.first(seeds)))
            run_missing(
                runs,
                partial(METHODS[method].search, CASES[case], config),
                lambda _, case=case: CASES[case].problem.objective,
                config.evaluations,
                seeds,
                describe=describe,
                advance=partial(bars.advance, total),
            )
            jax.clear_caches()  # frees memory: methods share no compiled programs


def describe(search: Search, history: History) -> dict:
    """Return what is saved of a run."""
    info = history.info
    return {
        "values": np.asarray(history.y[0], float).tolist(),
        "random": int(info.random.sum()),
        "converged": float(info.converged.mean()),
        "duplicates": int(info.duplicates.sum()),
        "restarts": int(getattr(history.state, "restarts", np.zeros(1))[0]),
    }


def report(results: dict) -> None:
    for result in results.values():
        print(
            f"\n{result['problem']}: {result['columns']} columns, optimum {result['optimum']:.6g}"
        )
        heads = (
            f"{'assumes':18}{'holds':>6}{'seeds':>6}{'median regret':>15}{'quartiles':>18}"
            f"{'rank':>6}{'CPU s':>7}"
        )
        print(f"{'':22}{heads}  {'against random':26}against Sobol")
        for name, row in result["searches"].items():
            final = row["final_regret"]
            rank = result["mean_ranks"].get(name)
            seconds = row["cpu_seconds_a_seed"]
            holds = "yes" if row["holds"] else "no"
            band = f"{final['quartile']:.2g} – {final['upper']:.2g}"
            beside = [
                format_pair(result["pairs"].get(f"{name} against {other}"))
                for other in (CHANCE, EVEN)
            ]
            print(
                f"{name:22}{row['needs']:18}{holds:>6}{row['seeds']:6}{final['median']:15.3g}"
                f"{band:>18}{'' if rank is None else format(rank, '.1f'):>6}"
                f"{'' if seconds is None else format(seconds, '.2f'):>7}"
                f"  {beside[0]:26}{beside[1]}"
            )


def format_pair(pair: dict | None) -> str:
    """Format wins, losses and the verdict on the log final regrets."""
    if pair is None:
        return ""
    row = pair["log_final_regret"]
    return f"{row['wins']}:{row['losses']}, {row['mean_difference']:+.2f}, {row['verdict']}"


def main() -> None:
    parser = common.parser(
        __doc__,
        "beyond_high_dimensional",
        smoke="one problem and few methods, as a quick test",
        seeds=f"number of seeds (default {Config.seeds}, fewer for slow methods)",
    )
    parser.add_argument(
        "--cases", nargs="+", choices=tuple(CASES), help="which problems (default: all)"
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=tuple(METHODS),
        metavar="NAME",
        help=f"some of {', '.join(map(repr, METHODS))}",
    )
    given, config = common.parse(parser, Config(), SMOKE)
    config = replace(
        config,
        cases=tuple(given.cases or config.cases),
        methods=tuple(given.methods or config.methods),
    )

    common.setup(given.out)
    search_all(config, given.out)
    found = {
        case: {
            method: runs_of(config, given.out, case, method).first(
                seeds_of(config, method)
            )
            for method in METHODS
        }
        for case in config.cases
    }
    found = {
        case: {method: runs for method, runs in methods.items() if runs}
        for case, methods in found.items()
    }
    results = {
        case: high_report.summarize(config, CASES[case], methods)
        for case, methods in found.items()
    }
    high_report.draw_progress(config, found, given.out / "progress.png")
    high_report.draw_finals(results, given.out / "finals.png")
    common.write_json(
        given.out / "beyond_high_dimensional.json",
        {**common.provenance(), "config": asdict(config), "results": results},
    )
    report(results)
    print(
        "\nwins:losses, then the mean paired difference of log10 of the final regret;"
        " negative is better"
    )
    print(f"figures and numbers are in {given.out}")


if __name__ == "__main__":
    main()
