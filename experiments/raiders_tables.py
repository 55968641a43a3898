"""Does a kernel that knows which parameters are relevant find good networks faster? Figure 3 of Raiders, on tables.

Networks that were really trained are searched by looking their validation errors up: the 917 different ones among the
authors' own 951 of up to 5 hidden layers (R-S1), and the convolutional ones of MetaQNN, 1000 on CIFAR-10 and 1300 on SVHN,
whose layers come and go as well. The claims (R-E3): the arc kernel finds good networks faster than a GP to which irrelevant
parameters are random numbers, or better ones; and that GP prefers small networks, while the arc spreads to deeper ones.

All searches suggest one network at a time by log EI of a GP of the logarithm of errors, and differ in the kernel alone; every
network of the table is scored. Beyond the paper: a constant in irrelevant places, products over columns, box and wedge, the
kernels of SMAC3 and BoTorch (gp.masked, gp.blocks), a sum of two arcs, regularised evolution and chance. Hyperparameters
are most probable ones, or slice-sampled as in the paper. In a seed all searches begin with the same networks, so they are
compared in pairs. With --smoke there is a small synthetic table of the form of MetaQNN's.
"""

from dataclasses import asdict, dataclass, replace
from functools import partial

from rich.progress import Progress
from script import flags, ready, record
from script.runs import Runs
from tables import figures, problems, verdicts
from tables.methods import ARC, BLIND, CHANCE, METHODS, SAMPLED, search_of
from tables.runs import do

SPEED = ("raiders", ARC + SAMPLED, 10.0)  # seconds a seed that the 24-column arc search with slice samples may take


@dataclass(frozen=True)
class Config:
    evaluations: int = 50  # the paper's figures go to 50 and beyond
    initial: int = 5  # not stated: the default of bonas, for every search
    steps: int = 20  # evaluations of evidence and gradient a fit, from the last one: twice the default of bonas, which does
    # for a Matérn but leaves the density of the arc, with twice as many unknowns, lower than it could be
    samples: int = 10  # slice samples a suggestion: not stated; Spearmint's number (R-S7)
    burn: int = 0  # sweeps before these: the chain goes on where the last suggestion left it
    rate: bool = True  # MetaQNN's learning rate is a column, though it was set by how the training began (metaqnn.RATES)
    seeds: int = 50
    sampled_seeds: int = 20  # fewer, since a suggestion costs some thirty times as much
    resamples: int = 10_000  # of the seeds, for intervals
    tables: tuple[str, ...] = problems.TABLES
    methods: tuple[str, ...] = METHODS
    synthetic: int = 0  # rows of a made-up table; 0 for the real ones


SMOKE = Config(evaluations=7, initial=3, samples=2, seeds=2, tables=("cifar10",), methods=(ARC, BLIND, CHANCE), synthetic=30)


def settings(config: Config) -> list:
    """What a run depends on."""
    return [config.evaluations, config.initial, config.steps, config.samples, config.burn, config.rate, config.synthetic]


def seeds_of(config: Config, method: str) -> int:
    return min(config.seeds, config.sampled_seeds) if method.endswith(SAMPLED) else config.seeds


def runs_of(config: Config, folder, table: str, method: str) -> Runs:
    name = f"{table}_{method}".replace(",", "").replace(" ", "_")
    return Runs(folder / "runs" / f"{name}.jsonl", settings(config))


def search_all(config: Config, folder, loaded: dict) -> None:
    """Every search of every table and seed that is missing, the fast ones of all tables first."""
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
            runs, seeds = runs_of(config, folder, table, method), seeds_of(config, method)
            task = bars.add_task(f"{table}, {method}", total=seeds, completed=len(runs.of(seeds)))
            search = partial(search_of, method, loaded[table], config)
            do(runs, search, loaded[table].error, config.evaluations, seeds, partial(bars.advance, task))
            bars.remove_task(task)
            bars.advance(total)


def report(results: dict) -> None:
    for table, result in results.items():
        print(f"\n{table}: {result['networks']} networks, {result['columns']} columns, least error {result['least_error']:.4f}")
        heads = f"{'seeds':>6}{'median regret':>15}{'quartiles':>18}{'finds best':>12}{'rank':>6}{'CPU s':>8}"
        print(f"{'':26}{heads}  final error − arc's")
        for name, row in result["searches"].items():
            final, rank = row["final_regret"], result["mean_ranks"].get("methods", {}).get(name)
            band = f"{final['quartile']:.4f} – {final['upper']:.4f}"
            print(
                f"{name:26}{row['seeds']:6}{final['median']:15.4f}{band:>18}{row['share_that_find_the_best']:12.0%}"
                f"{'' if rank is None else format(rank['final'], '.2f'):>6}"
                f"{'' if row['cpu_seconds_a_seed'] is None else format(row['cpu_seconds_a_seed'], '.2f'):>8}  "
                + difference(result["pairs"].get(f"{name} against {ARC}"))
            )
    table, method, limit = SPEED
    used = results.get(table, {}).get("searches", {}).get(method, {}).get("cpu_seconds_a_seed")
    if used is not None:
        verdict = "within" if used <= limit else "beyond"
        print(f"\nspeed: {method} on {table}, {used:.1f} CPU seconds a seed without compiling: {verdict} {limit:g} s")


def difference(pair: dict | None) -> str:
    if pair is None:
        return ""
    row = pair["final_error"]
    band = "" if row["interval"] is None else f" [{row['interval'][0]:+.4f}, {row['interval'][1]:+.4f}]"
    return f"{row['mean_difference']:+.4f}{band}, {row['wins']}:{row['losses']}, {row['verdict']}"


def main() -> None:
    parser = flags.parser(
        __doc__,
        "raiders_tables",
        smoke="a small synthetic table, to see that it runs",
        seeds=f"how many seeds (default {Config.seeds}, {Config.sampled_seeds} where slice-sampled)",
    )
    parser.add_argument("--tables", nargs="+", choices=problems.TABLES, help="which tables (default: all)")
    parser.add_argument("--methods", nargs="+", choices=METHODS, metavar="NAME", help=f"of {', '.join(map(repr, METHODS))}")
    given, config = flags.read(parser, Config(), SMOKE)
    config = replace(config, tables=tuple(given.tables or config.tables), methods=tuple(given.methods or config.methods))

    ready.begin(given.out)
    loaded = {name: problems.load(name, rate=config.rate, synthetic=config.synthetic) for name in config.tables}
    search_all(config, given.out, loaded)
    found = {
        table: {method: runs_of(config, given.out, table, method).of(seeds_of(config, method)) for method in METHODS}
        for table in loaded
    }
    found = {table: {method: runs for method, runs in methods.items() if runs} for table, methods in found.items()}
    results = {table: verdicts.summarise(config, loaded[table], methods) for table, methods in found.items()}
    figures.progress(config, loaded, found, given.out / "figure_a.png")
    figures.differences(results, given.out / "differences.png")
    figures.depths(loaded, results, given.out / "figure_c.png")
    data = "synthetic" if config.synthetic else "the authors' networks (917 different), and MetaQNN's"
    record.write(
        given.out / "raiders_tables.json", {**record.about(), "data": data, "config": asdict(config), "results": results}
    )
    report(results)
    print(f"figures and numbers are in {given.out}")


if __name__ == "__main__":
    main()
