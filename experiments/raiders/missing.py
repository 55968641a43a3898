"""Does the arc kernel learn that missing means low? The demonstration of Swersky et al. 2014.

A score x ~ U(0, 1) leads to a return y = 1/(1 + exp(−20(x − 1/2))) + N(0, 0.01); people whose
return is below 1/2 do not report their score. For the arc kernel a missing score is an inactive
parameter, at the same distance from every reported score, and the data determine what it goes
with. The authors' code and notes claim that the kernel learns that missing means low. The
alternatives are to drop the rows without a score, or to fill in the mean.

Kernel parameters start where the authors' demonstration starts them. Test points are new draws,
missing by the same rule. The figure shows one seed, the numbers average over all seeds.
"""

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jax import Array

import bonas
from bonas import gp, infer
from experiments import common
from experiments.figures import BLUE, VERMILION, save


@dataclass(frozen=True)
class Config:
    rows: int = 200  # stated
    steepness: float = 20.0  # stated
    noise: float = 0.01  # stated: a variance
    threshold: float = 0.5  # stated: lower returns have no score
    omega: float = 1.0  # initial values of the arc kernel, as in the authors' code ...
    rho: float = 0.1
    variance: float = 1.0  # ... and of every kernel here
    start_noise: float = 0.1
    # Evaluations of density and gradient: more than enough for four hyperparameters
    evaluations: int = 60
    tests: int = 2000  # new test rows per seed
    seeds: int = 50
    shown: int = 0  # seed of the figure: the first, not selected


class Way(NamedTuple):
    """A treatment of missing scores: a kernel on points (reported, score)."""

    kernel: gp.Kernel
    start: dict  # parameters of the kernel


class Scores(NamedTuple):
    """The scores of a treatment on new draws."""

    error: Array  # () mean squared error of the predicted return
    missing: Array  # () mean squared error for missing scores
    level: Array  # () the return predicted for a missing score
    reported: gp.Prediction  # (grid,) prediction for reported scores
    unreported: gp.Prediction  # (1,) prediction for a missing score


def reported(x: Array) -> Array:
    """Return the active columns of a point (reported, score)."""
    return jnp.array([False, True]) & (x[0] > 0.5)


def ways(config: Config) -> dict[str, Way]:
    plain = {"variance": config.variance, "lengthscale": jnp.ones(1)}
    arc = {
        "variance": config.variance,
        "omega": jnp.full(2, config.omega),
        "rho": jnp.full(2, config.rho),
    }
    return {
        "arc": Way(gp.arc(reported, gp.se(), prior=gp.priors.flat_angles), arc),
        "mean": Way(gp.on_columns([1], gp.se()), plain),
        "drop": Way(gp.on_columns([1], gp.se()), plain),
    }


def draw(config: Config, key: Array, n: int) -> tuple[Array, Array]:
    """Return points (n, 2), with the score even if it is not reported, and returns (n,)."""
    score_key, noise_key = jax.random.split(key)
    score = jax.random.uniform(score_key, (n,))
    y = truth(config, score) + jnp.sqrt(config.noise) * jax.random.normal(
        noise_key, (n,)
    )
    return jnp.stack([jnp.where(y < config.threshold, 0.0, 1.0), score], axis=1), y


def truth(config: Config, score: Array) -> Array:
    return 1.0 / (1.0 + jnp.exp(-config.steepness * (score - 0.5)))


def grid() -> Array:
    return jnp.stack([jnp.ones(201), jnp.linspace(0.0, 1.0, 201)], axis=1)


@partial(jax.jit, static_argnames=("config", "name"))
def study(config: Config, name: str, keys: Array) -> Scores:
    """Return the scores of one treatment for every seed."""
    way = ways(config)[name]

    def one(key):
        train_key, test_key = jax.random.split(key)
        (x, y), (at, returns) = (
            draw(config, train_key, config.rows),
            draw(config, test_key, config.tests),
        )
        reported, absent = x[:, 0] > 0.5, at[:, 0] < 0.5
        average = jnp.sum(jnp.where(reported, x[:, 1], 0.0)) / reported.sum()
        used = reported if name == "drop" else jnp.ones_like(reported)
        x, at = (
            points.at[:, 1].set(jnp.where(points[:, 0] > 0.5, points[:, 1], average))
            for points in (x, at)
        )
        data = bonas.Dataset(x, y[:, None], used[:, None], jnp.asarray(config.rows))
        posterior = fit(config, way, data)
        mean = gp.predict(posterior, at).mean
        if name == "drop":  # rows without a score are predicted by the average
            mean = jnp.where(
                absent, jnp.sum(jnp.where(used, y, 0.0)) / used.sum(), mean
            )
        error = (mean - returns) ** 2
        of_missing = jnp.sum(jnp.where(absent, error, 0.0)) / absent.sum()
        level = jnp.sum(jnp.where(absent, mean, 0.0)) / absent.sum()
        unreported = gp.predict(
            posterior, jnp.stack([jnp.zeros(1), average[None]], axis=1)
        )
        return Scores(
            error.mean(), of_missing, level, gp.predict(posterior, grid()), unreported
        )

    return jax.lax.map(one, keys)


def fit(config: Config, way: Way, data: bonas.Dataset) -> gp.Posterior:
    """Return the posterior under MAP hyperparameters."""
    mean = gp.learned_constant()
    target = gp.hyperposterior(way.kernel, data, mean=mean)
    begin = {
        "kernel": way.start,
        "noise": config.start_noise,
        "mean": {"constant": data.y.mean()},
    }
    found, _ = infer.maximize(
        jax.random.key(0),
        target.maximizing,
        target.unconstrain(begin),
        steps=config.evaluations,
    )
    best = target.constrain(jax.tree.map(lambda leaf: leaf[0], found))
    return gp.condition(
        way.kernel,
        best["kernel"],
        data,
        noise=best["noise"],
        mean=mean,
        mean_params=best["mean"],
    )


def average(values: Array) -> dict:
    """Mean over seeds and its standard error; the error is None for one seed."""
    n = len(values)
    return {
        "mean": float(np.mean(values)),
        "standard_error": float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else None,
    }


def summarize(config: Config, keys: Array, results: dict[str, Scores]) -> dict:
    """Return actual and predicted returns for missing scores, and paired errors."""

    def actual(key):
        at, returns = draw(config, jax.random.split(key)[1], config.tests)
        absent = at[:, 0] < 0.5
        return jnp.sum(jnp.where(absent, returns, 0.0)) / absent.sum()

    measured = {
        name: {
            "squared_error": average(scores.error),
            "squared_error_where_missing": average(scores.missing),
            "return_predicted_where_missing": average(scores.level),
        }
        for name, scores in results.items()
    }
    pairs = {
        f"squared_error_arc_minus_{name}": average(
            results["arc"].error - results[name].error
        )
        for name in ("mean", "drop")
    }
    return {
        "return_where_missing": average(jax.jit(jax.vmap(actual))(keys)),
        "ways": measured,
        **pairs,
    }


def draw_seed(config: Config, key: Array, scores: Scores, path: Path) -> None:
    """Draw the function, the data, and the predictions with and without a score."""
    x, y = draw(config, jax.random.split(key)[0], config.rows)
    missing, line = np.asarray(x[:, 0] < 0.5), np.asarray(grid()[:, 1])
    figure, axis = plt.subplots(figsize=(7.4, 4.8), layout="constrained")
    wide = np.ones_like(line)
    for prediction, color, label in (
        (scores.reported, BLUE, "score known"),
        (scores.unreported, VERMILION, "score missing"),
    ):
        mean, std = (np.asarray(part)[config.shown] * wide for part in prediction)
        axis.fill_between(
            line, mean - 2 * std, mean + 2 * std, color=color, alpha=0.2, lw=0
        )
        axis.plot(line, mean, color=color, lw=2, label=f"prediction ± 2 sd, {label}")
    axis.plot(
        line, truth(config, line), color="black", lw=1.2, ls="--", label="true function"
    )
    axis.plot(
        x[~missing, 1],
        y[~missing],
        "x",
        color="black",
        ms=5,
        label="observed with its score",
    )
    axis.plot(
        x[missing, 1],
        y[missing],
        "o",
        mfc="none",
        color=VERMILION,
        ms=5,
        label="observed without its score",
    )
    axis.set(
        xlabel="score (circles: not reported, unknown to the model)",
        ylabel="return",
        xlim=(0.0, 1.0),
    )
    axis.set_title("The arc kernel learns that a missing score means a low return")
    axis.grid(color="0.9", lw=0.6)
    axis.set_axisbelow(True)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    save(figure, path)


def report(summary: dict) -> None:
    print(
        f"mean return of rows without a score: {summary['return_where_missing']['mean']:.3f}"
    )
    print(f"{'way':6} {'predicted':>16} {'error if missing':>20} {'error of all':>21}")
    for name, row in summary["ways"].items():
        error_if_missing, level = (
            row["squared_error_where_missing"]["mean"],
            row["return_predicted_where_missing"]["mean"],
        )
        print(
            f"{name:6} {level:16.3f} {error_if_missing:20.4f} {row['squared_error']['mean']:21.4f}"
        )


def main() -> None:
    parser = common.parser(
        __doc__,
        "raiders_missing",
        smoke="two seeds, as a quick test",
        seeds=f"number of data sets to average over (default {Config.seeds})",
    )
    given, config = common.parse(
        parser, Config(), Config(rows=40, evaluations=10, tests=50, seeds=2)
    )

    common.setup(given.out)
    keys = jax.random.split(jax.random.key(0), config.seeds)
    results = {name: study(config, name, keys) for name in ways(config)}
    summary = summarize(config, keys, results)
    draw_seed(
        config, keys[config.shown], results["arc"], given.out / "raiders_missing.png"
    )
    common.write_json(
        given.out / "raiders_missing.json",
        {**common.provenance(), "config": asdict(config), "results": summary},
    )
    report(summary)
    print(f"figure and numbers are in {given.out}")


if __name__ == "__main__":
    main()
