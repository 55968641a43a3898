"""Each search by itself, beside random search and beside Sobol points, and whether what it assumes holds."""

import numpy as np
from high.cases import Case
from high.methods import CHANCE, EVEN, METHODS
from script.pairs import against


def best(runs: list[dict]) -> np.ndarray:
    """The least value so far (seeds, steps)."""
    return np.minimum.accumulate(np.array([run["values"] for run in runs]), axis=1)


def summarise(config, case: Case, found: dict[str, list[dict]]) -> dict:
    optimum = case.problem.optimum
    regret = {name: dict(zip([run["seed"] for run in runs], best(runs) - optimum, strict=True)) for name, runs in found.items()}
    return {
        "problem": case.problem.name,
        "columns": case.problem.space.dim,
        "optimum": optimum,
        "assumptions_that_hold": sorted(case.holds),
        "searches": {name: alone(config, case, name, runs) for name, runs in found.items()},
        "pairs": pairs(config, regret),
        "mean_ranks": ranks(regret),
    }


def alone(config, case: Case, name: str, runs: list[dict]) -> dict:
    regret = best(runs) - case.problem.optimum
    warm = [run for run in runs if not run["compiled"]]
    return {
        "needs": METHODS[name].needs,
        "holds": METHODS[name].needs in case.holds,
        "seeds": len(runs),
        "final_regret": dict(zip(("quartile", "median", "upper"), np.quantile(regret[:, -1], [0.25, 0.5, 0.75]), strict=True)),
        "mean_regret_of_all_suggestions": float(regret[:, config.initial :].mean()),
        "median_curve": np.median(regret, axis=0).tolist(),
        "random_asks": float(np.mean([run["random"] for run in runs])),
        "converged_fits": float(np.mean([run["converged"] for run in runs])),
        "restarts": float(np.mean([run["restarts"] for run in runs])),
        # the first run of a call compiles, and is left out
        "cpu_seconds_a_seed": float(np.median([run["cpu_seconds"] for run in warm])) if warm else None,
        "cpu_seconds_compiling": float(np.max([run["cpu_seconds"] for run in runs])) if len(warm) < len(runs) else None,
    }


def pairs(config, regret: dict[str, dict[int, np.ndarray]]) -> dict:
    """Differences of regret seed by seed on the seeds that both have; below 0, the first is better."""
    made = {}
    for theirs in (CHANCE, EVEN):
        for ours in regret:
            common = sorted(set(regret[ours]) & set(regret.get(theirs, ())))
            if ours != theirs and common:
                a, b = (np.stack([regret[name][seed] for seed in common]) for name in (ours, theirs))
                made[f"{ours} against {theirs}"] = {
                    "seeds": len(common),
                    "final_regret": against(a[:, -1], b[:, -1], config.resamples),
                    "log_final_regret": against(*(np.log10(values[:, -1] + TINY) for values in (a, b)), config.resamples),
                }
    return made


TINY = 1e-12  # added before a logarithm: a regret is no smaller than the rounding of the optimum


def ranks(regret: dict[str, dict[int, np.ndarray]]) -> dict[str, float]:
    """Mean ranks of the final regret among the methods that have all seeds, 1 for the best; those with fewer are left out."""
    most = max(len(each) for each in regret.values())
    full = {name: each for name, each in regret.items() if len(each) == most}
    final = np.array([[each[seed][-1] for seed in sorted(each)] for each in full.values()])
    order = final.argsort(axis=0).argsort(axis=0) + 1
    return dict(zip(full, order.mean(axis=1).tolist(), strict=True))
