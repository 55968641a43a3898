"""Effective samples per second, and whether all libraries sample the same posterior."""

import numpy as np
from rich.console import Console
from rich.table import Table

OURS = "bonas HMC"


def summarize(rows: list[dict]) -> dict:
    by_name: dict[str, list[dict]] = {}
    for row in sorted(rows, key=lambda row: row["seed"]):
        by_name.setdefault(row["name"], []).append(row)
    steps = by_name.pop("search step", [])
    contenders = {name: rate(of, by_name[OURS]) for name, of in by_name.items()}
    rivals = [
        entry["effective_a_second_median"]
        for name, entry in contenders.items()
        if not name.startswith("bonas")
    ]
    ours = contenders[OURS]["effective_a_second_median"]
    return {
        "contenders": contenders,
        "bonas_over_the_best_rival": ours / max(rivals)
        if rivals and max(rivals) > 0.0
        else None,
        "search_step_cpu_seconds": float(
            np.median([row["cpu_seconds"] for row in steps])
        )
        if steps
        else None,
    }


def rate(rows: list[dict], ours: list[dict]) -> dict:
    """Return medians over seeds, and the distance from bonas in standard errors over the grid."""

    def median(of) -> float:
        return float(np.median([of(row) for row in rows]))

    entry = {
        "effective_a_second_median": median(
            lambda row: np.median(row["effective"]) / row["cpu_seconds"]
        ),
        "effective_a_second_smallest": median(
            lambda row: np.min(row["effective"]) / row["cpu_seconds"]
        ),
        "with_burn_in": median(
            lambda row: (
                np.median(row["effective"])
                / (row["cpu_seconds"] + row["burn_in_cpu_seconds"])
            )
        ),
        "effective_share": median(
            lambda row: np.median(row["effective"]) / row["draws"]
        ),
        "largest_r_hat": median(lambda row: row["largest_r_hat"]),
    }
    for name in ("draws", "cpu_seconds", "burn_in_cpu_seconds", "compile_seconds"):
        entry[name] = median(lambda row, name=name: row[name])
    if all(row["gradients"] for row in rows):
        entry["microseconds_a_gradient"] = median(
            lambda row: 1e6 * row["cpu_seconds"] / row["gradients"]
        )
    if ours and rows is not ours:
        off = np.concatenate(
            [differences(row, our) for row, our in zip(rows, ours, strict=False)]
        )
        entry["off_in_standard_errors"] = {
            "root_mean_square": float(np.sqrt(np.mean(off**2))),
            "largest": float(off.max()),
        }
    return entry


def differences(row: dict, other: dict) -> np.ndarray:
    """Return |mean − mean| in standard errors at every point of the grid."""
    variances = [
        np.square(each["std"]) / np.maximum(each["effective"], 1.0)
        for each in (row, other)
    ]
    return np.abs(np.subtract(row["mean"], other["mean"])) / np.sqrt(sum(variances))


def show(report: dict) -> None:
    columns = (
        "contender",
        "ESS/s, median of grid",
        "smallest",
        "with burn-in",
        "ESS/draw",
        "R-hat",
        "µs/gradient",
    )
    table = Table(*columns, "difference from bonas, s.e.: rms (largest)", "compile, s")
    for name, row in report["contenders"].items():
        off = row.get("off_in_standard_errors")
        table.add_row(
            name,
            f"{row['effective_a_second_median']:.3g}",
            f"{row['effective_a_second_smallest']:.3g}",
            f"{row['with_burn_in']:.3g}",
            f"{row['effective_share']:.2f}",
            f"{row['largest_r_hat']:.3f}",
            f"{row['microseconds_a_gradient']:.0f}"
            if "microseconds_a_gradient" in row
            else "",
            f"{off['root_mean_square']:.2f} ({off['largest']:.1f})" if off else "",
            f"{row['compile_seconds']:.0f}",
        )
    console = Console(width=140)
    console.print(table)
    if report["bonas_over_the_best_rival"] is not None:
        console.print(
            f"{OURS}: {report['bonas_over_the_best_rival']:.1f} times the effective samples per"
            " second of the best other library"
        )
    if report["search_step_cpu_seconds"] is not None:
        console.print(
            "a warm-started search step in two dimensions: "
            f"{report['search_step_cpu_seconds']:.2f} s of one core"
        )
