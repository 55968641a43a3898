"""Whether the designs found are as good as Wilton's: numbers from retrainings, and a table."""

import numpy as np

from bonas.problems import wilton


def number(value) -> float | None:
    """JSON knows no NaN: what failed is null."""
    return float(value) if np.isfinite(value) else None


def best(trials: list[dict]) -> dict:
    """The trial with the least loss."""
    return min((trial for trial in trials if trial["loss"] is not None), key=lambda trial: trial["loss"])


def values(rows: list[dict], field: str = "loss") -> np.ndarray:
    """One number a retraining; a failed one is infinitely bad."""
    return np.array([np.inf if row[field] is None else row[field] for row in rows])


def against(rows: dict, name: str, test_rows: int) -> dict:
    """One design beside Wilton's, both trained anew from the same keys."""
    ours, theirs = values(rows[name]), values(rows["published"])
    error = (ours - theirs).std(ddof=1) / np.sqrt(len(ours)) if len(ours) > 1 else np.nan
    return {
        "rmse": number(ours.mean() / np.sqrt(test_rows)),
        "ratio": number(ours.mean() / theirs.mean()),
        "ratio_error": number(error / theirs.mean()),
        "retrainings_won": float(np.mean(ours <= theirs)),
    }


def of_seed(record: dict, test_rows: int, others: int) -> dict:
    """One search, and its designs beside Wilton's. Views of the data are compared on their first `others` retrainings."""
    rows, trials = record["retrained"], record["trials"]
    chosen = {"found": best(trials), "recommended": trials[record["recommended"]]}
    compared = {name: some[:others] for name, some in rows.items() if name not in ("published", "recommended")}
    return {
        "seed": record["seed"],
        "rmse_published": number(values(rows["published"]).mean() / np.sqrt(test_rows)),
        **{
            name: {
                "design": trial["design"],
                "iteration": trial["iteration"],
                "members_counted": trial["counted"],
                "search_loss": trial["loss"],
                **against(rows, name, test_rows),
            }
            for name, trial in chosen.items()
        },
        "rmse_by_view": {name: number(values(some).mean() / np.sqrt(test_rows)) for name, some in compared.items()},
        "near_jumps_by_view": {name: number(values(some, "near_jumps").mean()) for name, some in compared.items()},
    }


def over_seeds(seeds: list[dict], name: str) -> dict:
    """Whether the claim holds for designs chosen in one way."""
    ratios = np.array([np.inf if row[name]["ratio"] is None else row[name]["ratio"] for row in seeds])
    low, median, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    return {
        "median_ratio": number(median),
        "quartiles": [number(low), number(high)],
        "seeds_at_least_as_good": int((ratios <= 1.0).sum()),
        "reached": bool(median <= 1.0),
        "from_the_initial_designs": sum(row[name]["iteration"] == 0 for row in seeds),
    }


def summarise(experiment: wilton.Experiment, records: list[dict], *, test_rows: int, others: int) -> dict:
    """The verdict over all seeds."""
    seeds = [of_seed(record, test_rows, others) for record in records]
    trials = [trial for record in records for trial in record["trials"]]
    return {
        "published": list(experiment.published),
        "iterations": experiment.iterations,
        "found": over_seeds(seeds, "found"),
        "recommended": over_seeds(seeds, "recommended"),
        "failed_evaluations": sum(trial["loss"] is None for trial in trials),
        "views": {name: of_view(experiment, name, seeds) for name in seeds[0]["rmse_by_view"] if name != "found"},
        "median_seconds": {
            what: float(np.median([trial[f"seconds_to_{what}"] for trial in trials])) for what in ("ask", "train")
        },
        "seeds": seeds,
    }


def of_view(experiment: wilton.Experiment, name: str, seeds: list[dict]) -> dict:
    """The designs found with members that see something else, beside those that see everything."""
    ratios = [row["rmse_by_view"][name] / row["rmse_by_view"]["found"] for row in seeds]
    said = {"median_ratio": float(np.median(ratios)), "seeds_better": sum(ratio < 1.0 for ratio in ratios)}
    if experiment.jumps:
        near = [row["near_jumps_by_view"][name] / row["near_jumps_by_view"]["found"] for row in seeds]
        said |= {"median_ratio_near_jumps": float(np.median(near)), "seeds_better_near_jumps": sum(r < 1.0 for r in near)}
    return said


WAYS = {"found": "the least loss of the search, as Wilton takes it", "recommended": "the least posterior mean"}


def report(chosen: int, summary: dict) -> None:
    """The tables, and whether the claim holds."""
    print(
        f"\nExperiment {chosen}: the best design within {summary['iterations']} iterations, and {tuple(summary['published'])}"
    )
    for name, way in WAYS.items():
        print(f"\n  {name}: {way}")
        print(f"  {'seed':>4}  {'(L, D, N, p)':22} {'iteration':>9} {'RMSE':>7} {'published':>10} {'ratio':>15}")
        for row in summary["seeds"]:
            ours = row[name]
            depth, width, members, density = ours["design"].values()
            design, ratio = f"({depth}, {width}, {members}, {density:.3f})", f"{ours['ratio']:.3f} ± {ours['ratio_error']:.3f}"
            losses = f"{ours['rmse']:7.2f} {row['rmse_published']:10.2f}"
            print(f"  {row['seed']:4}  {design:22} {ours['iteration']:9} {losses} {ratio:>15}")
        said, (low, high) = summary[name], summary[name]["quartiles"]
        verdict = "at least as good: reached" if said["reached"] else "worse: NOT reached"
        print(f"  median ratio of test losses {said['median_ratio']:.3f} (quartiles {low:.3f} to {high:.3f}), {verdict}")
    for name, row in summary["views"].items():
        near = row.get("median_ratio_near_jumps")
        print(f"members on {name}: {row['median_ratio']:.3f} of the plain loss" + (f", {near:.3f} near jumps" if near else ""))
