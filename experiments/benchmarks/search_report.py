"""Read the saved runs, summarize each method and compare it with bonas in pairs of seeds."""

from pathlib import Path

import numpy as np

from experiments import common


def row_file(out: Path, part: str) -> Path:
    """Return the file of JSON lines with the rows of a part of the benchmark."""
    return out / f"{part}.jsonl"


def read_rows(config, out: Path, part: str) -> list[dict]:
    """Return the rows of a part that match this configuration."""
    rows = common.read_lines(row_file(out, part))
    return [row for row in rows if belongs(config, row)]


def belongs(config, row: dict) -> bool:
    """Return whether a row has the budget, seeds and sizes of this configuration."""
    return (
        row.get("evaluations", config.evaluations) == config.evaluations
        and row.get("seeds", config.seeds) == config.seeds
        and row.get("seed", 0) < config.seeds
        and row.get("n", config.sizes[0]) in config.sizes
    )


def missing(config, out: Path, part: str, function: str, seeds: list[int]) -> list[int]:
    """Return the seeds that a method has not yet run on a function."""
    rows = read_rows(config, out, part)
    done = {row["seed"] for row in rows if row["function"] == function}
    return [seed for seed in seeds if seed not in done]


def compare(
    rows: dict[str, list[dict]], functions, *, smallest: float, resamples: int
) -> list[dict]:
    """Return one entry per function and method with results."""
    entries = []
    for function in functions:
        by_seed = {
            name: {row["seed"]: row for row in of if row["function"] == function}
            for name, of in rows.items()
        }
        entries += [
            {"function": function, "contender": name, **summarize_method(runs)}
            | (
                {}
                if name == "bonas"
                else compare_with_bonas(runs, by_seed["bonas"], smallest, resamples)
            )
            for name, runs in by_seed.items()
            if runs
        ]
    return entries


def summarize_method(runs: dict[int, dict]) -> dict:
    """Summarize one method."""
    entry = {
        "seeds": len(runs),
        "regret": quartiles([row["regret"] for row in runs.values()]),
    }
    for name in ("seconds", "cpu_seconds", "first_call_seconds"):
        if all(name in row for row in runs.values()):
            entry[name] = float(np.median([row[name] for row in runs.values()]))
    return entry


def quartiles(values) -> dict[str, float]:
    return dict(
        zip(
            ("lower", "median", "upper"),
            np.quantile(values, [0.25, 0.5, 0.75]).tolist(),
            strict=True,
        )
    )


def compare_with_bonas(
    rival: dict[int, dict], bonas: dict[int, dict], smallest: float, resamples: int
) -> dict:
    """Compare a method with bonas on the seeds that both have run."""
    seeds = sorted(rival.keys() & bonas.keys())
    if not seeds:
        return {}
    theirs, ours = (
        np.maximum([runs[seed]["regret"] for seed in seeds], smallest)
        for runs in (rival, bonas)
    )
    low, high = paired_interval(theirs, ours, resamples)
    verdict = "better" if low > 0 else "worse" if high < 0 else "equal"
    difference = float(np.median(theirs) - np.median(ours))
    ratio = np.median([rival[seed]["cpu_seconds"] for seed in seeds]) / np.median(
        [bonas[seed]["cpu_seconds"] for seed in seeds]
    )
    return {
        "times_bonas": float(ratio),
        "pairs": len(seeds),
        "difference": difference,
        "interval": [low, high],
        "bonas_is": verdict,
    }


def paired_interval(theirs, ours, resamples: int) -> tuple[float, float]:
    """Return the bootstrap 95% interval of median(theirs) − median(ours) over pairs of seeds."""
    drawn = np.random.default_rng(0).integers(len(ours), size=(resamples, len(ours)))
    differences = np.median(theirs[drawn], axis=1) - np.median(ours[drawn], axis=1)
    low, high = np.quantile(differences, [0.025, 0.975])
    return float(low), float(high)


def show(report: dict) -> None:
    smallest = report["config"]["equal"]
    print(
        f"\n{'function':15} {'contender':11} {'runs':>4}  {'regret: median (quartiles)':32} "
        f"{'s/run':>8} {'CPU s':>8} ",
        end="",
    )
    print(
        f"{'× bonas':>8}  bonas is (95% interval of the difference of medians, "
        f"regrets at least {smallest:g})"
    )
    for entry in report["results"]:
        regret = "{median:.3g} ({lower:.2g} to {upper:.2g})".format(**entry["regret"])
        line = f"{entry['function']:15} {entry['contender']:11} {entry['seeds']:>4}  {regret:32} "
        line += f"{entry['seconds']:8.3g} {entry['cpu_seconds']:8.3g} "
        if "bonas_is" in entry:
            low, high = entry["interval"]
            line += f"{entry['times_bonas']:8.3g}  {entry['bonas_is']} "
            line += f"({low:+.2g} to {high:+.2g}; {entry['pairs']} pairs)"
        elif "first_call_seconds" in entry:
            first = entry["first_call_seconds"]
            line += f"{'':8}  ({first:.1f} s for the first call of all seeds, which compiles)"
        print(line)
    print()
    for row in report["suggestions"]:
        print(
            f"a suggestion by {row['contender']} at n = {row['n']}, d = 6: "
            f"{1e3 * row['cpu_seconds']:.1f} ms"
        )
    for row in report["vmap"]:
        print(
            f"jax.vmap(run) over {row['seeds']} seeds takes {row['ratio']:.2f} times as long as "
            f"run_many ({row['run_many']:.2f} s)"
        )
