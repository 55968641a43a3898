"""How does a search in one dimension proceed? Twist's figure 7.

The figure shows the objective, the initial and later samples, and the posterior at several stages.
Twist claims that the search soon captures the objective, that the interval of the maximum is
unexplored at first and receives most new points, and that the standard deviation falls quickly and
is smaller close to samples.

The search is Algorithm 4 on accuracies; as everywhere in bonas, 1 − accuracy is minimized. Twist
states neither the objective nor the settings; those below are ours. Initial points are uniform
outside the interval of the maximum, so that it is unexplored in every seed. The figure shows one
seed, the numbers average over all seeds.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import bonas
from bonas import gp, plots
from bonas.surrogates import Surrogate
from experiments import common, figures
from experiments.twist import system as twist

SPACE = bonas.Space(x=bonas.Float(0.0, 1.0))
GREEN = "#009E73"  # color of the new sample, as in Twist's figure


@dataclass(frozen=True)
class Config:
    # Height, center and width of two humps: initial points hit the wide one but not the higher one.
    humps: tuple[tuple[float, float, float], ...] = ((0.6, 0.2, 0.12), (0.9, 0.7, 0.08))
    # Half-width of the unexplored interval around the maximum, a fifth of the domain
    near: float = 0.1
    alpha: float = 1.0  # the scale of an accuracy, as in `algorithm4`
    sigma: float = 0.02  # standard deviation of the noise, which the search is given
    lengthscale: float = 0.1  # about the width of the humps
    initial: int = 4
    # Including the initial ones: the standard deviation is then close to the noise nearly
    # everywhere
    evaluations: int = 16
    candidates: int = 1000
    # evaluations after which the posterior is drawn
    stages: tuple[int, ...] = (4, 5, 6, 8, 12, 16)
    # a point succeeds if its value is this close to the maximum
    tolerance: float = 0.05
    grid: int = 501
    # the standard error of a share is then about three percentage points
    seeds: int = 200
    shown: int = 0  # seed of the figure: the first, not selected


def accuracy(config: Config, x: Array) -> Array:
    """Return the accuracy without noise."""
    return sum(
        height * jnp.exp(-0.5 * ((x - place) / width) ** 2)
        for height, place, width in config.humps
    )


def objective(config: Config):
    """Return the noisy objective 1 − accuracy of a row u (1,)."""

    def value(key: Array, u: Array) -> Array:
        return 1.0 - accuracy(config, u[0]) + config.sigma * jax.random.normal(key, ())

    return value


def search(config: Config, interval: tuple[float, float]):
    """Return Algorithm 4 with uniform initial points outside the interval."""
    settings = {
        name: getattr(config, name)
        for name in ("alpha", "sigma", "lengthscale", "initial", "candidates")
    }
    low, high = interval

    def leave_out(key: Array, state):
        u = state.design * (1.0 - (high - low))
        return state._replace(design=jnp.where(u < low, u, u + (high - low)))

    return common.StartFrom(twist.algorithm4(SPACE, **settings), leave_out)


class FixedGP(Surrogate):
    """A GP whose state is a posterior under fixed hyperparameters; for drawing."""

    def predict(self, state: gp.Posterior, x: Array) -> gp.Prediction:
        return jax.tree.map(lambda leaf: leaf[None], gp.predict(state, x))


def posterior_after(config: Config, x: Array, y: Array, n: Array) -> gp.Posterior:
    """Return the posterior of −accuracy after n evaluations, as in the search."""
    seen = jnp.arange(len(y)) < n
    data = bonas.Dataset(x, y[:, None] - 1.0, seen[:, None], n)
    params = {
        "variance": config.alpha**2,
        "lengthscale": jnp.full(1, config.lengthscale),
    }
    return gp.condition(gp.se(), params, data, noise=config.sigma**2)


def measure(config: Config, histories, interval: tuple[float, float]) -> dict:
    """Return means over seeds of the distances and deviations at every stage."""
    line = jnp.linspace(0.0, 1.0, config.grid)
    inside = (line >= interval[0]) & (line <= interval[1])
    truth = accuracy(config, line)
    peak, top = line[truth.argmax()], truth.max()

    def at(x, y, n):
        best = x[jnp.argmin(jnp.where(jnp.arange(len(y)) < n, y, jnp.inf)), 0]
        std = gp.predict(posterior_after(config, x, y, n), line[:, None]).std
        here = jnp.where(inside, std, 0.0).sum() / inside.sum()
        return {
            "distance": abs(best - peak),
            "regret": top - accuracy(config, best),
            "std_near": here,
            "std": std.mean(),
        }

    stages = []
    for n in config.stages:
        found = jax.jit(jax.vmap(lambda x, y, n=n: at(x, y, jnp.asarray(n))))(
            histories.x, histories.y
        )
        stages.append(
            {
                "evaluations": n,
                **{name: float(values.mean()) for name, values in found.items()},
            }
        )
    new = histories.x[:, config.initial :, 0]
    return {
        "stages": stages,
        "share_of_new_points_near": float(
            ((new >= interval[0]) & (new <= interval[1])).mean()
        ),
        "share_of_the_domain": interval[1] - interval[0],
        # at the last stage
        "share_that_succeed": float((found["regret"] < config.tolerance).mean()),
    }


def draw(config: Config, x: Array, y: Array, path: Path) -> None:
    """Draw the posterior and expected improvement at every stage with the samples."""
    figure, panels = figures.stage_axes(len(config.stages), height=4.4)
    model = FixedGP()
    for n, pair in zip(config.stages, panels, strict=True):
        posterior, best = (
            posterior_after(config, x, y, jnp.asarray(n)),
            y[:n].min() - 1.0,
        )

        def improvement(rows, posterior=posterior, best=best):
            mean, std = gp.predict(posterior, rows)
            return bonas.ei(mean[None], std[None], best)

        plots.posterior_slice(
            model,
            posterior,
            SPACE,
            objective=lambda key, u: 1.0 - accuracy(config, u[0]),
            acquisition=improvement,
            scale=(1.0, 1.0),
            axes=list(pair),
        )
        _samples(config, pair[0], x[:, 0], y, n)
        pair[0].set_title(f"{n} evaluations")
    figures.finish_stages(
        figure, panels, value="1 − accuracy", acquisition="improvement"
    )
    figures.save(figure, path, dpi=130)


def _samples(config: Config, axis, x: np.ndarray, y: np.ndarray, n: int) -> None:
    first, later = slice(0, config.initial), slice(config.initial, n)
    axis.plot(
        x[first], y[first], "x", color="black", ms=8, mew=2.0, label="initial samples"
    )
    axis.plot(
        x[later], y[later], "+", color="black", ms=9, mew=1.6, label="later samples"
    )
    if n < len(y):
        axis.plot(x[n], y[n], "P", color=GREEN, ms=10, label="the next sample")


def report(results: dict) -> None:
    print(f"{'evaluations':>11} {'distance':>9} {'regret':>7} {'sd near':>8} {'sd':>6}")
    for row in results["stages"]:
        print(
            f"{row['evaluations']:11} {row['distance']:9.3f} {row['regret']:7.3f}"
            f" {row['std_near']:8.3f} {row['std']:6.3f}"
        )
    share, size = results["share_of_new_points_near"], results["share_of_the_domain"]
    print(
        f"{share:.0%} of new points are in the unexplored {size:.0%} of the domain"
        " around the maximum"
    )
    print(
        f"{results['share_that_succeed']:.0%} of searches end at a point as good as the maximum"
    )


def main() -> None:
    parser = common.parser(
        __doc__,
        "twist_stages",
        smoke="three seeds, as a quick test",
        seeds=f"number of seeds to average over (default {Config.seeds})",
    )
    given, config = common.parse(parser, Config(), Config(seeds=3))

    common.setup(given.out)
    line = np.linspace(0.0, 1.0, config.grid)
    peak = float(line[np.argmax(accuracy(config, line))])
    interval = (peak - config.near, peak + config.near)
    keys = jax.vmap(jax.random.key)(jnp.arange(config.seeds))
    histories = bonas.run_many(
        search(config, interval), objective(config), keys, config.evaluations
    )
    results = measure(config, histories, interval)
    draw(
        config,
        np.asarray(histories.x[config.shown]),
        np.asarray(histories.y[config.shown]),
        given.out / "figure_7.png",
    )
    common.write_json(
        given.out / "twist_stages.json",
        {**common.provenance(), "config": asdict(config), "results": results},
    )
    report(results)
    print(f"figure and numbers are in {given.out}")


if __name__ == "__main__":
    main()
