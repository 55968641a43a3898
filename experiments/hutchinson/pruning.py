"""How many of its units does a Bayesian network use? Hutchinson's figures 5.4 to 5.6.

Figure 5.4 shows the divergences of the units of one wide network on protein. Figures 5.5 and 5.6
show active units, log likelihood and error against width for one to three hidden layers, here from
the table of networks that bonas ships (`bonas.problems.bnn_table`). The thesis claims that
divergences form two groups; that all units are used up to a break point, after which sharply fewer
are; that scores then rise a little and are flat or fall in the end; that this depends on the width,
not on the number of units; and that most active units are in the first layer. A unit is active by
the mean divergence of its incoming weights.

Whether there are two groups is tested on logarithms, layer by layer, by Silverman's test of one
mode and by a mixture of two normal distributions. The network of figure 5.4 has 2 × 300 units in
place of 2 × 600; it is trained from three seeds, and the figure shows the first. Every network is
saved, and a second call trains the missing ones. --smoke trains tiny networks on synthetic rows.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from bonas import nets
from bonas.nets import mlp, pruning
from bonas.problems import bnn_table, datasets
from bonas.problems.bnn_table import Network
from experiments import common
from experiments.hutchinson import pruning_report as pruned
from experiments.hutchinson import uci_networks as sets


@dataclass(frozen=True)
class Config:
    wide: tuple[str, int] = ("protein", 300)  # set and width of figure 5.4
    checkpoints: tuple[int, ...] = (2000, 4000, 6000)
    batch: int = 256
    learning_rate: float = 0.005
    draws: int = 50
    seeds: int = 3  # seeds of the wide network


SMOKE = Config(wide=("protein", 6), checkpoints=(10, 20), batch=16, draws=4, seeds=1)


def wide(config: Config, seed: int, synthetic: bool) -> np.ndarray:
    """Return the mean divergence of every unit (2, width) of one wide network."""
    name, width = config.wide
    rows = len(sets.data_of(name, synthetic)[0].x)
    vi, course = (
        nets.VI(samples=1),
        nets.TrainingPlan(config.checkpoints, min(config.batch, rows), config.draws),
    )
    traits = nets.VIHyperparameters(learning_rate=config.learning_rate)
    found, _ = sets.train(
        name, [width, width], seed, vi, course, traits, synthetic=synthetic
    )
    q = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), found.q)
    inputs, padded = q.mean["first"]["kernel"].shape
    shape = nets.Shape(inputs, 1, depth=2, width=padded, activations=("relu",))
    mask = mlp.masks(jax.random.key(0), shape, nets.architecture(shape, [width, width]))
    return np.asarray(
        pruning.unit_divergence(vi, q, mask, jnp.asarray(1.0, jnp.float32))
    )[:, :width]


def divergences_of(config: Config, synthetic: bool, file: Path) -> list[np.ndarray]:
    """Return the divergences of each seed; train and save the missing ones."""
    settings = {**vars(replace(config, seeds=0)), "synthetic": synthetic}
    records = {
        row["seed"]: row["divergence"] for row in common.read_lines(file, settings)
    }
    with common.progress_bar(disable=None) as bar:
        for seed in bar.track(range(config.seeds), description="wide networks"):
            if seed not in records:
                records[seed] = wide(config, seed, synthetic).tolist()
                common.append_line(
                    file, {"seed": seed, "divergence": records[seed]}, settings
                )
    return [np.array(records[seed]) for seed in range(config.seeds)]


def train_synthetic_table(config: Config) -> dict[str, bnn_table.Record]:
    """Train tiny networks in place of the table."""
    vi, course = (
        nets.VI(samples=1),
        nets.TrainingPlan(config.checkpoints, config.batch, config.draws),
    )
    networks = [Network(depth, width) for depth in (1, 2) for width in (2, 5)]
    rows = [
        sets.train(
            "yacht",
            each.widths(),
            0,
            vi,
            course,
            nets.VIHyperparameters(),
            synthetic=True,
        )[1]
        for each in networks
    ]
    metrics = {
        key: np.array([[row[key]] for row in rows], float) for key in bnn_table.METRICS
    }
    active = np.array(
        [
            [[layers + [0] * (2 - len(layers)) for layers in row["active"]]]
            for row in rows
        ]
    )
    return {
        "yacht": bnn_table.Record(
            tuple(networks), np.asarray(config.checkpoints), metrics, active
        )
    }


def main() -> None:
    """Train the wide networks, read the table, draw and summarize."""
    args, config = common.parse(arguments(), Config(), SMOKE)
    synthetic = args.smoke and not os.environ.get(datasets.FOLDER_VARIABLE)
    common.setup(args.out)
    divergences = divergences_of(config, synthetic, args.out / "wide.jsonl")
    records = (
        train_synthetic_table(config)
        if args.smoke
        else {name: bnn_table.record(name) for name in bnn_table.names()}
    )
    pruned.draw_histogram(divergences[0], config.wide, args.out / "figure_5_4.png")
    pruned.draw_against_width(records, "active", args.out / "figure_5_5.png")
    pruned.draw_against_width(records, "scores", args.out / "figure_5_6.png")
    found = {
        "wide": pruned.layers(divergences),
        "sets": {name: pruned.verdict(each) for name, each in records.items()},
    }
    about = {} if args.smoke else {"table": bnn_table.settings()["settings"]}
    common.write_json(
        args.out / "hutchinson_pruning.json",
        {**common.provenance(), "synthetic": synthetic, **about, **found},
    )
    pruned.show(found)


def arguments():
    """Create the parser."""
    seeds = "seeds of the wide network (default 3); the table has its own"
    return common.parser(
        __doc__,
        "hutchinson_pruning",
        smoke="tiny networks on synthetic rows",
        seeds=seeds,
    )


if __name__ == "__main__":
    main()
