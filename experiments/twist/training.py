"""Does a small network learn two classes of the plane, and does a large one overfit?

Twist's figures 3 and 4.

Both networks have logistic units, start from N(0, 1) and are trained on one point per update
(Algorithm 3). Figure 3 has hidden layers of 6, 8, 9 and 7 units, figure 4 ten layers of 23 to 95
units. Twist claims that the small network classifies most points correctly, with bands of
uncertainty between the classes, and that its cost is far from smooth because of the stochastic
gradients; for the large network the training cost falls past 800 epochs while the validation cost
rises.

Layers, epochs and learning rate are Twist's. He does not describe the data; those below are ours.
The figures show one seed, the numbers summarize all seeds.
"""

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.progress import Progress

from bonas import nets
from experiments import common
from experiments.common import load_or_compute
from experiments.figures import SKY, VERMILION, save
from experiments.twist import plane as shading
from experiments.twist import system as twist

# the cost of predicting ½ for every point: half the squared length of (½, ½)
GUESS = 0.25


@dataclass(frozen=True)
class Config:
    small: tuple[int, ...] = (6, 8, 9, 7)  # stated
    large: tuple[int, ...] = (60, 82, 95, 70, 44, 23, 50, 45, 44, 72)  # stated
    epochs: int = 1000  # stated
    rate: float = 0.05  # stated
    # training points: few enough for the large network to memorize ...
    points: int = 50
    # ... and mixed enough that memorizing hurts: the best rule is wrong for 8% of points
    noise: float = 0.1
    # enough for a standard error of a few per cent in the validation cost
    validation: int = 500
    # Epochs between measurements of the large network's cost: measuring 550 points costs a tenth of
    # an epoch
    every: int = 5
    # Epochs that costs are averaged over before comparison, because single ones are noisy
    window: int = 50
    # Overfitting means that the validation cost rises by at least this share of its minimum
    margin: float = 0.1
    past: int = 800  # stated: the epoch after which the two costs diverge
    # A network has learned if its final training cost is below this share of GUESS
    learned: float = 0.5
    drawn: int = 50  # validation points in figure 4, the same number as training points
    seeds: int = 10


SMOKE = Config(
    large=(8, 9, 7, 6, 5),
    epochs=40,
    every=5,
    window=10,
    past=30,
    validation=60,
    seeds=2,
)


def prepare(config: Config, seed: int) -> tuple[jax.Array, nets.Examples]:
    data_key, train_key = jax.random.split(jax.random.key(seed))
    return train_key, twist.plane(
        data_key, train=config.points, validation=config.validation, noise=config.noise
    )


def runs(config: Config) -> dict[str, partial]:
    """Return every kind of run; full gradients show whether stochastic ones make the cost jump."""
    settings = {"epochs": config.epochs, "rate": config.rate}
    return {
        "figure 3": partial(twist.train, pattern=config.small, every=1, **settings),
        "figure 4": partial(
            twist.train, pattern=config.large, every=config.every, **settings
        ),
        "figure 3 with whole gradients": partial(
            twist.train, pattern=config.small, every=1, batch=config.points, **settings
        ),
    }


def train_all(config: Config, folder: Path) -> dict[str, list[dict]]:
    """Return the training curves and the final classification of every run and seed."""
    found, same = {}, replace(config, seeds=0)
    with Progress() as progress:
        for kind, train in runs(config).items():
            compiled, pattern = (
                jax.jit(lambda key, data: train(key, data=data)),
                train.keywords["pattern"],
            )
            shape = twist.shape(len(pattern), max(pattern))

            def make():
                done = compiled(*prepare(config, seed))
                plane = shading.outputs(
                    shape, nets.architecture(shape, pattern), done.params
                )
                return {
                    "epochs": done.epochs,
                    "train": done.train,
                    "validation": done.validation,
                    "plane": plane,
                }

            found[kind] = []
            for seed in progress.track(range(config.seeds), description=kind):
                found[kind].append(
                    load_or_compute(
                        folder / f"{kind.replace(' ', '_')}_{seed}.npz", same, make
                    )
                )
    return found


def windows(config: Config, run: dict) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the last epoch of each window and the mean costs in it."""
    each = config.window // int(run["epochs"][0])
    ends = run["epochs"].reshape(-1, each)[:, -1]
    return ends, *(
        run[part][:, 0].reshape(-1, each).mean(axis=1)
        for part in ("train", "validation")
    )


def judge(config: Config, run: dict) -> dict:
    """Test the claims on one run."""
    ends, train, validation = windows(config, run)
    low, past = int(np.argmin(validation)), int(np.searchsorted(ends, config.past))
    learned = bool(train[-1] < config.learned * GUESS)
    rise = validation[-1] / validation[low] - 1.0
    cost = run["train"][:, 0]
    return {
        "learned": learned,
        "lowest_validation_cost": float(validation[low]),
        "epoch_of_the_lowest": int(ends[low]),
        "final_validation_cost": float(validation[-1]),
        "rise_of_validation_cost": float(rise),
        "training_cost_at_the_lowest": float(train[low]),
        "final_training_cost": float(train[-1]),
        "overfits": bool(learned and rise > config.margin and train[-1] < train[low]),
        "overfits_past_the_stated_epoch": bool(
            learned and validation[-1] > validation[past] and train[-1] < train[past]
        ),
        "share_of_looks_at_which_the_training_cost_rose": float(
            np.mean(np.diff(cost) > 0.0)
        ),
        "training_accuracy": float(1.0 - run["train"][-1, 1]),
        "validation_accuracy": float(1.0 - run["validation"][-1, 1]),
        "share_of_the_plane_that_is_uncertain": float(
            np.mean(np.abs(run["plane"]) < shading.STRONG)
        ),
    }


def summarize(judged: list[dict]) -> dict:
    """Return medians over seeds and shares of seeds."""
    names = [
        name
        for name in judged[0]
        if name not in ("learned", "overfits", "overfits_past_the_stated_epoch")
    ]
    able = [row for row in judged if row["learned"]]

    def share(name, rows):
        return float(np.mean([row[name] for row in rows])) if rows else None

    return {
        "share_of_seeds_that_learn": share("learned", judged),
        "share_of_seeds_that_overfit": share("overfits", judged),
        "share_that_overfit_of_those_that_learn": share("overfits", able),
        "share_of_seeds_whose_costs_part_past_the_stated_epoch": share(
            "overfits_past_the_stated_epoch", judged
        ),
        "median_share_of_looks_at_which_the_training_cost_rose": float(
            np.median(
                [
                    row["share_of_looks_at_which_the_training_cost_rose"]
                    for row in judged
                ]
            )
        ),
        "medians_of_those_that_learn": {
            name: float(np.median([row[name] for row in able])) for name in names
        }
        if able
        else None,
        "seeds": judged,
    }


def draw_plane(
    axis: Axes, config: Config, run: dict, seed: int, *, validation: bool
) -> None:
    data = prepare(config, seed)[1]
    points = {"training points": ("x", data.x, data.y)}
    if validation:
        points[f"{config.drawn} of the test points"] = (
            "o",
            data.valid_x[: config.drawn],
            data.valid_y[: config.drawn],
        )
    shading.draw(axis, run["plane"], points)


def draw_small(config: Config, found: dict, path: Path) -> None:
    """Draw figure 3 for the first seed."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10.6, 4.3), layout="constrained"
    )
    run, smooth = found["figure 3"][0], found["figure 3 with whole gradients"][0]
    draw_plane(left, config, run, 0, validation=False)
    right.plot(
        smooth["epochs"],
        smooth["train"][:, 0],
        color="0.6",
        lw=1.4,
        label="whole gradients: one update an epoch",
    )
    right.plot(
        run["epochs"],
        run["train"][:, 0],
        color="black",
        lw=0.8,
        label="one point an update (Algorithm 3)",
    )
    right.set(
        xlabel="epoch",
        ylabel="cost on the training points",
        ylim=(0, None),
        xlim=(0, config.epochs),
    )
    right.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=1, frameon=False
    )
    figure.suptitle(
        f"Hidden layers of {', '.join(map(str, config.small))} units, "
        f"η = {config.rate:g}, first seed"
    )
    save_panels(figure, ("classification", "cost after every epoch"), path)


def draw_large(config: Config, found: dict, judged: list[dict], path: Path) -> None:
    """Draw figure 4 for the first seed that overfits, and the validation costs of all."""
    figure, axes = plt.subplots(1, 3, figsize=(15.4, 4.4), layout="constrained")
    shown = next((seed for seed, row in enumerate(judged) if row["overfits"]), 0)
    run = found["figure 4"][shown]
    draw_plane(axes[0], config, run, shown, validation=True)
    axes[1].plot(
        run["epochs"], run["train"][:, 0], color="black", lw=1.0, label="training cost"
    )
    axes[1].plot(
        run["epochs"],
        run["validation"][:, 0],
        color=VERMILION,
        lw=1.0,
        label="validation cost",
    )
    axes[1].axvline(config.past, color="0.6", lw=0.8, ls=":")
    axes[1].set(xlabel="epoch", ylabel="cost", ylim=(0, None), xlim=(0, config.epochs))
    axes[1].legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False
    )
    for seed, (each, row) in enumerate(zip(found["figure 4"], judged, strict=True)):
        ends, _, validation = windows(config, each)
        color = VERMILION if row["overfits"] else "0.6" if row["learned"] else SKY
        axes[2].plot(
            ends, validation, color=color, lw=2.0 if seed == shown else 1.0, alpha=0.9
        )
    for color, label in (
        (VERMILION, "overfits"),
        ("0.6", "learns, does not overfit"),
        (SKY, "does not learn"),
    ):
        axes[2].plot([], [], color=color, label=label)
    axes[2].set(
        xlabel="epoch",
        ylabel=f"validation cost, mean of {config.window} epochs",
        ylim=(0, None),
        xlim=(0, config.epochs),
    )
    axes[2].legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.14),
        ncols=3,
        frameon=False,
        columnspacing=1.0,
    )
    which = (
        f"seed {shown}, the first that overfits"
        if judged[shown]["overfits"]
        else "first seed"
    )
    figure.suptitle(
        f"{len(config.large)} hidden layers of {min(config.large)} to {max(config.large)} units, "
        f"η = {config.rate:g}"
    )
    save_panels(
        figure,
        (f"classification, {which}", "cost in that run", f"all {config.seeds} seeds"),
        path,
    )


def save_panels(figure: Figure, titles: tuple[str, ...], path: Path) -> None:
    """Number the panels, and write the figure to a file."""
    panels = [axis for axis in figure.axes if axis.get_label() != "<colorbar>"]
    for letter, title, axis in zip("abc", titles, panels, strict=False):
        axis.set_title(f"({letter}) {title}", fontsize="medium")
        axis.spines[["top", "right"]].set_visible(letter == "a")
    save(figure, path, dpi=140)


def report(results: dict) -> None:
    for kind, row in results.items():
        seeds = len(row["seeds"])
        rose = row["median_share_of_looks_at_which_the_training_cost_rose"]
        print(
            f"{kind}: {row['share_of_seeds_that_learn']:.0%} of {seeds} seeds learn; the training"
            f" cost rose at {rose:.1%} of the measurements (median over seeds)"
        )
        middle = row["medians_of_those_that_learn"]
        if middle is None:
            continue
        print(
            f"  medians over these: training accuracy {middle['training_accuracy']:.1%}, "
            f"validation {middle['validation_accuracy']:.1%}; "
            f"uncertain {middle['share_of_the_plane_that_is_uncertain']:.1%} of the plane"
        )
        past = row["share_of_seeds_whose_costs_part_past_the_stated_epoch"]
        print(
            f"  validation cost lowest at epoch {middle['epoch_of_the_lowest']:.0f}, "
            f"then {middle['rise_of_validation_cost']:+.1%}; "
            f"{row['share_of_seeds_that_overfit']:.0%} of seeds overfit, {past:.0%} after the"
            " stated epoch"
        )


def main() -> None:
    parser = common.parser(
        __doc__,
        "twist_training",
        smoke="small networks, few epochs, as a quick test",
        seeds=f"number of seeds (default {Config.seeds})",
    )
    given, config = common.parse(parser, Config(), SMOKE)

    common.setup(given.out)
    found = train_all(config, given.out / "runs")
    results = {
        kind: summarize([judge(config, run) for run in rows])
        for kind, rows in found.items()
    }
    draw_small(config, found, given.out / "figure_3.png")
    draw_large(config, found, results["figure 4"]["seeds"], given.out / "figure_4.png")
    common.write_json(
        given.out / "twist_training.json",
        {**common.provenance(), "config": asdict(config), "results": results},
    )
    report(results)
    print(f"figures and numbers are in {given.out}")


if __name__ == "__main__":
    main()
