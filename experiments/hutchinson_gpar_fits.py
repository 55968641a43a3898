"""Which GPAR describes learning curves best? Hutchinson, Section 5.4: kernels (Tables 5.1, 5.2), then Markov order, tied length
scales and a joint fit (Tables 5.3, 5.4).

Scores are posterior predictive log likelihoods of held-out curves, noise included, a network's three checkpoints together, in
units of the standard deviation of each checkpoint: three independent standard normals would score −4.26. Published numbers
are no targets: theirs is the density of values as they are under a prior for scaled ones (H-S8), and the bodies of Tables 5.3
and 5.4 are copies of 5.1 and 5.2 (H-X6). With three checkpoints a Markov order of 3 is the same model as none. Without ties
the layers share nothing, so that a joint fit is one layer by layer; both are run all the same, which shows it.

Sets: four of real learning curves, the synthetic one of H-S10, and the Bayesian networks where their table is there. Sets
that are missing are left out, and named. Each run draws as many networks as Hutchinson's sets have: half are held out, the
other half, or 10 of it, are trained on. Every model has the same draws, so they are compared in pairs.

Each row is written down as it ends, and a second call does what is missing.
"""

import json
from dataclasses import asdict, dataclass, replace
from itertools import product

import numpy as np
from learning import figures, fits
from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table
from script import flags, pairs, ready, record

from bonas import gp
from bonas.problems import learning_curves, tables


@dataclass(frozen=True)
class Config:
    sets: tuple[str, ...] | None = None  # all that are there
    models: tuple[str, ...] | None = None  # all
    networks: int = 84  # as in most of Hutchinson's sets (H-S1)
    few: int = 10  # to train on: Table 5.2; its code has 12 (H-S8)
    steps: int = 100  # evaluations of a fit, as his iterations
    samples: int = 20  # of the hyperparameters by slice sampling, after as many sweeps
    seen: int = 3  # checkpoints of the figure's curves
    shown: int = 4  # curves a panel
    resamples: int = 10_000  # of intervals
    runs: int = 10  # the thesis has 5, its code 6


def kernel(line: bool, linear: bool, bends: bool) -> str:
    """The name of a row: a line of the inputs, a linear function of the outputs before, a nonlinear one."""
    return " / ".join(word if there else "–" for word, there in (("line", line), ("linear", linear), ("bends", bends)))


def structure(markov: int | None, tied: bool, how: str) -> str:
    return f"{'3, none' if markov is None else markov} / {'tied' if tied else 'free'} / {how}"


CHOSEN, SLICE = kernel(False, True, False), f"{kernel(False, True, False)}, by slice sampling"
TIED, LAYERED, FREE = structure(1, True, "joint"), structure(1, True, "layer by layer"), structure(1, False, "joint")
MODELS = {  # (study, row): the model and how it is fitted
    **{
        ("kernels", kernel(*each)): (gp.gpar(linear_inputs=each[0], linear=each[1], nonlinear=each[2]), "joint")
        for each in product((False, True), repeat=3)
    },
    ("kernels", SLICE): (gp.gpar(), "slice"),
    **{
        ("structure", structure(markov, tied, how)): (gp.gpar(nonlinear=True, markov=markov, tied=tied), how)
        for markov, tied, how in product((1, None), (True, False), ("joint", "layer by layer"))
    },
}
SMOKE = Config((fits.STAND_IN,), (CHOSEN, SLICE, TIED, LAYERED), 12, few=3, steps=3, samples=2, shown=2, resamples=50, runs=2)
HEADS = {"kernels": "inputs / outputs / outputs", "structure": "Markov / length scales / fit"}


def main() -> None:
    args, config = arguments()
    ready.begin(args.out)
    lines = args.out / "hutchinson_gpar_fits.jsonl"
    found, missing = load(config)
    settings = json.loads(json.dumps(asdict(replace(config, sets=None, models=None))))
    rows = [row for row in record.lines(lines) if row["config"] == settings]
    done = {(row["set"], row["train"], row["study"], row["model"]) for row in rows}
    sizes = (config.networks // 2, config.few)
    wanted = [(name, train, *key) for name in found for key in chosen(config) for train in sizes]
    for name, train, study, model in track([each for each in wanted if each not in done], description="fits"):
        split = fits.splits(found[name], config.networks, train, config.runs)
        values = fits.scores(*MODELS[study, model], split, steps=config.steps, samples=config.samples)
        rows.append({"set": name, "train": train, "study": study, "model": model, "config": settings, "scores": values})
        record.add(lines, rows[-1])
    continued = continuations(config, found)
    figures.draw(continued, config.shown, args.out / "curves.png")
    kept = [row for row in rows if row["set"] in found]
    covered = {name: one.covered for name, one in continued.items()}
    facts = {"config": settings, "stand_in": args.smoke, "missing": missing, "share_within_two_deviations": covered}
    report = {**record.about(), **facts, **results(config, kept)}
    record.write(args.out / "hutchinson_gpar_fits.json", report)
    show(report, list(found), Console(width=60 + 18 * len(found)))
    print(f"\nwritten to {args.out}")


def arguments():
    parser = flags.parser(
        __doc__,
        "hutchinson_gpar_fits",
        smoke="tiny sizes on the synthetic set alone, to see that it runs",
        seeds="runs, each with other networks (default 10)",
    )
    return flags.read(parser, Config(), SMOKE, counted="runs")


def chosen(config: Config) -> list[tuple[str, str]]:
    return [key for key in MODELS if config.models is None or key[1] in config.models]


def load(config: Config) -> tuple[dict[str, tables.Table], list[str]]:
    """The sets that are there, and the names of the others."""
    found, missing = {}, []
    for name in config.sets or fits.names():
        try:
            found[name] = fits.load(name)
        except (FileNotFoundError, ConnectionError):
            missing.append(name)
    return found, missing


def continuations(config: Config, found: dict) -> dict[str, fits.Continued]:
    """Curves of the figure, of more checkpoints than the fits have: every second epoch, or about so."""
    given = {}
    for name in found:
        table = found[name]
        if name in fits.EPOCHS:
            table = learning_curves.load(name, progress=False)
            last = int(table.steps[-1])
            table = tables.checkpoints(table, sorted({*range(max(last // 15, 1), last, max(last // 15, 1)), last}))
        if name in fits.EPOCHS or len(found) == 1:
            seen, half = min(config.seen, len(table.steps) - 1), config.networks // 2
            given[name] = fits.continued(table, seen, half, half, config.steps)
    return given


def results(config: Config, rows: list[dict]) -> dict:
    """Means and standard deviations over runs, and what they say of the thesis's remarks, in pairs of runs."""
    by = {(row["set"], row["train"], row["study"], row["model"]): np.array(row["scores"]) for row in rows}
    table = [
        {"set": name, "train": train, "study": study, "model": model, "mean": float(of.mean()), "std": float(of.std(ddof=1))}
        for (name, train, study, model), of in by.items()
    ]
    claims = []
    for text, study, better, worse, trains in remarks(config):
        for name, train in sorted({(row["set"], row["train"]) for row in rows if row["train"] in trains}):
            one, other = (by.get((name, train, study, model)) for model in (better, worse))
            if one is not None and other is not None:
                verdict = pairs.against(-one, -other, config.resamples)  # of scores to be minimised
                claims.append({"claim": text, "set": name, "train": train, **verdict})
    return {"scores": table, "claims": claims}


def remarks(config: Config):
    """What the prose of Section 5.4 says, as pairs of rows; its tables cannot tell."""
    both, few = (config.networks // 2, config.few), (config.few,)
    yield "a joint fit is better", "structure", TIED, LAYERED, both
    yield "ties help with little data", "structure", TIED, FREE, few
    yield "linear outputs help", "kernels", CHOSEN, kernel(False, False, False), both
    yield "and are enough", "kernels", CHOSEN, kernel(False, True, True), both
    yield "sampling helps", "kernels", SLICE, CHOSEN, both


def show(report: dict, sets: list[str], console: Console) -> None:
    scores = {(row["study"], row["train"], row["model"], row["set"]): row for row in report["scores"]}
    for study, train in dict.fromkeys((row["study"], row["train"]) for row in report["scores"]):
        console.print(f"\nMean log predictive density of a held-out curve ± sd over runs, {train} curves to train on")
        table = Table(HEADS[study], *sets, box=box.MARKDOWN)
        for model in dict.fromkeys(row["model"] for row in report["scores"] if row["study"] == study):
            cells = [scores[study, train, model, name] for name in sets]
            table.add_row(model, *(f"{cell['mean']:.3g} ± {cell['std']:.2g}" for cell in cells))
        console.print(table)
    table = Table("claim", "set", "trained on", "difference (95 %)", "verdict", box=box.MARKDOWN)
    for row in report["claims"]:
        low, high = row["interval"] or (float("nan"),) * 2
        cells = f"{-row['mean_difference']:+.3g} ({-high:+.2g} to {-low:+.2g})"
        table.add_row(row["claim"], row["set"], str(row["train"]), cells, row["verdict"])
    console.print(table)
    for name, share in report["share_within_two_deviations"].items():
        console.print(f"{name}: {share:.0%} of the rest of curves that had begun lies within two standard deviations")
    if report["missing"]:
        console.print(f"left out, since they are not there: {', '.join(report['missing'])}")


if __name__ == "__main__":
    main()
