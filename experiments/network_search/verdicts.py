"""What Agrawal says of each function, and what the runs say."""

import numpy as np
from script import pairs

from bonas.problems import functions

NETWORK, GP = "network", "GP"
ACQUISITIONS = ("lcb", "log_ei")
SMALLEST = 1e-4  # regrets below this are all called this: nobody needs the difference

CLAIMS = {  # Agrawal's (G-E3, G-E4)
    "forrester": "the network is competitive with the GP",
    "rosenbrock": "the network finds the minimum after roughly 7 iterations; the GP does not always succeed",
    "mccormick": "the network is better at first, then converges slightly above the minimum; the GP finds it",
    "six_hump_camel": "the GP is much better; the network is stuck in a local optimum",
}
# function: (evaluations, regret) at which the median of the network's repeats is looked at. Agrawal's "finds the minimum" on
# Rosenbrock is read as a regret of 0.1, a line's width in its figure, after 5 points and 7 iterations.
GOALS = {"forrester": (15, 1e-2), "rosenbrock": (12, 0.1), "mccormick": (40, 1e-2), "six_hump_camel": (40, 1e-2)}


def summarise(config, curves: dict, shown: dict) -> dict:
    """Numbers of every contender, the network against the GP in pairs, and the goals."""
    results = {
        part: {
            acquisition: {
                name: {label: numbers(name, best) for label, best in rows.items()} for name, rows in by_function.items()
            }
            for acquisition, by_function in found.items()
        }
        for part, found in curves.items()
    }
    against, goals = {}, {}
    for acquisition, by_function in curves["runs"].items():
        for name, rows in by_function.items():
            if NETWORK in rows:
                goals.setdefault(name, {})[acquisition] = goal(name, rows[NETWORK], dict(config.initial)[name])
            if {NETWORK, GP} <= set(rows):
                against.setdefault(name, {})[acquisition] = in_pairs(config, name, rows)
    return {
        "claims": {name: CLAIMS[name] for name, _ in config.initial},
        "goals": goals,
        "network_against_gp": against,
        "figure_10": shown,
        "results": results,
    }


def numbers(name: str, best: np.ndarray) -> dict:
    regret = best - getattr(functions, name).optimum
    medians = np.median(regret, axis=0)
    reached = {f"{level:g}": np.flatnonzero(medians < level) for level in (0.1, 0.01)}
    return {
        "repeats": len(best),
        "final_regret": dict(zip(("quartile", "median", "upper"), np.quantile(regret[:, -1], [0.25, 0.5, 0.75]), strict=True)),
        "share_below_0.01": float((regret[:, -1] < 0.01).mean()),
        "evaluations_until_median_below": {level: int(at[0]) + 1 if len(at) else None for level, at in reached.items()},
        "median_curve": medians.tolist(),
    }


def goal(name: str, best: np.ndarray, initial: int) -> dict | None:
    """Whether the median is where it should be; None where runs are too short to tell.

    share_of_start: that median as a share of what it is after the initial points, from where Agrawal's axis goes down.
    """
    evaluations, level = GOALS[name]
    if best.shape[1] < evaluations:
        return None
    medians = np.median(best - getattr(functions, name).optimum, axis=0)
    median, start = float(medians[evaluations - 1]), float(medians[initial - 1])
    return {
        "evaluations": evaluations,
        "wanted_below": level,
        "median_regret": median,
        "reached": median < level,
        "share_of_start": median / start,
    }


def in_pairs(config, name: str, rows: dict[str, np.ndarray]) -> dict:
    """log10 of the final regret, network minus GP, seed by seed."""
    n = min(len(rows[NETWORK]), len(rows[GP]))
    logs = [np.log10(np.maximum(rows[who][:n, -1] - getattr(functions, name).optimum, SMALLEST)) for who in (NETWORK, GP)]
    return pairs.against(*logs, config.resamples)


def show(results: dict) -> None:
    print(f"{'function':15} {'acquisition':12} {'surrogate':20} {'median regret':>13} {'quartiles':>20}  < 0.1, < 0.01 after")
    for found in results["results"].values():
        for acquisition, by_function in found.items():
            for name, rows in by_function.items():
                for label, row in rows.items():
                    final, after = row["final_regret"], row["evaluations_until_median_below"]
                    band = f"{final['quartile']:.1e} – {final['upper']:.1e}"
                    when = ", ".join(str(at or "never") for at in after.values())
                    print(f"{name:15} {acquisition:12} {label:20} {final['median']:13.1e} {band:>20}  {when}")
    for name, by_acquisition in results["goals"].items():
        for acquisition, row in by_acquisition.items():
            if row:
                told = f"median regret {row['median_regret']:.1e} ({row['share_of_start']:.1%} of that at the start)"
                verdict = f"wanted {row['wanted_below']:g}: {'yes' if row['reached'] else 'no'}"
                print(f"{name}, {acquisition}: {told} after {row['evaluations']} evaluations, {verdict}")
