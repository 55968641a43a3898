"""Which GPAR describes learning curves best? Hutchinson, Section 5.4, Tables 5.1 to 5.4.

Tables 5.1 and 5.2 compare kernels; 5.3 and 5.4 compare Markov orders, tied length scales and joint
fits. Scores are posterior predictive log densities of held-out curves, noise included, of the three
checkpoints of a network together, in units of the standard deviation of each checkpoint: three
independent standard normals would score −4.26. The published numbers are not comparable: they are
densities of unscaled values under a prior for scaled ones, and the bodies of Tables 5.3 and 5.4
are copies of 5.1 and 5.2. With three checkpoints a Markov order of 3 equals no limit. Without ties
the layers share nothing, so a joint fit equals a fit layer by layer; both are run as a check.

The data are four sets of real learning curves, a synthetic set, and the table of Bayesian networks;
missing sets are skipped and named. Each run draws the same number of networks as in Hutchinson's
sets. Half are held out; the other half, or 10 of it, are for training. Every model has the same
draws, so models are compared in pairs. Every row is saved, and a second call fits the missing ones.
"""

import json
from dataclasses import asdict, dataclass, replace
from itertools import product

import numpy as np
from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bonas.curves import gpar
from bonas.problems import learning_curves, tables
from experiments import common, compare
from experiments.hutchinson import gpar_figures as figures
from experiments.hutchinson import gpar_models as fits


@dataclass(frozen=True)
class Config:
    sets: tuple[str, ...] | None = None  # None: all available sets
    models: tuple[str, ...] | None = None  # None: all models
    networks: int = 84  # as in most of Hutchinson's sets
    few: int = 10  # training networks in Table 5.2; the author's code has 12
    steps: int = 100  # evaluations per fit; his iterations
    # Slice samples of the hyperparameters, after the same number of burn-in sweeps
    samples: int = 20
    seen: int = 3  # observed checkpoints in the figure
    shown: int = 4  # curves per panel
    resamples: int = 10_000  # bootstrap resamples of intervals
    runs: int = 10  # the thesis has 5, the author's code 6


def kernel(line: bool, linear: bool, bends: bool) -> str:
    """Return the name of a kernel: linear in the inputs, linear or nonlinear in earlier outputs."""
    return " / ".join(
        word if used else "–"
        for word, used in (("line", line), ("linear", linear), ("bends", bends))
    )


def structure(markov: int | None, tied: bool, how: str) -> str:
    return f"{'3, none' if markov is None else markov} / {'tied' if tied else 'free'} / {how}"


CHOSEN, SLICE = (
    kernel(False, True, False),
    f"{kernel(False, True, False)}, by slice sampling",
)
TIED, LAYERED, FREE = (
    structure(1, True, "joint"),
    structure(1, True, "layer by layer"),
    structure(1, False, "joint"),
)
MODELS = {  # (study, row): the model and how it is fitted
    **{
        ("kernels", kernel(*each)): (
            gpar(linear_inputs=each[0], linear=each[1], nonlinear=each[2]),
            "joint",
        )
        for each in product((False, True), repeat=3)
    },
    ("kernels", SLICE): (gpar(), "slice"),
    **{
        ("structure", structure(markov, tied, how)): (
            gpar(nonlinear=True, markov=markov, tied=tied),
            how,
        )
        for markov, tied, how in product(
            (1, None), (True, False), ("joint", "layer by layer")
        )
    },
}
SMOKE = Config(
    (fits.STAND_IN,),
    (CHOSEN, SLICE, TIED, LAYERED),
    12,
    few=3,
    steps=3,
    samples=2,
    shown=2,
    resamples=50,
    runs=2,
)
HEADS = {
    "kernels": "inputs / outputs / outputs",
    "structure": "Markov / length scales / fit",
}


def main() -> None:
    args, config = arguments()
    common.setup(args.out)
    lines = args.out / "hutchinson_gpar_fits.jsonl"
    found, missing = load(config)
    settings = json.loads(json.dumps(asdict(replace(config, sets=None, models=None))))
    rows = [row for row in common.read_lines(lines) if row["config"] == settings]
    done = {(row["set"], row["train"], row["study"], row["model"]) for row in rows}
    sizes = (config.networks // 2, config.few)
    wanted = [
        (name, train, *key)
        for name in found
        for key in chosen_models(config)
        for train in sizes
    ]
    for name, train, study, model in track(
        [each for each in wanted if each not in done], description="fits"
    ):
        split = fits.splits(found[name], config.networks, train, config.runs)
        values = fits.scores(
            *MODELS[study, model], split, steps=config.steps, samples=config.samples
        )
        rows.append(
            {
                "set": name,
                "train": train,
                "study": study,
                "model": model,
                "config": settings,
                "scores": values,
            }
        )
        common.append_line(lines, rows[-1])
    continued = figure_curves(config, found)
    figures.draw(continued, config.shown, args.out / "curves.png")
    selected = [row for row in rows if row["set"] in found]
    covered = {name: one.covered for name, one in continued.items()}
    facts = {
        "config": settings,
        "stand_in": args.smoke,
        "missing": missing,
        "share_within_two_deviations": covered,
    }
    report = {**common.provenance(), **facts, **results(config, selected)}
    common.write_json(args.out / "hutchinson_gpar_fits.json", report)
    show(report, list(found), Console(width=60 + 18 * len(found)))
    print(f"\nwritten to {args.out}")


def arguments():
    parser = common.parser(
        __doc__,
        "hutchinson_gpar_fits",
        smoke="tiny sizes, only the synthetic set, as a quick test",
        seeds="number of runs, each with different networks (default 10)",
    )
    return common.parse(parser, Config(), SMOKE, seeds_field="runs")


def chosen_models(config: Config) -> list[tuple[str, str]]:
    return [key for key in MODELS if config.models is None or key[1] in config.models]


def load(config: Config) -> tuple[dict[str, tables.Table], list[str]]:
    """Return the available sets, and the names of the others."""
    found, missing = {}, []
    for name in config.sets or fits.names():
        try:
            found[name] = fits.load(name)
        except (FileNotFoundError, ConnectionError):
            missing.append(name)
    return found, missing


def figure_curves(config: Config, found: dict) -> dict[str, fits.Continued]:
    """Return the curves of the figure, with more checkpoints than the fits."""
    given = {}
    for name in found:
        table = found[name]
        if name in fits.EPOCHS:
            table = learning_curves.load(name, progress=False)
            last = int(table.steps[-1])
            table = tables.checkpoints(
                table,
                sorted({*range(max(last // 15, 1), last, max(last // 15, 1)), last}),
            )
        if name in fits.EPOCHS or len(found) == 1:
            seen, half = min(config.seen, len(table.steps) - 1), config.networks // 2
            given[name] = fits.predict_rest(table, seen, half, half, config.steps)
    return given


def results(config: Config, rows: list[dict]) -> dict:
    """Return means and standard deviations over runs, and paired tests of the thesis's claims."""
    by = {
        (row["set"], row["train"], row["study"], row["model"]): np.array(row["scores"])
        for row in rows
    }
    table = [
        {
            "set": name,
            "train": train,
            "study": study,
            "model": model,
            "mean": float(of.mean()),
            "std": float(of.std(ddof=1)),
        }
        for (name, train, study, model), of in by.items()
    ]
    claims = []
    for text, study, better, worse, trains in remarks(config):
        for name, train in sorted(
            {(row["set"], row["train"]) for row in rows if row["train"] in trains}
        ):
            one, other = (
                by.get((name, train, study, model)) for model in (better, worse)
            )
            if one is not None and other is not None:
                # `paired` expects losses, so scores change sign
                verdict = compare.paired(-one, -other, config.resamples)
                claims.append({"claim": text, "set": name, "train": train, **verdict})
    return {"scores": table, "claims": claims}


def remarks(config: Config):
    """Yield the claims of Section 5.4 as pairs of rows."""
    both, few = (config.networks // 2, config.few), (config.few,)
    yield "a joint fit is better", "structure", TIED, LAYERED, both
    yield "ties help with little data", "structure", TIED, FREE, few
    yield "linear outputs help", "kernels", CHOSEN, kernel(False, False, False), both
    yield "and are enough", "kernels", CHOSEN, kernel(False, True, True), both
    yield "sampling helps", "kernels", SLICE, CHOSEN, both


def show(report: dict, sets: list[str], console: Console) -> None:
    scores = {
        (row["study"], row["train"], row["model"], row["set"]): row
        for row in report["scores"]
    }
    for study, train in dict.fromkeys(
        (row["study"], row["train"]) for row in report["scores"]
    ):
        console.print(
            "\nMean log predictive density of a held-out curve ± sd over runs, "
            f"{train} training curves"
        )
        table = Table(HEADS[study], *sets, box=box.MARKDOWN)
        for model in dict.fromkeys(
            row["model"] for row in report["scores"] if row["study"] == study
        ):
            cells = [scores[study, train, model, name] for name in sets]
            table.add_row(
                model, *(f"{cell['mean']:.3g} ± {cell['std']:.2g}" for cell in cells)
            )
        console.print(table)
    table = Table(
        "claim", "set", "trained on", "difference (95 %)", "verdict", box=box.MARKDOWN
    )
    for row in report["claims"]:
        low, high = row["interval"] or (float("nan"),) * 2
        cells = f"{-row['mean_difference']:+.3g} ({-high:+.2g} to {-low:+.2g})"
        table.add_row(
            row["claim"], row["set"], str(row["train"]), cells, row["verdict"]
        )
    console.print(table)
    for name, share in report["share_within_two_deviations"].items():
        console.print(
            f"{name}: {share:.0%} of the remaining values of partly observed curves lie within"
            " two standard deviations"
        )
    if report["missing"]:
        console.print(
            f"skipped because the data are missing: {', '.join(report['missing'])}"
        )


if __name__ == "__main__":
    main()
