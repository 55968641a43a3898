"""Time GPAR: a fit and samples at all candidates, by bonas and by the `gpar` package.

Both have the model that Hutchinson chose (Section 5.4), the same standardized curves, the same
initial hyperparameters and the same objective, the evidence without a prior. Compiling and
importing are not counted.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table

import bonas
from bonas import infer
from bonas.curves import gpar
from bonas.problems import tables
from experiments.benchmarks.rivals.contenders import Clock

NAMES = ("bonas", "gpar")
RIVAL = Path(__file__).parent / "rivals" / "gpar_curves.py"


@dataclass(frozen=True)
class Gpar:
    candidates: int = 84  # networks in most of Hutchinson's searches
    # Networks with one, two and three observed checkpoints, as late in a search
    seen: tuple[int, ...] = (20, 20, 20)
    samples: int = 50  # samples of the curves of the candidates
    # iterations per fit, as in Hutchinson's scripts; evaluations in bonas
    iterations: int = 100
    # His initial length scales of depth and log10 of the width; so are the next two
    lengthscale: tuple[float, ...] = (1.0, 0.5)
    slope: float = 0.1
    noise: float = 0.01
    calls: int = 5  # calls of a compiled function; the median is reported


SMALL = Gpar(candidates=9, seen=(2, 2, 3), samples=3, iterations=3, calls=1)


def problem(config: Gpar, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return depth and log10 width (m, 2) of the candidates and their curves (m, 3) with NaN."""
    table = tables.gpar_prior(jax.random.key(seed), slope=1.0)
    draw = np.random.default_rng(seed)
    rows = draw.choice(len(table.x), config.candidates, replace=False)
    values = [table.space.decode(row) for row in np.asarray(table.x)[rows]]
    places = np.array([[value["depth"], np.log10(value["width"])] for value in values])
    observed = np.repeat(
        [1, 2, 3, 0], [*config.seen, config.candidates - sum(config.seen)]
    )
    y = np.where(
        np.arange(3)[None, :] < observed[:, None],
        np.asarray(table.values)[rows, 0],
        np.nan,
    )
    return places, (y - np.nanmean(y, axis=0)) / np.nanstd(y, axis=0)


def start(config: Gpar) -> dict:
    kernel = {
        "variance": jnp.ones(3),
        "lengthscale": jnp.array(config.lengthscale),
        "slope": jnp.full((3, 3), config.slope),
    }
    return {"kernel": kernel, "noise": jnp.full(3, config.noise)}


def data_of(config: Gpar, seed: int):
    """Return all candidates, and the observed curves as a dataset."""
    places, y = problem(config, seed)
    seen = ~np.isnan(y[:, 0])
    return places, bonas.dataset(places[seen], y[seen])


def by_bonas(config: Gpar, seed: int, args) -> dict:
    model = gpar()
    places, data = data_of(config, seed)

    def evidence(z, data):
        return model.log_evidence(jax.tree.map(jnp.exp, z), data)

    def fit(key, z, data):
        found, info = infer.maximize(
            key, lambda z: evidence(z, data), z, steps=config.iterations
        )
        return jax.tree.map(lambda leaf: leaf[0], found), info.log_density[0]

    def sample(key, z, data, x):
        return model.sample(
            key, model.condition(jax.tree.map(jnp.exp, z), data), x, config.samples
        )[:, :, -1]

    key, first = jax.random.key(seed), jax.tree.map(jnp.log, start(config))
    (z, reached), fitting = timed(fit, config.calls, key, first, data)
    draws, sampling = timed(sample, config.calls, key, z, data, jnp.asarray(places))
    moments = {
        "mean": np.asarray(draws).mean(axis=0).tolist(),
        "std": np.asarray(draws).std(axis=0).tolist(),
    }
    return {
        "fit": fitting,
        "sample": sampling,
        "evidence_at_start": float(evidence(first, data)),
        "evidence": float(reached),
        **moments,
    }


def timed(function, calls: int, *arguments):
    """Return the result, the median time of a warm call, and the time of compiling."""
    clock = Clock()
    program = jax.jit(function).lower(*arguments).compile()
    compiling, spent = clock.read()["seconds"], []
    result = jax.block_until_ready(program(*arguments))
    for _ in range(calls):
        clock = Clock()
        result = jax.block_until_ready(program(*arguments))
        spent.append(clock.read())
    return result, {
        name: float(np.median([one[name] for one in spent])) for name in spent[0]
    } | {"compile_seconds": compiling}


def by_gpar(config: Gpar, seed: int, args) -> dict:
    """Time both ways to fit, and evaluate the evidence of bonas at the fitted hyperparameters."""
    places, data = data_of(config, seed)
    y = [
        [float(v) if observed else None for v, observed in zip(*row, strict=True)]
        for row in zip(data.y, data.mask, strict=True)
    ]
    arrays = {"x": np.asarray(data.x).tolist(), "y": y, "candidates": places.tolist()}
    initial = {
        "lengthscale": config.lengthscale,
        "slope": config.slope,
        "noise": config.noise,
    }
    job = {
        **arrays,
        "start": initial,
        "iterations": config.iterations,
        "samples": config.samples,
        "seed": seed,
    }
    file = args.out / "job.json"
    file.write_text(json.dumps(job), encoding="utf-8")
    try:
        command = [args.rivals, str(RIVAL), str(file)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    finally:
        file.unlink()
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    found = {"layer by layer" if row.pop("layered") else "joint": row for row in rows}
    for row in found.values():
        row["evidence_by_bonas"] = float(
            gpar().log_evidence(params_of(config, row["variables"]), data)
        )
    return found


def params_of(config: Gpar, variables: dict) -> dict:
    """Convert the hyperparameters of the other library to the form of bonas."""
    params = start(config)
    slope = np.array(params["kernel"]["slope"])
    for i in (1, 2):
        slope[i, i - 1] = 1.0 / variables[f"{i}/output/lin/scales"][0]
    variance, noise = (
        jnp.array([variables[f"{i}/{name}"] for i in range(3)])
        for name in ("input/var", "noise")
    )
    kernel = {
        "variance": variance,
        "lengthscale": jnp.array(variables["0/input/scales"]),
        "slope": jnp.asarray(slope),
    }
    return {"kernel": kernel, "noise": noise}


MEASURE = {"bonas": by_bonas, "gpar": by_gpar}


def summary(runs: list[dict]) -> dict:
    """Return medians over seeds, ratios to bonas, and differences of the evidence."""
    ours = {row["seed"]: row for row in runs if row["name"] == "bonas"}
    theirs = {
        row["seed"]: row
        for row in runs
        if row["name"] == "gpar" and row["seed"] in ours
    }
    found: dict = {
        "bonas": seconds(list(ours.values())),
        "evidence": median(row["evidence"] for row in ours.values()),
    }
    for way in ("joint", "layer by layer") if theirs else ():
        rows = [row[way] for row in theirs.values()]
        apart = [
            abs(row[way]["evidence_at_start"] - ours[seed]["evidence_at_start"])
            for seed, row in theirs.items()
        ]
        apart += [abs(row["evidence_by_bonas"] - row["evidence"]) for row in rows]
        spent = seconds(rows)
        found[f"gpar, {way}"] = {
            **spent,
            "times_bonas": {part: spent[part] / found["bonas"][part] for part in spent},
            "evidence": median(row["evidence"] for row in rows),
            "evidences_of_the_same_apart": max(apart),
        }
    return found


def seconds(rows: list[dict]) -> dict:
    """Return median CPU seconds of fit, sample and both."""
    fit, sample = (
        median(row[part]["cpu_seconds"] for row in rows) for part in ("fit", "sample")
    )
    return {"fit": fit, "sample": sample, "both": fit + sample}


def median(values) -> float:
    return float(np.median(list(values)))


def show(report: dict, console) -> None:
    table = Table(
        "GPAR",
        "fit, ms",
        "samples, ms",
        "both, ms",
        "× bonas: fit",
        "samples",
        "both",
        "log evidence reached",
    )
    for name, row in report.items():
        if name == "evidence":
            continue
        times = row.get("times_bonas", {})
        reached = row.get("evidence", report["evidence"])
        cells = [f"{1e3 * row[part]:.1f}" for part in ("fit", "sample", "both")]
        table.add_row(
            name,
            *cells,
            *(
                f"{times[part]:.1f}" if times else ""
                for part in ("fit", "sample", "both")
            ),
            f"{reached:.2f}",
        )
    console.print(table)
    for name, row in report.items():
        if isinstance(row, dict) and "evidences_of_the_same_apart" in row:
            difference = row["evidences_of_the_same_apart"]
            console.print(
                f"{name}: log evidences at equal hyperparameters differ by {difference:.1e}"
            )
