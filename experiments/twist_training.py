"""Does a small network learn two classes of the plane, and does a large one overfit them? Twist's figures 3 and 4.

Both networks have logistic units throughout, start from N(0, 1) and see one point an update (Algorithm 3): figure 3 with
hidden layers of 6, 8, 9 and 7 units (T-E2), figure 4 with ten of 23 to 95 (T-E3). The claims: the first classifies most
points rightly, with bands of uncertainty between the classes, and its cost is far from smooth, which is the doing of
stochastic gradients; of the second the training cost falls past 800 epochs while the validation cost rises.

Patterns, epochs and rate are Twist's. He states nothing of the points; those below are ours. The figures show one seed, the
numbers are of all of them.
"""

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from plane import shading
from plane.saved import kept
from rich.progress import Progress
from script import flags, ready, record

from bonas import nets
from bonas.problems import twist

GUESS = 0.25  # the cost of saying ½ of every point: half the squared length of (½, ½)


@dataclass(frozen=True)
class Config:
    small: tuple[int, ...] = (6, 8, 9, 7)  # stated
    large: tuple[int, ...] = (60, 82, 95, 70, 44, 23, 50, 45, 44, 72)  # stated
    epochs: int = 1000  # stated
    rate: float = 0.05  # stated
    points: int = 50  # to train on: few enough for the large network to learn every one of them by heart ...
    noise: float = 0.1  # ... and enough mixed ones for that to be a mistake: the best of all rules is wrong for 8% of points
    validation: int = 500  # so many that the validation cost is known to a few per cent
    every: int = 5  # epochs between two looks at the large network's cost: a look at 550 points costs a tenth of an epoch
    window: int = 50  # epochs over which costs are averaged before they are compared, since single ones jump
    margin: float = 0.1  # the validation cost rises by this share of its minimum, or it does not count as overfitting
    past: int = 800  # stated: the epoch after which costs part
    learned: float = 0.5  # a network whose training cost ends below this share of a guess's has learned
    drawn: int = 50  # validation points in figure 4, as many as there are training points
    seeds: int = 10


SMOKE = Config(large=(8, 9, 7, 6, 5), epochs=40, every=5, window=10, past=30, validation=60, seeds=2)


def prepare(config: Config, seed: int) -> tuple[jax.Array, nets.Examples]:
    data_key, train_key = jax.random.split(jax.random.key(seed))
    return train_key, twist.plane(data_key, train=config.points, validation=config.validation, noise=config.noise)


def runs(config: Config) -> dict[str, partial]:
    """Every kind of run; the last one is there to see whether it is stochastic gradients that make the cost jump."""
    settings = {"epochs": config.epochs, "rate": config.rate}
    return {
        "figure 3": partial(twist.train, pattern=config.small, every=1, **settings),
        "figure 4": partial(twist.train, pattern=config.large, every=config.every, **settings),
        "figure 3 with whole gradients": partial(twist.train, pattern=config.small, every=1, batch=config.points, **settings),
    }


def train_all(config: Config, folder: Path) -> dict[str, list[dict]]:
    """The curves of every run and seed, and how the network sees the plane in the end."""
    found, same = {}, replace(config, seeds=0)
    with Progress() as progress:
        for kind, train in runs(config).items():
            compiled, pattern = jax.jit(lambda key, data: train(key, data=data)), train.keywords["pattern"]
            shape = twist.shape(len(pattern), max(pattern))

            def make():
                done = compiled(*prepare(config, seed))
                plane = shading.outputs(shape, nets.architecture(shape, pattern), done.params)
                return {"epochs": done.epochs, "train": done.train, "validation": done.validation, "plane": plane}

            found[kind] = []
            for seed in progress.track(range(config.seeds), description=kind):
                found[kind].append(kept(folder / f"{kind.replace(' ', '_')}_{seed}.npz", same, make))
    return found


def windows(config: Config, run: dict) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The last epoch of each window, and the mean cost there on training and on validation points."""
    each = config.window // int(run["epochs"][0])
    ends = run["epochs"].reshape(-1, each)[:, -1]
    return ends, *(run[part][:, 0].reshape(-1, each).mean(axis=1) for part in ("train", "validation"))


def judge(config: Config, run: dict) -> dict:
    """What one run says about the claims."""
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
        "overfits_past_the_stated_epoch": bool(learned and validation[-1] > validation[past] and train[-1] < train[past]),
        "share_of_looks_at_which_the_training_cost_rose": float(np.mean(np.diff(cost) > 0.0)),
        "training_accuracy": float(1.0 - run["train"][-1, 1]),
        "validation_accuracy": float(1.0 - run["validation"][-1, 1]),
        "share_of_the_plane_that_is_uncertain": float(np.mean(np.abs(run["plane"]) < shading.STRONG)),
    }


def summarise(judged: list[dict]) -> dict:
    """Medians over seeds, shares of seeds, and shares of those that learned."""
    names = [name for name in judged[0] if name not in ("learned", "overfits", "overfits_past_the_stated_epoch")]
    able = [row for row in judged if row["learned"]]

    def share(name, rows):
        return float(np.mean([row[name] for row in rows])) if rows else None

    return {
        "share_of_seeds_that_learn": share("learned", judged),
        "share_of_seeds_that_overfit": share("overfits", judged),
        "share_that_overfit_of_those_that_learn": share("overfits", able),
        "share_of_seeds_whose_costs_part_past_the_stated_epoch": share("overfits_past_the_stated_epoch", judged),
        "median_share_of_looks_at_which_the_training_cost_rose": float(
            np.median([row["share_of_looks_at_which_the_training_cost_rose"] for row in judged])
        ),
        "medians_of_those_that_learn": {name: float(np.median([row[name] for row in able])) for name in names}
        if able
        else None,
        "seeds": judged,
    }


def draw_plane(axis: Axes, config: Config, run: dict, seed: int, *, validation: bool) -> None:
    data = prepare(config, seed)[1]
    points = {"training points": ("x", data.x, data.y)}
    if validation:
        points[f"{config.drawn} of the test points"] = ("o", data.valid_x[: config.drawn], data.valid_y[: config.drawn])
    shading.draw(axis, run["plane"], points)


def draw_small(config: Config, found: dict, path: Path) -> None:
    """Figure 3 of the first seed."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.6, 4.3), layout="constrained")
    run, smooth = found["figure 3"][0], found["figure 3 with whole gradients"][0]
    draw_plane(left, config, run, 0, validation=False)
    right.plot(smooth["epochs"], smooth["train"][:, 0], color="0.6", lw=1.4, label="whole gradients: one update an epoch")
    right.plot(run["epochs"], run["train"][:, 0], color="black", lw=0.8, label="one point an update (Algorithm 3)")
    right.set(xlabel="epoch", ylabel="cost on the training points", ylim=(0, None), xlim=(0, config.epochs))
    right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=1, frameon=False)
    figure.suptitle(f"Hidden layers of {', '.join(map(str, config.small))} units, η = {config.rate:g}, first seed")
    save(figure, ("classification", "cost after every epoch"), path)


def draw_large(config: Config, found: dict, judged: list[dict], path: Path) -> None:
    """Figure 4 of the first seed that overfits, if any does, and the validation costs of all."""
    figure, axes = plt.subplots(1, 3, figsize=(15.4, 4.4), layout="constrained")
    shown = next((seed for seed, row in enumerate(judged) if row["overfits"]), 0)
    run = found["figure 4"][shown]
    draw_plane(axes[0], config, run, shown, validation=True)
    axes[1].plot(run["epochs"], run["train"][:, 0], color="black", lw=1.0, label="training cost")
    axes[1].plot(run["epochs"], run["validation"][:, 0], color="#D55E00", lw=1.0, label="validation cost")
    axes[1].axvline(config.past, color="0.6", lw=0.8, ls=":")
    axes[1].set(xlabel="epoch", ylabel="cost", ylim=(0, None), xlim=(0, config.epochs))
    axes[1].legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)
    for seed, (each, row) in enumerate(zip(found["figure 4"], judged, strict=True)):
        ends, _, validation = windows(config, each)
        colour = "#D55E00" if row["overfits"] else "0.6" if row["learned"] else "#56B4E9"
        axes[2].plot(ends, validation, color=colour, lw=2.0 if seed == shown else 1.0, alpha=0.9)
    for colour, label in (("#D55E00", "overfits"), ("0.6", "learns, does not overfit"), ("#56B4E9", "does not learn")):
        axes[2].plot([], [], color=colour, label=label)
    axes[2].set(
        xlabel="epoch", ylabel=f"validation cost, mean of {config.window} epochs", ylim=(0, None), xlim=(0, config.epochs)
    )
    axes[2].legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, frameon=False, columnspacing=1.0)
    which = f"seed {shown}, the first that overfits" if judged[shown]["overfits"] else "first seed"
    figure.suptitle(
        f"{len(config.large)} hidden layers of {min(config.large)} to {max(config.large)} units, η = {config.rate:g}"
    )
    save(figure, (f"classification, {which}", "cost in that run", f"all {config.seeds} seeds"), path)


def save(figure: Figure, titles: tuple[str, ...], path: Path) -> None:
    panels = [axis for axis in figure.axes if axis.get_label() != "<colorbar>"]
    for letter, title, axis in zip("abc", titles, panels, strict=False):
        axis.set_title(f"({letter}) {title}", fontsize="medium")
        axis.spines[["top", "right"]].set_visible(letter == "a")
    figure.savefig(path, dpi=140)
    plt.close(figure)


def report(results: dict) -> None:
    for kind, row in results.items():
        seeds = len(row["seeds"])
        print(
            f"{kind}: of {seeds} seeds {row['share_of_seeds_that_learn']:.0%} learn; the training cost rose at "
            f"{row['median_share_of_looks_at_which_the_training_cost_rose']:.1%} of the looks, in the median"
        )
        middle = row["medians_of_those_that_learn"]
        if middle is None:
            continue
        print(
            f"  medians of those: training accuracy {middle['training_accuracy']:.1%}, "
            f"validation {middle['validation_accuracy']:.1%}; "
            f"uncertain {middle['share_of_the_plane_that_is_uncertain']:.1%} of the plane"
        )
        print(
            f"  validation cost lowest at epoch {middle['epoch_of_the_lowest']:.0f}, "
            f"then {middle['rise_of_validation_cost']:+.1%}; "
            f"{row['share_of_seeds_that_overfit']:.0%} of seeds overfit, in "
            f"{row['share_of_seeds_whose_costs_part_past_the_stated_epoch']:.0%} costs part past the stated epoch"
        )


def main() -> None:
    parser = flags.parser(
        __doc__,
        "twist_training",
        smoke="small networks, few epochs, to see that everything runs",
        seeds=f"how many seeds (default {Config.seeds})",
    )
    given, config = flags.read(parser, Config(), SMOKE)

    ready.begin(given.out)
    found = train_all(config, given.out / "runs")
    results = {kind: summarise([judge(config, run) for run in rows]) for kind, rows in found.items()}
    draw_small(config, found, given.out / "figure_3.png")
    draw_large(config, found, results["figure 4"]["seeds"], given.out / "figure_4.png")
    record.write(given.out / "twist_training.json", {**record.about(), "config": asdict(config), "results": results})
    report(results)
    print(f"figures and numbers are in {given.out}")


if __name__ == "__main__":
    main()
