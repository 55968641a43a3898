"""Draw learning curves and their predicted continuations."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

from experiments.hutchinson.gpar_models import Continued

LABELS = {
    "metaqnn_cifar10": ("convolutional networks, CIFAR-10", "validation error"),
    "metaqnn_svhn": ("convolutional networks, SVHN", "validation error"),
    "resnet_cifar10": ("residual networks, CIFAR-10", "validation error"),
    "lstm_ptb": ("LSTMs, Penn Treebank", "cross-entropy of a word, nats"),
    "gpar_prior": ("a draw from the prior of the model", "value"),
}


def draw(found: dict[str, Continued], shown: int, file: Path) -> None:
    """Draw one panel per set: real curves, their observed part and the predicted rest."""
    rows, columns = -(-len(found) // 2), min(len(found), 2)
    fig, axes = plt.subplots(
        rows,
        columns,
        figsize=(5.5 * columns, 3.8 * rows + 0.4),
        squeeze=False,
        layout="constrained",
    )
    for spare in axes.flat[len(found) :]:
        spare.set_visible(False)
    for axis, (name, one) in zip(axes.flat, found.items(), strict=False):
        seen = one.seen
        title, label = LABELS.get(
            name, (f"Bayesian networks, {name}", "negative log likelihood")
        )
        for i, color in zip(
            range(min(shown, len(one.curves))),
            plt.get_cmap("tab10").colors,
            strict=False,
        ):
            rest = slice(seen, None)
            low, high = (
                one.mean[i, rest] + sign * 2.0 * one.std[i, rest]
                for sign in (-1.0, 1.0)
            )
            axis.fill_between(
                one.steps[rest], low, high, color=color, alpha=0.15, linewidth=0.0
            )
            for end in (low, high):
                axis.plot(one.steps[rest], end, color=color, linewidth=0.6, alpha=0.6)
            axis.plot(
                one.steps[rest],
                one.mean[i, rest],
                color=color,
                linestyle="--",
                linewidth=1.5,
            )
            axis.plot(
                one.steps,
                one.curves[i],
                color=color,
                linewidth=1.2,
                marker=".",
                markersize=4,
            )
            axis.plot(
                one.steps[:seen],
                one.curves[i, :seen],
                color=color,
                linestyle="",
                marker="o",
                markersize=6,
            )
        axis.axvline(
            np.mean(one.steps[seen - 1 : seen + 1]),
            color="0.6",
            linewidth=0.8,
            linestyle=":",
        )
        axis.set(
            xlabel="step" if name == "gpar_prior" else "epoch",
            ylabel=label,
        )
        rest = f"the rest of {len(one.curves)} such curves lies within the bands"
        share = f"{one.covered:.0%} of {rest}"
        axis.set_title(f"{title}\n", fontsize=11)
        axis.text(
            0.5,
            1.02,
            share,
            transform=axis.transAxes,
            ha="center",
            fontsize=9,
            color="0.35",
        )
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.spines[["top", "right"]].set_visible(False)
    handles = [
        plt.Line2D(
            [],
            [],
            color="0.2",
            marker="o",
            linestyle="",
            label="the checkpoints that the model saw",
        ),
        plt.Line2D(
            [], [], color="0.2", marker=".", linewidth=1.2, label="the real curve"
        ),
        plt.Line2D([], [], color="0.2", linestyle="--", label="prediction"),
        plt.Rectangle(
            (0, 0), 1, 1, color="0.2", alpha=0.15, label="± 2 standard deviations"
        ),
    ]
    fig.legend(
        handles=handles, loc="outside lower center", ncols=2 * columns, frameon=False
    )
    fig.savefig(file, dpi=150)
    plt.close(fig)
