"""Draw Agrawal's figures 1 and 6 to 9."""

from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from bonas.nets import BNN, Precisions
from bonas.nets.bnn import apply, weights_at
from bonas.nets.bnn_hmc import init_chains
from experiments.agrawal.problem import Problem, grid, truth
from experiments.figures import BLUE, COLORS, save

FUNCTIONS = 3  # draws per panel of figure 1
FITS = 4  # draws in figure 8, as in its caption (the text says three)


def prior_draws(path: Path, *, smoke: bool) -> None:
    """Draw figure 1: step networks from the prior, with normal and Cauchy output weights."""
    x = jnp.linspace(-1.0, 1.0, 2001)[:, None]
    widths, outputs = (
        (15, 100) if smoke else (150, 10000),
        {"Gaussian": 2.0, "Cauchy": 1.0},
    )
    figure, axes = plt.subplots(
        2, 2, figsize=(9.0, 6.4), sharex=True, layout="constrained"
    )
    for row, width in zip(axes, widths, strict=True):
        for axis, (name, index) in zip(row, outputs.items(), strict=True):
            bnn = BNN(1, (width,), activation="step", index=(2.0, index))
            unit = Precisions(jnp.ones(bnn.groups), jnp.ones(()))
            chains = init_chains(jax.random.key(width), bnn, FUNCTIONS, precisions=unit)
            for i in range(FUNCTIONS):
                position = jax.tree.map(lambda leaf, i=i: leaf[i], chains.position)
                axis.plot(
                    x[:, 0],
                    apply(bnn, weights_at(bnn, position, unit), x)[:, 0],
                    color=COLORS[i],
                    lw=1.1,
                )
            axis.set_title(f"{width:,} units, {name} output weights", fontsize=10)
            axis.grid(color="0.92", lw=0.6)
    for axis in axes[:, 0]:
        axis.set_ylabel("f(x)")
    for axis in axes[1]:
        axis.set(xlabel="x", xticks=[-1.0, -0.5, 0.0, 0.5, 1.0])
    figure.suptitle(
        "Figure 1: functions from the prior, step units, Gaussian input weights and biases"
    )
    save(figure, path)


def traces(path: Path, chains: dict[str, dict], numbers: tuple[int, ...]) -> None:
    """Draw figure 6: traces of three parameters, one color per chain, one column per sampler."""
    figure, axes = plt.subplots(
        len(numbers),
        len(chains),
        figsize=(10.0, 6.4),
        sharex=True,
        layout="constrained",
    )
    for column, (way, found) in zip(axes.T, chains.items(), strict=True):
        column[0].set_title(
            {"bonas": "per-layer precisions, output integrated"}.get(
                way, "as published"
            ),
            fontsize=10,
        )
        for i, axis in enumerate(column):
            for chain, color in zip(found["shown"], COLORS, strict=False):
                axis.plot(chain[:, i], color=color, lw=0.5, alpha=0.8)
            axis.set_ylabel(f"parameter {numbers[i]}")
            axis.grid(color="0.92", lw=0.6)
        column[-1].set_xlabel("sample (one color per chain)")
    figure.suptitle("Figure 6: traces of three parameters")
    save(figure, path)


def histogram(path: Path, found: dict, number: int) -> None:
    """Draw figure 7: the histogram of one parameter, for all chains and for each."""
    draws = found["shown"][..., -1]
    figure, axis = plt.subplots(figsize=(7.0, 4.4), layout="constrained")
    bins = np.histogram_bin_edges(draws, bins=60)
    axis.hist(draws.ravel(), bins=bins, density=True, color="0.85", label="all chains")
    for i, (chain, color) in enumerate(zip(draws, COLORS, strict=False)):
        axis.hist(
            chain,
            bins=bins,
            density=True,
            histtype="step",
            color=color,
            lw=1.3,
            label=f"chain {i + 1}",
        )
    axis.set(
        xlabel=f"value of parameter {number}",
        ylabel="density",
        title=f"Figure 7: parameter {number}",
    )
    figure.legend(loc="outside right center", frameon=False)
    save(figure, path)


def background(axis, line, data) -> None:
    axis.plot(line, truth(line), color="black", lw=1.2, ls="--", label="true function")
    axis.plot(data.x[:, 0], data.y[:, 0], "o", color="black", ms=4, label="data")
    axis.set_xlim(-1.0, 1.0)
    axis.grid(color="0.92", lw=0.6)
    axis.set_axisbelow(True)


def fits(path: Path, problem: Problem, found: dict, data) -> None:
    """Draw figure 8: single networks from the posterior, from different chains if possible."""
    line = np.asarray(grid(problem))[:, 0]
    figure, axes = plt.subplots(
        2,
        FITS // 2,
        figsize=(10.0, 6.4),
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    for i, axis in enumerate(axes.flat):
        chain = i % len(found["values"])
        background(axis, line, data)
        axis.plot(
            line, found["values"][chain, -1 - i], color=BLUE, lw=1.6, label="one draw"
        )
        axis.set_title(f"chain {chain + 1}", fontsize=10)
        axis.set_ylabel("f(x)" if i % 2 == 0 else "")
        axis.set_xlabel("x" if i >= FITS // 2 else "")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
    figure.suptitle("Figure 8: fits of single draws")
    save(figure, path)


def band(path: Path, problem: Problem, found: dict, data) -> None:
    """Draw figure 9: mean and two standard deviations of all networks (Agrawal, eqs. 5.8, 5.9)."""
    line, values = np.asarray(grid(problem))[:, 0], found["values"]
    mean, std = values.mean(axis=(0, 1)), values.std(axis=(0, 1))
    figure, axis = plt.subplots(figsize=(8.4, 5.0), layout="constrained")
    axis.fill_between(
        line,
        mean - 2 * std,
        mean + 2 * std,
        color=BLUE,
        alpha=0.2,
        lw=0,
        label="± 2 standard deviations",
    )
    axis.plot(line, mean, color=BLUE, lw=2, label="mean")
    background(axis, line, data)
    axis.set(
        xlabel="x",
        ylabel="f(x)",
        title=f"Figure 9: {values.shape[0] * values.shape[1]:,} networks averaged",
    )
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    save(figure, path)
