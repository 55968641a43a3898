"""Train variational networks on UCI sets, split and scaled as in Hutchinson's code."""

from functools import cache

import jax
import numpy as np

from bonas import nets
from bonas.problems import datasets

VALIDATED = 1500  # rows


@cache
def data_of(
    name: str, synthetic: bool, validated: int | None = VALIDATED
) -> tuple[nets.Examples, float]:
    """Return training (85%) and validation rows scaled to [−1, 1], and the scale of the values.

    `validated` limits the validation rows, None uses all. The default is 1500, because fifty
    samples of seven thousand rows would take longer than training.
    """
    rows = synthetic_rows() if synthetic else datasets.load(name)
    part = datasets.split(rows, 1, fractions=(0.85, 0.15, 0.0), scaling="range")
    held = part.validation
    data = nets.examples(
        part.train.x, part.train.y, held.x[:validated], held.y[:validated]
    )
    return data, part.scaling.y_scale


def synthetic_rows() -> datasets.Examples:
    """Return synthetic rows that need no file."""
    x = np.random.default_rng(0).uniform(size=(80, 3)).astype(np.float32)
    return datasets.Examples(
        x, np.sin(5.0 * x[:, 0]) + x[:, 1], "regression", ("a", "b", "c")
    )


def train(
    name: str,
    widths: list[int],
    seed: int,
    vi: nets.VI,
    course: nets.TrainingPlan,
    traits: nets.VIHyperparameters,
    *,
    synthetic: bool,
    share: float = 1.0,
    validated: int | None = VALIDATED,
) -> tuple[nets.vi_population.Population, dict]:
    """Train one network; return it and its scores at checkpoints in the units of the data.

    `share` is the share of the training rows to use, the first ones after shuffling.
    """
    data, scale = data_of(name, synthetic, validated)
    if share < 1.0:
        used = np.arange(len(data.x)) < round(share * len(data.x))
        data = data._replace(weight=jax.device_put(used.astype(np.float32)))
    wide = nets.vi_population.padded_width(max(widths))
    shape = nets.Shape(
        data.x.shape[1], 1, depth=len(widths), width=wide, activations=("relu",)
    )
    # one seed gives networks of different size different keys too
    key = jax.random.fold_in(jax.random.key(seed), len(widths) * 10_000 + max(widths))
    chosen = nets.stack([nets.architecture(shape, widths)])
    found = nets.train_vi_many(key[None], shape, vi, course, chosen, traits, data)
    at = nets.unscale_checkpoint(
        jax.tree.map(lambda leaf: leaf[0], found.checkpoints), scale
    )
    values = {
        **at.valid._asdict(),
        "train_log_likelihood": at.train.log_likelihood,
        "bound": at.bound,
        "noise": at.noise,
        "seconds": found.seconds[0],
    }
    rows = {
        metric: [None if np.isnan(value) else float(f"{value:.6g}") for value in each]
        for metric, each in values.items()
    }
    active = [
        [-1 if np.isnan(units) else int(units) for units in layers]
        for layers in at.active
    ]
    return found, {**rows, "active": active}
