"""The half of bench_curves.py about GPAR: a fit, and samples at all candidates, by bonas and by the `gpar` of PyPI.

Both have the model that Hutchinson chose (H-E4), the same curves, which are standardised beforehand, the same hyperparameters
to begin with and the same objective, the evidence without a prior; neither compiling nor importing counts.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table
from rivals.contenders import Clock

import bonas
from bonas import gp, infer
from bonas.problems import tables

NAMES = ("bonas", "gpar")
RIVAL = Path(__file__).parents[1] / "rivals" / "gpar_curves.py"


@dataclass(frozen=True)
class Gpar:
    candidates: int = 84  # networks of most of Hutchinson's searches (H-S1)
    seen: tuple[int, ...] = (20, 20, 20)  # networks of which one, two and three checkpoints are known, as late in a search
    samples: int = 50  # of the curves at the candidates (H-A2)
    iterations: int = 100  # of a fit: what Hutchinson's scripts ask for (H-S7); evaluations in bonas
    lengthscale: tuple[float, ...] = (1.0, 0.5)  # where his fits start, of depth and log10 of the width; so the next two
    slope: float = 0.1
    noise: float = 0.01
    calls: int = 5  # of what is compiled; the median counts


SMALL = Gpar(candidates=9, seen=(2, 2, 3), samples=3, iterations=3, calls=1)


def problem(config: Gpar, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Places (m, 2), depth and log10 of the width, of the candidates, and their curves (m, 3), NaN where they are not known."""
    table = tables.gpar_prior(jax.random.key(seed), slope=1.0)
    draw = np.random.default_rng(seed)
    rows = draw.choice(len(table.x), config.candidates, replace=False)
    values = [table.space.decode(row) for row in np.asarray(table.x)[rows]]
    places = np.array([[value["depth"], np.log10(value["width"])] for value in values])
    known = np.repeat([1, 2, 3, 0], [*config.seen, config.candidates - sum(config.seen)])
    y = np.where(np.arange(3)[None, :] < known[:, None], np.asarray(table.values)[rows, 0], np.nan)
    return places, (y - np.nanmean(y, axis=0)) / np.nanstd(y, axis=0)


def start(config: Gpar) -> dict:
    kernel = {"variance": jnp.ones(3), "lengthscale": jnp.array(config.lengthscale), "slope": jnp.full((3, 3), config.slope)}
    return {"kernel": kernel, "noise": jnp.full(3, config.noise)}


def data_of(config: Gpar, seed: int):
    """All candidates, and the curves that have begun."""
    places, y = problem(config, seed)
    seen = ~np.isnan(y[:, 0])
    return places, bonas.dataset(places[seen], y[seen])


def by_bonas(config: Gpar, seed: int, args) -> dict:
    model = gp.gpar()
    places, data = data_of(config, seed)

    def evidence(z, data):
        return model.log_evidence(jax.tree.map(jnp.exp, z), data)

    def fit(key, z, data):
        found, info = infer.maximise(key, lambda z: evidence(z, data), z, steps=config.iterations)
        return jax.tree.map(lambda leaf: leaf[0], found), info.log_density[0]

    def sample(key, z, data, x):
        return model.sample(key, model.condition(jax.tree.map(jnp.exp, z), data), x, config.samples)[:, :, -1]

    key, first = jax.random.key(seed), jax.tree.map(jnp.log, start(config))
    (z, reached), fitting = timed(fit, config.calls, key, first, data)
    draws, sampling = timed(sample, config.calls, key, z, data, jnp.asarray(places))
    moments = {"mean": np.asarray(draws).mean(axis=0).tolist(), "std": np.asarray(draws).std(axis=0).tolist()}
    return {
        "fit": fitting,
        "sample": sampling,
        "evidence_at_start": float(evidence(first, data)),
        "evidence": float(reached),
        **moments,
    }


def timed(function, calls: int, *arguments):
    """The result, what a warm call costs, the median, and what compiling did."""
    clock = Clock()
    program = jax.jit(function).lower(*arguments).compile()
    compiling, spent = clock.read()["seconds"], []
    result = jax.block_until_ready(program(*arguments))
    for _ in range(calls):
        clock = Clock()
        result = jax.block_until_ready(program(*arguments))
        spent.append(clock.read())
    return result, {name: float(np.median([one[name] for one in spent])) for name in spent[0]} | {"compile_seconds": compiling}


def by_gpar(config: Gpar, seed: int, args) -> dict:
    """Both ways to fit, and what bonas says of the evidence at the hyperparameters found."""
    places, data = data_of(config, seed)
    y = [[float(v) if there else None for v, there in zip(*row, strict=True)] for row in zip(data.y, data.mask, strict=True)]
    arrays = {"x": np.asarray(data.x).tolist(), "y": y, "candidates": places.tolist()}
    begin = {"lengthscale": config.lengthscale, "slope": config.slope, "noise": config.noise}
    job = {**arrays, "start": begin, "iterations": config.iterations, "samples": config.samples, "seed": seed}
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
        row["evidence_by_bonas"] = float(gp.gpar().log_evidence(params_of(config, row["variables"]), data))
    return found


def params_of(config: Gpar, variables: dict) -> dict:
    """The hyperparameters of the other library under the names of bonas."""
    params = start(config)
    slope = np.array(params["kernel"]["slope"])
    for i in (1, 2):
        slope[i, i - 1] = 1.0 / variables[f"{i}/output/lin/scales"][0]
    variance, noise = (jnp.array([variables[f"{i}/{name}"] for i in range(3)]) for name in ("input/var", "noise"))
    kernel = {"variance": variance, "lengthscale": jnp.array(variables["0/input/scales"]), "slope": jnp.asarray(slope)}
    return {"kernel": kernel, "noise": noise}


MEASURE = {"bonas": by_bonas, "gpar": by_gpar}


def summary(runs: list[dict]) -> dict:
    """Medians over seeds, how many times longer the other library takes, and how far evidences are apart."""
    ours = {row["seed"]: row for row in runs if row["name"] == "bonas"}
    theirs = {row["seed"]: row for row in runs if row["name"] == "gpar" and row["seed"] in ours}
    found: dict = {"bonas": seconds(list(ours.values())), "evidence": median(row["evidence"] for row in ours.values())}
    for way in ("joint", "layer by layer") if theirs else ():
        rows = [row[way] for row in theirs.values()]
        apart = [abs(row[way]["evidence_at_start"] - ours[seed]["evidence_at_start"]) for seed, row in theirs.items()]
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
    """Of one core."""
    fit, sample = (median(row[part]["cpu_seconds"] for row in rows) for part in ("fit", "sample"))
    return {"fit": fit, "sample": sample, "both": fit + sample}


def median(values) -> float:
    return float(np.median(list(values)))


def show(report: dict, console) -> None:
    table = Table("GPAR", "fit, ms", "samples, ms", "both, ms", "× bonas: fit", "samples", "both", "log evidence reached")
    for name, row in report.items():
        if name == "evidence":
            continue
        times = row.get("times_bonas", {})
        reached = row.get("evidence", report["evidence"])
        cells = [f"{1e3 * row[part]:.1f}" for part in ("fit", "sample", "both")]
        table.add_row(
            name, *cells, *(f"{times[part]:.1f}" if times else "" for part in ("fit", "sample", "both")), f"{reached:.2f}"
        )
    console.print(table)
    for name, row in report.items():
        if isinstance(row, dict) and "evidences_of_the_same_apart" in row:
            console.print(
                f"{name}: log evidences at the same hyperparameters differ by {row['evidences_of_the_same_apart']:.1e}"
            )
