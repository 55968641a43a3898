"""What searches of tables found: final errors, pairs with the arc kernel, ranks, and how deep the networks were."""

import numpy as np
from scipy import stats
from script.pairs import against
from tables.methods import ARC, BLIND, SAMPLED


def best(error: np.ndarray, runs: list[dict]) -> np.ndarray:
    """The least error so far (seeds, steps)."""
    return np.minimum.accumulate(error[np.array([run["rows"] for run in runs])], axis=1)


def summarise(config, problem, found: dict[str, list[dict]]) -> dict:
    """Every search by itself and beside the arc kernel, on the seeds that both have."""
    curves = {
        name: dict(zip([run["seed"] for run in runs], best(problem.error, runs), strict=True)) for name, runs in found.items()
    }
    usual = [name for name in found if not name.endswith(SAMPLED)]
    return {
        "networks": len(problem.error),
        "columns": problem.space.dim,
        "least_error": float(problem.error.min()),
        "table_depths": shares(problem, np.arange(len(problem.error))),
        "searches": {name: alone(config, problem, runs) for name, runs in found.items()},
        "pairs": pairs(config, curves),
        "mean_ranks": ranks(config, {name: curves[name] for name in usual}),
        "mean_ranks_with_sampled": ranks(config, curves),
    }


def alone(config, problem, runs: list[dict]) -> dict:
    curve = best(problem.error, runs)
    regret = curve - problem.error.min()
    asked = np.array([run["rows"][config.initial :] for run in runs])
    warm = [run for run in runs if not run["compiled"]]
    return {
        "seeds": len(runs),
        "final_regret": dict(zip(("quartile", "median", "upper"), np.quantile(regret[:, -1], [0.25, 0.5, 0.75]), strict=True)),
        "mean_final_regret": float(regret[:, -1].mean()),
        "mean_regret_of_all_suggestions": float(regret[:, config.initial :].mean()),
        "share_that_find_the_best": float((regret[:, -1] == 0.0).mean()),
        "median_curve": np.median(curve, axis=0).tolist(),
        "depths": shares(problem, asked),
        "random_asks": float(np.mean([run["random"] for run in runs])),
        "converged_fits": float(np.mean([run["converged"] for run in runs])),
        # the first run of a call compiles, and is left out
        "seconds_a_seed": float(np.median([run["seconds"] for run in warm])) if warm else None,
        "cpu_seconds_a_seed": float(np.median([run["cpu_seconds"] for run in warm])) if warm else None,
    }


def shares(problem, rows: np.ndarray) -> dict[int, float]:
    """Which share of rows has each depth of the table."""
    depths = problem.depth[rows].reshape(-1)
    return {int(depth): float((depths == depth).mean()) for depth in np.unique(problem.depth)}


def pairs(config, curves: dict[str, dict[int, np.ndarray]]) -> dict:
    """Differences of errors seed by seed; below 0, the first is better."""
    wanted = [(name, ARC) for name in curves if name != ARC] + [(BLIND + SAMPLED, ARC + SAMPLED)]
    made = {}
    for ours, theirs in wanted:
        common = sorted(set(curves.get(ours, ())) & set(curves.get(theirs, ())))
        if common:
            a, b = (np.stack([curves[name][seed] for seed in common]) for name in (ours, theirs))
            made[f"{ours} against {theirs}"] = {
                "seeds": len(common),
                "final_error": against(a[:, -1], b[:, -1], config.resamples),
                "error_over_all_suggestions": against(
                    a[:, config.initial :].mean(axis=1), b[:, config.initial :].mean(axis=1), config.resamples
                ),
            }
    return made


def ranks(config, curves: dict[str, dict[int, np.ndarray]]) -> dict:
    """The mean rank of each method over the seeds that all have, 1 for the best; equal values share their ranks."""
    common = sorted(set.intersection(*(set(curve) for curve in curves.values()))) if curves else []
    if not common:
        return {}
    stacked = np.stack([np.stack([curve[seed] for seed in common]) for curve in curves.values()])  # (methods, seeds, steps)
    final, over = stacked[:, :, -1], stacked[:, :, config.initial :].mean(axis=2)
    means = [stats.rankdata(values, axis=0).mean(axis=1).tolist() for values in (final, over)]
    each = {name: {"final": a, "over_all_suggestions": b} for name, a, b in zip(curves, *means, strict=True)}
    return {"seeds": len(common), "methods": each}
