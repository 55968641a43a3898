"""Which searches are of use in many dimensions, and what must they assume? REMBO and additive models beside others (G-F4).

Agrawal reviews two ways to many dimensions, random embeddings (G-D7) and additive models (G-D8), tries neither, and hopes for
networks that learn a representation (G-F1). Here both are tried, with those that came later: a trust region (Eriksson et al.
2019), a prior by which few columns matter (Eriksson & Jankowiak 2021), plain GPs with length scales that grow with the number
of columns (Hvarfner, Hellsten & Nardi 2024), linear models, bare and on a sphere (Doumont et al. 2025), and Bayesian networks
by HMC (Li, Rudner & Wilson 2023). Five problems with known optima: two live columns of 25 and of 100, ten pairs of columns
that add up, three directions of 50, and the 61 weights of a network, for which no structure is known.

In a seed the GPs, TuRBO, the network and random search begin with the same points; Sobol and REMBO, whose points lie in planes,
have their own. REMBO is told the number of directions where there are few, and 5 elsewhere. "Matérn" has the prior of bonas,
whose length scales grow like √d already; those of "short scales" do not, and "long scales" are Hvarfner's.
"""

from dataclasses import asdict, dataclass, replace
from functools import partial

from high import figures, verdicts
from high.cases import CASES
from high.methods import CHANCE, EVEN, METHODS, SAAS
from high.runs import do
from rich.progress import Progress
from script import flags, ready, record
from script.runs import Runs


@dataclass(frozen=True)
class Config:
    evaluations: int = 100  # few for so many columns, and what an expensive objective allows
    initial: int = 10  # as few: nobody can afford two a column
    steps: int = 20  # evaluations of evidence and gradient a fit, from the last one: with 100 length scales 10 are few
    embeddings: int = 4  # of REMBO: the paper's advice for budgets of this size
    every: int = 5  # asks between new groupings, and between chains of SAAS
    candidates: int = 500  # of TuRBO, drawn jointly
    # a network of 50 units, 40 draws of 4 chains: the least that still fits; twice the draws cost twice the time
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
    dear_seeds: int = 10  # of those whose runs take ten times as long, or more: Add-GP-UCB and the network
    saas_seeds: int = 3  # dearer still
    saas_cases: tuple[str, ...] = ("branin25", "branin100")  # few columns matter, as it assumes
    resamples: int = 10_000  # of the seeds, for intervals
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
    """What a run depends on."""
    names = ("evaluations", "initial", *METHODS[method].uses)
    return {name: list(value) if isinstance(value := getattr(config, name), tuple) else value for name in names}


def seeds_of(config: Config, method: str) -> int:
    most = config.saas_seeds if method == SAAS else config.dear_seeds if METHODS[method].dear else config.seeds
    return min(config.seeds, most)


def jobs_of(config: Config) -> list[tuple[str, str]]:
    """Every problem with every method that suits it: the dear ones last."""
    wanted = [(case, method) for case in config.cases for method in config.methods]
    wanted = [(case, method) for case, method in wanted if not METHODS[method].told or CASES[case].groups]
    wanted = [(case, method) for case, method in wanted if method != SAAS or case in config.saas_cases]
    return sorted(wanted, key=lambda job: (METHODS[job[1]].dear, job[1] == SAAS))


def runs_of(config: Config, folder, case: str, method: str) -> Runs:
    name = f"{case}_{method}".replace(",", "").replace(" ", "_")
    return Runs(folder / "runs" / f"{name}.jsonl", settings(config, method))


def search_all(config: Config, folder) -> None:
    jobs = jobs_of(config)
    with Progress() as bars:
        total = bars.add_task("all", total=sum(seeds_of(config, method) for _, method in jobs))
        for case, method in jobs:
            runs, seeds = runs_of(config, folder, case, method), seeds_of(config, method)
            bars.update(total, description=f"{case}, {method}")
            bars.advance(total, len(runs.of(seeds)))
            search = partial(METHODS[method].search, CASES[case], config)
            do(runs, search, CASES[case].problem, config.evaluations, seeds, partial(bars.advance, total))


def report(results: dict) -> None:
    for result in results.values():
        print(f"\n{result['problem']}: {result['columns']} columns, optimum {result['optimum']:.6g}")
        heads = f"{'assumes':18}{'holds':>6}{'seeds':>6}{'median regret':>15}{'quartiles':>18}{'rank':>6}{'CPU s':>7}"
        print(f"{'':22}{heads}  {'against random':26}against Sobol")
        for name, row in result["searches"].items():
            final, rank, used = row["final_regret"], result["mean_ranks"].get(name), row["cpu_seconds_a_seed"]
            band = f"{final['quartile']:.2g} – {final['upper']:.2g}"
            beside = [compared(result["pairs"].get(f"{name} against {other}")) for other in (CHANCE, EVEN)]
            print(
                f"{name:22}{row['needs']:18}{'yes' if row['holds'] else 'no':>6}{row['seeds']:6}{final['median']:15.3g}"
                f"{band:>18}{'' if rank is None else format(rank, '.1f'):>6}{'' if used is None else format(used, '.2f'):>7}"
                f"  {beside[0]:26}{beside[1]}"
            )


def compared(pair: dict | None) -> str:
    """Who won how often, and the verdict of the mean difference of the logarithms."""
    if pair is None:
        return ""
    row = pair["log_final_regret"]
    return f"{row['wins']}:{row['losses']}, {row['mean_difference']:+.2f}, {row['verdict']}"


def main() -> None:
    parser = flags.parser(
        __doc__,
        "high_dimensional",
        smoke="one problem and few methods, to see that it runs",
        seeds=f"how many seeds (default {Config.seeds}, fewer for the dear ones)",
    )
    parser.add_argument("--cases", nargs="+", choices=tuple(CASES), help="which problems (default: all)")
    parser.add_argument(
        "--methods", nargs="+", choices=tuple(METHODS), metavar="NAME", help=f"of {', '.join(map(repr, METHODS))}"
    )
    given, config = flags.read(parser, Config(), SMOKE)
    config = replace(config, cases=tuple(given.cases or config.cases), methods=tuple(given.methods or config.methods))

    ready.begin(given.out)
    search_all(config, given.out)
    found = {
        case: {method: runs_of(config, given.out, case, method).of(seeds_of(config, method)) for method in METHODS}
        for case in config.cases
    }
    found = {case: {method: runs for method, runs in methods.items() if runs} for case, methods in found.items()}
    results = {case: verdicts.summarise(config, CASES[case], methods) for case, methods in found.items()}
    figures.progress(config, found, given.out / "progress.png")
    figures.finals(results, given.out / "finals.png")
    record.write(given.out / "high_dimensional.json", {**record.about(), "config": asdict(config), "results": results})
    report(results)
    print("\ndifferences are of log10 of the final regret, seed by seed: below 0, better; wins to losses before them")
    print(f"figures and numbers are in {given.out}")


if __name__ == "__main__":
    main()
