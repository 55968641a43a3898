"""What the searches of twist_search.py found: scores in pairs, sizes against chance, and the learning rate."""

import jax
import numpy as np
from script.pairs import against, interval

from bonas.problems.twist import Intervals


def units(intervals: Intervals, rows: np.ndarray) -> np.ndarray:
    """How many hidden units designs (..., d) have."""
    return np.rint(rows[..., : intervals.layers] * intervals.widest).sum(axis=-1)


def layers(intervals: Intervals, rows: np.ndarray) -> np.ndarray:
    """How many hidden layers designs (..., d) have."""
    return (rows[..., : intervals.layers] > 0.0).sum(axis=-1)


def larger_than_chance(intervals: Intervals, rows: np.ndarray, uniform: np.ndarray) -> float:
    """The probability that a design has more hidden units than a random one: ½ where sizes are those of chance."""
    ours, theirs = units(intervals, rows)[:, None], units(intervals, uniform)[None, :]
    return float(np.mean((ours > theirs) + 0.5 * (ours == theirs)))


def summarise(config, found: dict[str, list[dict]], main: str, chance: str) -> dict:
    """Every search by itself, and the pairs: all against chance, the others against the main one."""
    uniform = np.asarray(config.intervals.space.sample(jax.random.key(0), 10_000))
    pairs = [(name, chance) for name in found if name != chance] + [
        (name, main) for name in found if name not in (main, chance)
    ]
    return {
        "searches": {name: alone(config, rows, uniform) for name, rows in found.items()},
        "pairs": {
            f"{ours} against {theirs}": {
                "test_error": against(_of(found[ours], "score"), _of(found[theirs], "score"), config.resamples),
                "best_validation_error": against(_last(found[ours]), _last(found[theirs]), config.resamples),
            }
            for ours, theirs in pairs
        },
    }


def _of(rows: list[dict], name: str) -> np.ndarray:
    return np.stack([row[name] for row in rows])


def _last(rows: list[dict]) -> np.ndarray:
    return _of(rows, "best")[:, -1]


def alone(config, rows: list[dict], uniform: np.ndarray) -> dict:
    """What is said of one search: how good its designs are, what they cost, and how large they are."""
    intervals, chosen, scores = config.intervals, _of(rows, "chosen"), _of(rows, "score")
    asked = _of(rows, "x")[:, config.initial :]
    larger = np.array([larger_than_chance(intervals, x, uniform) for x in asked])
    designs = [intervals.space.decode(u) for u in chosen]
    return {
        "test_error": {"mean": float(scores.mean()), "median": float(np.median(scores)), "each": scores.tolist()},
        "best_validation_error": float(_last(rows).mean()),
        "cost_of_all_evaluations": float(_of(rows, "cost").sum(axis=1).mean()),
        "median_cost_of_the_design": float(np.median([row["cost"][np.nanargmin(row["y"])] for row in rows])),
        "median_units_of_the_design": float(np.median(units(intervals, chosen))),
        "mean_layers_of_the_design": float(layers(intervals, chosen).mean()),
        "median_epochs_of_the_design": float(np.median([design["epochs"] for design in designs])),
        "median_learning_rate_of_the_design": float(np.median([design["learning_rate"] for design in designs])),
        "design_larger_than_a_random_one": larger_than_chance(intervals, chosen, uniform),
        "suggestion_larger_than_a_random_one": {"mean": float(larger.mean()), "interval": interval(larger, config.resamples)},
        "median_units_of_suggestions": float(np.median(units(intervals, asked))),
        "mean_layers_of_suggestions": float(layers(intervals, asked).mean()),
        "designs": designs,
    }


def rates(config, errors: np.ndarray) -> dict:
    """Whether the accuracy has its top inside the interval of learning rates, by the mean over seeds and seed by seed."""
    mean, top = errors.mean(axis=0), int(np.argmin(errors.mean(axis=0)))
    lowest = errors.argmin(axis=1)
    inside = (lowest > 0) & (lowest < errors.shape[1] - 1)
    both = np.minimum(errors[:, 0], errors[:, -1]) - errors.min(axis=1) > config.drop
    drops = {
        name: {"mean": float(mean[end] - mean[top]), "interval": interval(errors[:, end] - errors[:, top], config.resamples)}
        for name, end in (("drop_at_the_low_end", 0), ("drop_at_the_high_end", -1))
    }
    return {
        "rates": config.swept,
        "mean_accuracy": (1.0 - mean).tolist(),
        "best_rate": config.swept[top],
        **drops,
        "share_of_seeds_with_an_interior_optimum_and_both_drops": float(np.mean(inside & both)),
    }
