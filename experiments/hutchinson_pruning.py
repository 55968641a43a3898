"""How many of its units does a Bayesian network use? Hutchinson's figures 5.4 to 5.6 (H-E3).

Figure 5.4: the divergences of the units of one wide network on protein. Figures 5.5 and 5.6: active units, log likelihood and
error against width for one to three hidden layers, from the table of networks that bonas ships (`bonas.problems.bnn_table`).
The thesis says: divergences form two groups; all units are used up to a break point, after which fewer are, sharply; scores
rise on for a little and are flat or fall in the end; this follows the width, not the number of units; and most units that are
used are in the first layer. A unit is active by the mean divergence of its incoming weights (H-S5).

Whether there are two groups is asked of logarithms, layer by layer, by Silverman's test of one mode and by the two normal
distributions that fit them best. Scaled: the network of figure 5.4 has 2 × 300 units for 2 × 600; it is trained from three
seeds, and the figure has the first. Each is written down, and a second call does what is missing. --smoke trains tiny
networks on synthetic rows instead.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from script import flags, progress, ready, record
from variational import pruned, sets

from bonas import nets
from bonas.nets import mlp, pruning
from bonas.problems import bnn_table, datasets
from bonas.problems.bnn_table import Network


@dataclass(frozen=True)
class Config:
    wide: tuple[str, int] = ("protein", 300)  # set and width of figure 5.4
    checkpoints: tuple[int, ...] = (2000, 4000, 6000)
    batch: int = 256
    learning_rate: float = 0.005
    draws: int = 50
    seeds: int = 3  # of the wide network


SMOKE = Config(wide=("protein", 6), checkpoints=(10, 20), batch=16, draws=4, seeds=1)


def wide(config: Config, seed: int, synthetic: bool) -> np.ndarray:
    """The mean divergence of every unit (2, width) of one wide network."""
    name, width = config.wide
    rows = len(sets.data_of(name, synthetic)[0].x)
    vi, course = nets.VI(samples=1), nets.Course(config.checkpoints, min(config.batch, rows), config.draws)
    traits = nets.Traits(learning_rate=config.learning_rate)
    found, _ = sets.train(name, [width, width], seed, vi, course, traits, synthetic=synthetic)
    q = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), found.q)
    inputs, padded = q.mean["first"]["kernel"].shape
    shape = nets.Shape(inputs, 1, depth=2, width=padded, activations=("relu",))
    mask = mlp.masks(jax.random.key(0), shape, nets.architecture(shape, [width, width]))
    return np.asarray(pruning.unit_divergence(vi, q, mask, jnp.asarray(1.0, jnp.float32)))[:, :width]


def kept(config: Config, synthetic: bool, file: Path) -> list[np.ndarray]:
    """Those of each seed; what is not in the file is trained and added to it."""
    settings = {**vars(replace(config, seeds=0)), "synthetic": synthetic}
    known = {row["seed"]: row["divergence"] for row in record.lines(file, settings)}
    with progress.bar(disable=None) as bar:
        for seed in bar.track(range(config.seeds), description="wide networks"):
            if seed not in known:
                known[seed] = wide(config, seed, synthetic).tolist()
                record.add(file, {"seed": seed, "divergence": known[seed]}, settings)
    return [np.array(known[seed]) for seed in range(config.seeds)]


def stand_in(config: Config) -> dict[str, bnn_table.Record]:
    """Tiny networks in place of the table."""
    vi, course = nets.VI(samples=1), nets.Course(config.checkpoints, config.batch, config.draws)
    networks = [Network(depth, width) for depth in (1, 2) for width in (2, 5)]
    rows = [sets.train("yacht", each.widths(), 0, vi, course, nets.Traits(), synthetic=True)[1] for each in networks]
    metrics = {key: np.array([[row[key]] for row in rows], float) for key in bnn_table.METRICS}
    active = np.array([[[layers + [0] * (2 - len(layers)) for layers in row["active"]]] for row in rows])
    return {"yacht": bnn_table.Record(tuple(networks), np.asarray(config.checkpoints), metrics, active)}


def main() -> None:
    """Train the wide networks, read the table, draw and summarise."""
    args, config = flags.read(arguments(), Config(), SMOKE)
    synthetic = args.smoke and not os.environ.get(datasets.FOLDER_VARIABLE)
    ready.begin(args.out)
    divergences = kept(config, synthetic, args.out / "wide.jsonl")
    known = stand_in(config) if args.smoke else {name: bnn_table.record(name) for name in bnn_table.names()}
    pruned.histogram(divergences[0], config.wide, args.out / "figure_5_4.png")
    pruned.against_width(known, "active", args.out / "figure_5_5.png")
    pruned.against_width(known, "scores", args.out / "figure_5_6.png")
    found = {"wide": pruned.layers(divergences), "sets": {name: pruned.verdict(each) for name, each in known.items()}}
    about = {} if args.smoke else {"table": bnn_table.settings()["settings"]}
    record.write(args.out / "hutchinson_pruning.json", {**record.about(), "synthetic": synthetic, **about, **found})
    pruned.show(found)


def arguments():
    """The flags."""
    seeds = "of the wide network (default 3); the table has its own"
    return flags.parser(__doc__, "hutchinson_pruning", smoke="tiny networks on synthetic rows", seeds=seeds)


if __name__ == "__main__":
    main()
