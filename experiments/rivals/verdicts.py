"""What the rows of bench_search.py say: medians and quartiles, seconds, and whether bonas is better, seed by seed."""

import numpy as np


def compare(rows: dict[str, list[dict]], functions, *, smallest: float, resamples: int) -> list[dict]:
    """One entry a contender and function of which something is known."""
    entries = []
    for function in functions:
        by_seed = {name: {row["seed"]: row for row in of if row["function"] == function} for name, of in rows.items()}
        entries += [
            {"function": function, "contender": name, **one(runs)}
            | ({} if name == "bonas" else against(runs, by_seed["bonas"], smallest, resamples))
            for name, runs in by_seed.items()
            if runs
        ]
    return entries


def one(runs: dict[int, dict]) -> dict:
    """What is said of a contender by itself."""
    entry = {"seeds": len(runs), "regret": quartiles([row["regret"] for row in runs.values()])}
    for name in ("seconds", "cpu_seconds", "first_call_seconds"):
        if all(name in row for row in runs.values()):
            entry[name] = float(np.median([row[name] for row in runs.values()]))
    return entry


def quartiles(values) -> dict[str, float]:
    return dict(zip(("lower", "median", "upper"), np.quantile(values, [0.25, 0.5, 0.75]).tolist(), strict=True))


def against(rival: dict[int, dict], bonas: dict[int, dict], smallest: float, resamples: int) -> dict:
    """The rival beside bonas, on the seeds that both have run."""
    seeds = sorted(rival.keys() & bonas.keys())
    if not seeds:
        return {}
    theirs, ours = (np.maximum([runs[seed]["regret"] for seed in seeds], smallest) for runs in (rival, bonas))
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
    """The 95% interval of median(theirs) − median(ours) when the seeds, each with both its regrets, are drawn anew."""
    drawn = np.random.default_rng(0).integers(len(ours), size=(resamples, len(ours)))
    differences = np.median(theirs[drawn], axis=1) - np.median(ours[drawn], axis=1)
    low, high = np.quantile(differences, [0.025, 0.975])
    return float(low), float(high)


def show(report: dict) -> None:
    smallest = report["config"]["equal"]
    print(
        f"\n{'function':15} {'contender':11} {'runs':>4}  {'regret: median (quartiles)':32} {'s a run':>8} {'of CPU':>8} ",
        end="",
    )
    print(f"{'× bonas':>8}  bonas is (95% of the difference of medians, regrets at least {smallest:g})")
    for entry in report["results"]:
        regret = "{median:.3g} ({lower:.2g} to {upper:.2g})".format(**entry["regret"])
        line = f"{entry['function']:15} {entry['contender']:11} {entry['seeds']:>4}  {regret:32} "
        line += f"{entry['seconds']:8.3g} {entry['cpu_seconds']:8.3g} "
        if "bonas_is" in entry:
            low, high = entry["interval"]
            line += f"{entry['times_bonas']:8.3g}  {entry['bonas_is']} ({low:+.2g} to {high:+.2g}; {entry['pairs']} pairs)"
        elif "first_call_seconds" in entry:
            line += f"{'':8}  ({entry['first_call_seconds']:.1f} s for the first call of all seeds, which compiles)"
        print(line)
    print()
    for row in report["suggestions"]:
        print(f"a suggestion by {row['contender']} at n = {row['n']}, d = 6: {1e3 * row['cpu_seconds']:.1f} ms")
    for row in report["vmap"]:
        print(
            f"{row['seeds']} seeds by jax.vmap(run): {row['ratio']:.2f} times as long as by run_many ({row['run_many']:.2f} s)"
        )
