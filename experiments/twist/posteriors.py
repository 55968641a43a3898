"""Which basis and which length scale? Twist's figures 5 and 6, with numbers for their claims.

Figure 5 shows Bayesian linear regression on a basis that cannot follow the objective and on one
that can; Twist calls the second "a much more appropriate fit". Figure 6 shows a Gaussian process
with the squared exponential kernel on the same samples; with the smaller length scale the standard
deviation grows much faster away from samples.

Twist states α = 1, σ = 0.25 and a band of ± 1.96 standard deviations. He does not state the
objective, the samples or the length scales; those below are ours. The figures show one seed, the
numbers average over all seeds.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jax import Array

import bonas
from bonas import gp
from experiments import common
from experiments.figures import save

FIGURES = {  # file name -> title and panels
    "figure_5": ("Linear regression on basis functions", ("poor", "appropriate")),
    "figure_6": ("Gaussian process, squared exponential kernel", ("larger", "smaller")),
}
VERMILION = "#D55E00"  # distinguishable from black with color blindness (Okabe and Ito)


@dataclass(frozen=True)
class Config:
    # stated: prior standard deviation of the weights, and of the process
    alpha: float = 1.0
    noise_std: float = 0.25  # stated: σ
    # stated: 95% of a Gaussian, so a well-specified model covers 95% of the objective
    band: float = 1.96
    # the domain: around 0, where the prior of the weights is centered ...
    low: float = -2.0
    # ... and wide enough for a parabola to differ from a line by several σ
    high: float = 2.0
    # f(x) = −0.75 − 0.25x + 0.5x²: a quadratic can follow it, a line cannot. Each weight, and f on
    # the domain, is plausible under a prior with α = 1.
    weights: tuple[float, ...] = (-0.75, -0.25, 0.5)
    # Enough for three weights, few enough to leave gaps where the posteriors of figure 6 differ
    samples: int = 6
    # length scale a quarter of the domain: samples inform each other
    larger: float = 1.0
    # Length scale half the typical gap between samples, 4/7: samples say little about the gaps
    smaller: float = 0.3
    # Distances outside the outermost sample, up to about `larger`
    distances: tuple[float, ...] = (0.0, 0.1, 0.2, 0.4, 0.8)
    # points of the domain where fit and coverage are measured, 0.01 apart
    grid: int = 401
    # the standard error of the coverage is then about half a percentage point
    seeds: int = 500
    shown: int = 0  # seed of the figures: the first, not selected


class Panel(NamedTuple):
    """One posterior of a figure."""

    title: str
    kernel: gp.Kernel
    params: dict


class Result(NamedTuple):
    """A posterior and its scores; with a leading axis of seeds."""

    domain: gp.Prediction  # (grid,) the posterior on the domain
    rmse: Array  # () error of the posterior mean on the domain
    coverage: Array  # () share of the domain where the objective lies within the band
    # (distances,) standard deviation at the distances, averaged over both sides
    std: Array


def panels(config: Config) -> dict[str, Panel]:
    variance = config.alpha**2
    larger, smaller = (
        {"variance": variance, "lengthscale": jnp.full(1, size)}
        for size in (config.larger, config.smaller)
    )
    return {
        "poor": Panel(
            "(a) φ(x) = (1, x)", gp.basis(gp.affine_features), {"variance": variance}
        ),
        "appropriate": Panel(
            "(b) φ(x) = (1, x, x²)",
            gp.basis(gp.quadratic_features),
            {"variance": variance},
        ),
        "larger": Panel(f"(a) ℓ = {config.larger:g}", gp.se(), larger),
        "smaller": Panel(f"(b) ℓ = {config.smaller:g}", gp.se(), smaller),
    }


def objective(config: Config, x: Array) -> Array:
    """Return f(x) (m,) at points x (m, 1)."""
    return jax.vmap(gp.quadratic_features)(x) @ jnp.asarray(config.weights)


def observe(config: Config, key: Array) -> bonas.Dataset:
    """Return noisy samples of the objective at random points."""
    x_key, noise_key = jax.random.split(key)
    x = jax.random.uniform(
        x_key, (config.samples, 1), minval=config.low, maxval=config.high
    )
    y = objective(config, x) + config.noise_std * jax.random.normal(
        noise_key, (config.samples,)
    )
    return bonas.Dataset(
        x, y[:, None], jnp.ones((config.samples, 1), bool), jnp.asarray(config.samples)
    )


def domain(config: Config) -> Array:
    return jnp.linspace(config.low, config.high, config.grid)[:, None]


def fit(config: Config, panel: Panel, samples: bonas.Dataset) -> Result:
    """Fit the posterior of one panel to the samples of every seed."""
    distances, x = jnp.asarray(config.distances), domain(config)

    def one(data):
        posterior = gp.condition(
            panel.kernel, panel.params, data, noise=config.noise_std**2
        )
        there = gp.predict(posterior, x)
        error = there.mean - objective(config, x)
        outside = jnp.concatenate([data.x.min() - distances, data.x.max() + distances])
        std = gp.predict(posterior, outside[:, None]).std.reshape(2, -1).mean(axis=0)
        covered = jnp.where(jnp.abs(error) <= config.band * there.std, 1.0, 0.0)
        return Result(
            there, rmse=jnp.sqrt(jnp.mean(error**2)), coverage=covered.mean(), std=std
        )

    return jax.jit(jax.vmap(one))(samples)


def average(values: Array) -> dict:
    """Mean over seeds and its standard error; no error is known from one seed."""
    n = len(values)
    error = (
        np.std(values, axis=0, ddof=1) / np.sqrt(n)
        if n > 1
        else np.full(np.shape(values)[1:], np.nan)
    )
    known = [None if np.isnan(e) else float(e) for e in np.ravel(error)]
    means = np.mean(values, axis=0)
    return {"mean": means.tolist(), "standard_error": known if means.ndim else known[0]}


def summarize(results: dict[str, Result]) -> dict:
    """Return the numbers behind both claims; differences are paired over seeds."""
    poor, appropriate = results["poor"].rmse, results["appropriate"].rmse
    rise = {
        name: results[name].std[:, 1:] - results[name].std[:, :1]
        for name in ("larger", "smaller")
    }
    return {
        "panels": {
            name: {
                "rmse": average(r.rmse),
                "coverage": average(r.coverage),
                "std_at_distances": average(r.std),
            }
            for name, r in results.items()
        },
        "rmse_poor_minus_appropriate": average(poor - appropriate),
        "share_of_seeds_where_appropriate_fits_better": float(
            np.mean(poor > appropriate)
        ),
        "std_rise_smaller_minus_larger": average(rise["smaller"] - rise["larger"]),
        "share_of_seeds_where_std_rises_faster_for_smaller": np.mean(
            rise["smaller"] > rise["larger"], axis=0
        ).tolist(),
    }


def draw(
    config: Config,
    title: str,
    data: bonas.Dataset,
    pair: list[tuple[Panel, gp.Prediction]],
    path: Path,
) -> None:
    """Draw two posteriors side by side with the objective and the samples."""
    x = domain(config)
    f, line = objective(config, x), np.ravel(x)
    figure, axes = plt.subplots(
        1, 2, figsize=(9.0, 3.9), sharey=True, layout="constrained"
    )
    for (panel, (mean, std)), axis in zip(pair, axes, strict=True):
        axis.plot(line, f, color="black", lw=1.6, label="objective")
        axis.plot(
            data.x,
            data.y,
            "x",
            color="black",
            ms=8,
            mew=2.0,
            clip_on=False,
            label="samples",
        )
        axis.plot(line, mean, color=VERMILION, lw=1.8, ls="--", label="posterior mean")
        lower, upper = mean - config.band * std, mean + config.band * std
        axis.fill_between(
            line,
            lower,
            upper,
            color=VERMILION,
            alpha=0.22,
            lw=0,
            label=f"mean ± {config.band} sd",
        )
        axis.set(
            title=panel.title,
            xlabel="x",
            xlim=(config.low, config.high),
            xticks=np.linspace(config.low, config.high, 5),
        )
        axis.grid(color="0.9", lw=0.6)
        axis.set_axisbelow(True)
    axes[0].set_ylabel("f(x)")
    figure.suptitle(f"{title} (α = {config.alpha:g}, σ = {config.noise_std:g})")
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    save(figure, path)


def report(config: Config, summary: dict) -> None:
    print(
        f"{'posterior':12} {'RMSE':>7} {'coverage':>9}   sd at distances"
        f" {', '.join(map(str, config.distances))}"
    )
    for name, scores in summary["panels"].items():
        std = "  ".join(f"{value:.3f}" for value in scores["std_at_distances"]["mean"])
        print(
            f"{name:12} {scores['rmse']['mean']:7.3f} {scores['coverage']['mean']:9.1%}   {std}"
        )
    share = summary["share_of_seeds_where_appropriate_fits_better"]
    print(f"the appropriate basis fits better in {share:.1%} of seeds")
    shares = ", ".join(
        f"{share:.1%}"
        for share in summary["share_of_seeds_where_std_rises_faster_for_smaller"]
    )
    print(
        f"the standard deviation rises faster for the smaller length scale in {shares} of seeds "
        "(one share per distance)"
    )


def main() -> None:
    parser = common.parser(
        __doc__,
        "twist_posteriors",
        smoke="three seeds, as a quick test",
        seeds=f"number of seeds to average over (default {Config.seeds})",
    )
    given, config = common.parse(parser, Config(), Config(seeds=3))

    common.setup(given.out)
    seeds = list(range(config.seeds))
    samples = jax.jit(jax.vmap(lambda seed: observe(config, jax.random.key(seed))))(
        jnp.asarray(seeds)
    )
    chosen = panels(config)
    results = {name: fit(config, panel, samples) for name, panel in chosen.items()}
    shown, fits = jax.tree.map(
        lambda rows: np.asarray(rows[config.shown]),
        (samples, {n: r.domain for n, r in results.items()}),
    )
    for figure, (title, names) in FIGURES.items():
        draw(
            config,
            title,
            shown,
            [(chosen[name], fits[name]) for name in names],
            given.out / f"{figure}.png",
        )
    summary = summarize(results)
    common.write_json(
        given.out / "twist_posteriors.json",
        {**common.provenance(), "config": asdict(config), "results": summary},
    )
    report(config, summary)
    print(f"figures and numbers are in {given.out}")


if __name__ == "__main__":
    main()
