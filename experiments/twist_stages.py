"""How does a search of one dimension go on? Twist's figure 7: the posterior at several stages, and the next point (T-E6).

The figure shows the objective, samples before and after the search begins, and the posterior. The claims: the search soon
captures how the objective behaves; the interval of the maximum is unexplored at first, and most new points fall there; the
standard deviation decreases very quickly, and is smaller close to samples.

The search is Algorithm 4, whose values are accuracies; here as everywhere 1 − accuracy is minimised. Twist states neither the
objective nor the settings; those below are ours. So that the interval is unexplored in every seed, initial points are uniform
on the rest of the domain. The figure shows one seed, the numbers average over all.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jax import Array
from script import flags, ready, record, stages

import bonas
from bonas import gp, plots
from bonas.problems import twist

SPACE = bonas.Space(x=bonas.Float(0.0, 1.0))
GREEN = "#009E73"  # of the new sample, as in Twist's figure


@dataclass(frozen=True)
class Config:
    humps: tuple[tuple[float, float, float], ...] = ((0.6, 0.2, 0.12), (0.9, 0.7, 0.08))  # height, place, width: of two
    # the wide one is found by chance and the higher one is not
    near: float = 0.1  # from the maximum: the interval that is unexplored, a fifth of the domain
    alpha: float = 1.0  # the size of an accuracy, as in `algorithm4`
    sigma: float = 0.02  # noise of the values, which is what the search is told
    lengthscale: float = 0.1  # about the width of the humps
    initial: int = 4
    evaluations: int = 16  # the initial ones included: the standard deviation is then that of the noise nearly everywhere
    candidates: int = 1000
    stages: tuple[int, ...] = (4, 5, 6, 8, 12, 16)  # evaluations after which the posterior is drawn
    tolerance: float = 0.05  # from the maximum of the objective: a point that is so good is a success
    grid: int = 501
    seeds: int = 200  # shares are then known to about three points
    shown: int = 0  # the seed of the figure: the first, not a chosen one


def accuracy(config: Config, x: Array) -> Array:
    """f(x) without noise."""
    return sum(height * jnp.exp(-0.5 * ((x - place) / width) ** 2) for height, place, width in config.humps)


def objective(config: Config):
    """1 − accuracy, with noise, at a row u (1,)."""

    def value(key: Array, u: Array) -> Array:
        return 1.0 - accuracy(config, u[0]) + config.sigma * jax.random.normal(key, ())

    return value


def search(config: Config, interval: tuple[float, float]):
    """Algorithm 4, whose initial points are uniform outside the interval."""
    settings = {name: getattr(config, name) for name in ("alpha", "sigma", "lengthscale", "initial", "candidates")}
    plain, (low, high) = twist.algorithm4(SPACE, **settings), interval

    def init(key: Array, capacity: int):
        state = plain.init(key, capacity)
        u = state.design * (1.0 - (high - low))
        return state._replace(design=jnp.where(u < low, u, u + (high - low)))

    return replace(plain, init=init)


def believed(config: Config, x: Array, y: Array, n: Array) -> gp.Posterior:
    """The posterior of −accuracy from the first n evaluations, as the search has it."""
    seen = jnp.arange(len(y)) < n
    data = bonas.Dataset(x, y[:, None] - 1.0, seen[:, None], n)
    params = {"variance": config.alpha**2, "lengthscale": jnp.full(1, config.lengthscale)}
    return gp.condition(gp.se(), params, data, noise=config.sigma**2)


def measure(config: Config, histories, interval: tuple[float, float]) -> dict:
    """What the claims are about, stage by stage: means over seeds."""
    line = jnp.linspace(0.0, 1.0, config.grid)
    inside = (line >= interval[0]) & (line <= interval[1])
    truth = accuracy(config, line)
    peak, top = line[truth.argmax()], truth.max()

    def at(x, y, n):
        best = x[jnp.argmin(jnp.where(jnp.arange(len(y)) < n, y, jnp.inf)), 0]
        std = gp.predict(believed(config, x, y, n), line[:, None]).std
        here = jnp.where(inside, std, 0.0).sum() / inside.sum()
        return {"distance": abs(best - peak), "regret": top - accuracy(config, best), "std_near": here, "std": std.mean()}

    told = []
    for n in config.stages:
        found = jax.jit(jax.vmap(lambda x, y, n=n: at(x, y, jnp.asarray(n))))(histories.x, histories.y)
        told.append({"evaluations": n, **{name: float(values.mean()) for name, values in found.items()}})
    new = histories.x[:, config.initial :, 0]
    return {
        "stages": told,
        "share_of_new_points_near": float(((new >= interval[0]) & (new <= interval[1])).mean()),
        "share_of_the_domain": interval[1] - interval[0],
        "share_that_succeed": float((found["regret"] < config.tolerance).mean()),  # at the last stage
    }


def draw(config: Config, x: Array, y: Array, path: Path) -> None:
    """Posterior and expected improvement at every stage; crosses are initial samples, pluses later ones, green the next."""
    figure, panels = stages.pairs_of_axes(len(config.stages), height=4.4)
    model = replace(
        bonas.surrogates.gp(gp.se()), predict=lambda state, rows: jax.tree.map(lambda a: a[None], gp.predict(state, rows))
    )
    for n, pair in zip(config.stages, panels, strict=True):
        posterior, best = believed(config, x, y, jnp.asarray(n)), y[:n].min() - 1.0

        def improvement(rows, posterior=posterior, best=best):
            mean, std = gp.predict(posterior, rows)
            return bonas.ei(mean[None], std[None], best)

        plots.posterior_slice(
            model, posterior, SPACE, objective=lambda key, u: 1.0 - accuracy(config, u[0]), acquisition=improvement,
            scale=(1.0, 1.0), axes=list(pair),
        )  # fmt: skip
        _samples(config, pair[0], x[:, 0], y, n)
        pair[0].set_title(f"{n} evaluations")
    stages.tidy(figure, panels, value="1 − accuracy", acquisition="improvement")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _samples(config: Config, axis, x: np.ndarray, y: np.ndarray, n: int) -> None:
    first, later = slice(0, config.initial), slice(config.initial, n)
    axis.plot(x[first], y[first], "x", color="black", ms=8, mew=2.0, label="initial samples")
    axis.plot(x[later], y[later], "+", color="black", ms=9, mew=1.6, label="later samples")
    if n < len(y):
        axis.plot(x[n], y[n], "P", color=GREEN, ms=10, label="the next sample")


def report(results: dict) -> None:
    print(f"{'evaluations':>11} {'distance':>9} {'regret':>7} {'sd near':>8} {'sd':>6}")
    for row in results["stages"]:
        print(f"{row['evaluations']:11} {row['distance']:9.3f} {row['regret']:7.3f} {row['std_near']:8.3f} {row['std']:6.3f}")
    share, size = results["share_of_new_points_near"], results["share_of_the_domain"]
    print(f"{share:.0%} of new points are in the {size:.0%} of the domain around the maximum that was unexplored")
    print(f"{results['share_that_succeed']:.0%} of searches end at a point as good as the maximum")


def main() -> None:
    parser = flags.parser(
        __doc__,
        "twist_stages",
        smoke="three seeds, to see that everything runs",
        seeds=f"how many seeds to average over (default {Config.seeds})",
    )
    given, config = flags.read(parser, Config(), Config(seeds=3))

    ready.begin(given.out)
    line = np.linspace(0.0, 1.0, config.grid)
    peak = float(line[np.argmax(accuracy(config, line))])
    interval = (peak - config.near, peak + config.near)
    keys = jax.vmap(jax.random.key)(jnp.arange(config.seeds))
    histories = bonas.run_many(search(config, interval), objective(config), keys, config.evaluations)
    results = measure(config, histories, interval)
    draw(config, np.asarray(histories.x[config.shown]), np.asarray(histories.y[config.shown]), given.out / "figure_7.png")
    record.write(given.out / "twist_stages.json", {**record.about(), "config": asdict(config), "results": results})
    report(results)
    print(f"figure and numbers are in {given.out}")


if __name__ == "__main__":
    main()
