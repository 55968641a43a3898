"""How should a search on learning curves start, and what should it maximize?

This experiment chose the defaults of `bonas.curve_search` on synthetic tables of 190 architectures
whose learning curves are power laws with checkpoints at 1, 3, 8 and 20 of 20 epochs. Final value,
height and speed are smooth in depth and width. The tables differ in the noise of the final values,
in how much a curve falls after the first checkpoint, and in the variance between runs. The real
tables of hutchinson.search played no part in the choice. They had been searched before, first with
five fully trained initial networks and then with Hutchinson's GPAR, and those results raised the
question.

Each variant is saved, and a second call runs the missing ones.
"""

from dataclasses import asdict, dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.table import Table

from bonas.curves import (
    autoregressive,
    curve_search,
    freeze_thaw,
    gpar,
    power_law,
    run_curves,
)
from bonas.problems import tables
from bonas.spaces import Int, Space, TableSpace
from experiments import common
from experiments.hutchinson.regret import regrets

STEPS = (1, 3, 8, 20)
SPACE = Space(depth=Int(1, 5), width=Int(2, 300, log=True))
VARIANTS = {
    "bonas": {},
    "bonas, rate": {"variant": "rate"},
    "bonas, 5 halved": {"initial": 5},
    "bonas, 15, a third": {"initial": 15, "thinning": 3},
    "bonas, 5 whole": {"thinning": 1},
    "Hutchinson's GPAR": {"model": autoregressive(gpar())},
    "freeze-thaw": {"model": freeze_thaw()},
    "power laws": {"model": power_law()},
    "published": {"variant": "published"},
}


@dataclass(frozen=True)
class Config:
    # noise of an architecture, height of the drop, noise of a run
    kinds: tuple[tuple[float, float, float], ...] = (
        (0.1, 0.6, 0.0),
        (0.4, 0.6, 0.0),
        (0.1, 2.0, 0.0),
        (0.05, 0.15, 0.0),
        (0.1, 0.6, 0.5),
        (0.1, 2.0, 0.5),
    )
    tables: int = 3  # tables of each kind
    seeds: int = 8  # searches on each table
    networks: int = 12  # networks that the budget trains completely
    widths: int = 40  # about this number of widths, for each of five depths
    runs: int = 4  # runs of each architecture
    variants: tuple[str, ...] = tuple(VARIANTS)


SMOKE = Config(
    kinds=((0.1, 0.6, 0.5),),
    tables=1,
    seeds=2,
    networks=2,
    widths=4,
    variants=tuple(VARIANTS)[:2],
)


def power_laws(
    config: Config, noise: float, height: float, luck: float, seed: int
) -> tables.Table:
    """Create a table of power-law curves whose parameters are draws of a GP over architectures."""
    draw = np.random.default_rng(seed)
    widths = np.unique(np.round(np.geomspace(2, 300, config.widths)).astype(int))
    pairs = np.array(
        [(depth, width) for depth in range(1, 6) for width in widths], float
    )
    places = np.stack([pairs[:, 0] / 2.0, np.log10(pairs[:, 1]) / 0.5], axis=1)
    cov = np.exp(
        -0.5 * ((places[:, None] - places[None]) ** 2).sum(axis=2)
    ) + 1e-6 * np.eye(len(pairs))
    end, high, fast = (np.linalg.cholesky(cov) @ draw.normal(size=(len(pairs), 3))).T[
        :, :, None, None
    ]
    fall = (np.array(STEPS) / STEPS[-1])[None, None, :] ** (
        -0.4 * np.exp(0.3 * fast)
    ) - 1.0
    sizes = (
        (len(pairs), 1, 1),
        (len(pairs), config.runs, 1),
        (len(pairs), config.runs, len(STEPS)),
    )
    own = sum(
        by * draw.normal(size=size)
        for by, size in zip((noise, luck, 0.05), sizes, strict=True)
    )
    unit = [
        parameter.unit(jnp.asarray(column))
        for parameter, column in zip(SPACE.parameters.values(), pairs.T, strict=True)
    ]
    return tables.table(
        TableSpace(SPACE, np.stack(unit, axis=1)),
        STEPS,
        end + height * np.exp(0.5 * high) * fall + own,
    )


def run(config: Config, name: str, made: dict, show) -> dict:
    """Return the mean regret of a variant per kind of table; compiled once for all tables."""
    budget, first = config.networks * STEPS[-1], next(iter(made.values()))
    search = curve_search(first.space, STEPS, **VARIANTS[name])

    @jax.jit
    def searches(values, keys):
        objective = tables.objective(first._replace(values=values))
        return jax.lax.map(
            partial(run_curves, search, objective, STEPS, budget=budget), keys
        )

    keys = jax.vmap(jax.random.key)(np.arange(100, 100 + config.seeds))
    found: dict = {}
    for (noise, height, luck, _), table in made.items():
        history = jax.tree.map(np.asarray, searches(table.values, keys))
        kind = found.setdefault(f"noise {noise:g}, fall {height:g}, luck {luck:g}", [])
        kind.append(
            regrets(table, history, budget, config.networks)["network"].mean(axis=0)
        )
        show()
    return {
        "variant": name,
        "regret": {
            kind: np.mean(rows, axis=0).tolist() for kind, rows in found.items()
        },
    }


def main() -> None:
    args, config = common.parse(arguments(), Config(), SMOKE)
    common.setup(args.out)
    made = {
        (*kind, i): power_laws(config, *kind, seed=11 + i)
        for kind in config.kinds
        for i in range(config.tables)
    }
    file = args.out / "variants.jsonl"
    settings = asdict(replace(config, variants=()))
    finished = {row["variant"]: row for row in common.read_lines(file, settings)}
    with common.progress_bar(disable=None) as bar:
        task = bar.add_task(
            "", total=len(made) * sum(name not in finished for name in config.variants)
        )
        for name in config.variants:
            if name not in finished:
                bar.update(task, description=name)
                finished[name] = run(config, name, made, lambda: bar.advance(task))
                common.append_line(file, finished[name], settings)
    found = {name: finished[name]["regret"] for name in config.variants}
    means = {
        name: np.mean(list(kinds.values()), axis=0).tolist()
        for name, kinds in found.items()
    }
    best = min(means, key=lambda name: np.mean(means[name]))
    result = {"config": asdict(config), "kinds": found, "mean": means, "best": best}
    common.write_json(
        args.out / "beyond_curve_defaults.json", {**common.provenance(), **result}
    )
    draw(means, args.out / "curve_defaults.png")
    show(means, best)


def draw(means: dict, file) -> None:
    figure, ax = plt.subplots(figsize=(6.4, 4.2))
    for name, mean in means.items():
        ax.plot(
            np.arange(1, len(mean) + 1),
            mean,
            marker=".",
            label=name,
            lw=2.4 if name == next(iter(VARIANTS)) else 1.2,
        )
    ax.set(
        yscale="log",
        xlabel="training spent, in whole networks",
        ylabel="mean regret (deviations of the table)",
    )
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(file, dpi=150)


def show(means: dict, best: str) -> None:
    at = [n for n in (2, 4, 6, 9, 12) if n <= len(means[best])]
    table = Table("mean regret after whole networks", *map(str, at))
    for name, mean in means.items():
        table.add_row(
            f"[bold]{name}" if name == best else name,
            *(f"{mean[n - 1]:.3f}" for n in at),
        )
    Console(width=100).print(table)


def arguments():
    return common.parser(
        __doc__,
        "beyond_curve_defaults",
        smoke="one small table, two variants",
        seeds="searches of each table (default 8)",
    )


if __name__ == "__main__":
    main()
