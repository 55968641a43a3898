# %% [markdown]
# # Learning curves: train a little, predict the rest
#
# After this notebook you can predict the end of a learning curve from its start, with
# uncertainty, and run a search that spends its budget on promising networks.

# %%
from functools import partial

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import Normalize

import bonas
from bonas import infer, nets, plots
from bonas import search as searches
from bonas.curves import PartialCurves, full_training, gpar
from bonas.problems import tables

bonas.configure()

# %% [markdown]
# ## Real curves
#
# We train 120 networks with one hidden layer and different widths and learning rates on noisy
# values of a function of five inputs, and record the validation error at six checkpoints. All
# networks fit into one shape, so this is one compiled program.


# %%
def examples(key, n):
    x_key, noise_key = jax.random.split(key)
    x = jax.random.uniform(x_key, (n, 5), minval=-1.0)
    y = jnp.sin(4.0 * x[:, 0] * x[:, 1]) + 1.5 * x[:, 2] ** 2 + x[:, 3]
    noise = 0.1 * jax.random.normal(noise_key, (n,))
    return np.asarray(x), np.asarray(y - y.mean() + noise)


(x, y), (valid_x, valid_y) = (examples(jax.random.key(seed), 256) for seed in range(2))
data = nets.examples(x, y, valid_x, valid_y)
space = bonas.Space(
    width=bonas.Int(2, 32, log=True),
    rate=bonas.Float(3e-4, 3e-2, log=True),
)
networks = space.sample(jax.random.key(2), 120)
epochs = (2, 5, 10, 20, 40, 80)
shape = nets.Shape(inputs=5, outputs=1, depth=1, width=32, activations=("relu",))
settings = nets.Settings(max_epochs=epochs[-1], checkpoints=epochs)


@jax.jit
def train_all(networks):
    def one(key, row):
        values = space.values(row)
        architecture = nets.architecture(shape, values["width"][None], "relu")
        hyper = nets.Hyperparameters(values["rate"].astype(jnp.float32))
        return nets.train(key, shape, settings, architecture, hyper, data).metrics[:, 0]

    # Each network has its own initial weights.
    keys = jax.random.split(jax.random.key(3), len(networks))
    return jax.lax.map(lambda given: one(*given), (keys, networks))


curves = train_all(networks).astype(float)
curves = jnp.log10(curves)  # compare errors on a log scale

# %%
errors = [0.1, 0.2, 0.5, 1, 2]  # marks of the axis
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
colors = plt.get_cmap("viridis")(np.asarray(networks[:, 1]))
for curve, color in zip(curves, colors, strict=True):
    ax.plot(epochs, 10**curve, color=color, linewidth=0.7)
ax.set(xscale="log", yscale="log", xlabel="epochs")
ax.set_ylabel("validation error (mean square)")
ax.set_xticks(epochs, labels=map(str, epochs))
ax.set_yticks(errors, labels=map(str, errors))
ax.minorticks_off()
scale = plt.cm.ScalarMappable(Normalize(*np.log10([3e-4, 3e-2])), "viridis")
figure.colorbar(scale, ax=ax, label="log10 of the rate")
plt.show()

# %% [markdown]
# Curves cross: the best network after two epochs is not always the best at the end.
#
# ## A model of curves
#
# GPAR, an autoregressive Gaussian process, models each checkpoint given the network **and its
# earlier checkpoints**. We fit it to twenty complete curves. For the other hundred it sees the
# first three checkpoints and predicts the rest.

# %%
model, known = gpar(), 3
complete = bonas.dataset(networks[:20], curves[:20])


@jax.jit
def fit(key, complete):
    target = model.hyperposterior(complete)
    found, _ = infer.maximize(key, target.maximizing, target.start, steps=100)
    params = jax.tree.map(lambda leaf: leaf[0], target.constrain(found))
    return model.condition(params, complete)


fitted = fit(jax.random.key(4), complete)
rest, truth = networks[20:], curves[20:]
seen = jnp.broadcast_to(jnp.arange(len(epochs)) < known, truth.shape)
from_start = model.predict(fitted, rest, PartialCurves(truth, seen))
from_nothing = model.predict(fitted, rest)

# %%
figure, panels = plt.subplots(
    1, 4, figsize=(13, 3.4), sharex=True, sharey=True, layout="constrained"
)
later = np.asarray(epochs[known - 1 :])
from_best_to_worst = np.argsort(np.asarray(truth[:, -1]))[[0, 33, 66, 99]]
for ax, i in zip(panels, from_best_to_worst, strict=True):
    mean, std = (np.asarray(part[i, known:]) for part in from_start)
    middle, width = np.append(truth[i, known - 1], mean), np.append(0.0, std)
    low, high = middle - 2 * width, middle + 2 * width
    ax.fill_between(later, 10**low, 10**high, alpha=0.2, linewidth=0)
    ax.plot(later, 10**middle, label="predicted ± 2 std")
    observed = 10 ** np.asarray(truth[i])
    ax.plot(epochs, observed, "--", color="black", linewidth=1, label="observed")
    ax.plot(epochs[:known], observed[:known], "o", color="black", label="known")
    config = space.decode(rest[i])
    ax.set(xscale="log", yscale="log", xlabel="epochs")
    ax.set_title(f"{config['width']} units, rate {config['rate']:.4f}")
    ax.set_xticks(epochs, labels=map(str, epochs))
    ax.set_yticks(errors, labels=map(str, errors))
    ax.minorticks_off()
panels[0].set_ylabel("validation error")
panels[0].legend(frameon=False)
plt.show()

# %% [markdown]
# How accurate are the predictions of the last checkpoint, over all hundred networks? Compare
# three predictors: the last observed value; GPAR with only width and rate; and GPAR with the
# first checkpoints.

# %%
end, end_std = truth[:, -1], from_start.std[:, -1]
guesses = {
    "last observed value": truth[:, known - 1],
    "GPAR, width and rate": from_nothing.mean[:, -1],
    "GPAR, with the start": from_start.mean[:, -1],
}
for name, guess in guesses.items():
    off = float(jnp.sqrt(jnp.mean((guess - end) ** 2)))
    print(f"{name:26} error {off:.3f} (log10)")
inside = jnp.mean(jnp.abs(guesses["GPAR, with the start"] - end) <= 2 * end_std)
print(f"within two standard deviations: {inside:.0%}")

# %% [markdown]
# ## A search that stops early
#
# `bonas.curve_search` chooses which network to train to its next checkpoint. We replay the curves
# above as a table, so training is free, and give every search the epochs that ten complete
# networks need. Arrays have a fixed size, so the number of networks is limited in advance: forty.
# Two baselines train every network to the end: Bayesian optimization and random search.

# %%
table = tables.table(bonas.TableSpace(space, np.asarray(networks)), epochs, curves)
objective, keys = tables.objective(table), jax.random.split(jax.random.key(5), 12)
budget = 10 * epochs[-1]
methods = {
    "curves": bonas.curve_search(table.space, epochs, initial=3),
    "whole, bayes": full_training(bonas.bayes(table.space, initial=3), epochs),
    "whole, random": full_training(searches.random(table.space), epochs),
}
run = partial(bonas.run_curves_many, networks=40)
runs = {
    name: run(method, objective, epochs, keys, budget) for name, method in methods.items()
}

# %%
ax = plots.efficiency(
    {name: run.best for name, run in runs.items()},
    seconds={name: run.spent for name, run in runs.items()},
    optimum=float(table.values[:, 0, -1].min()),
    logarithmic=False,
)
ax.set_xlabel("epochs of training, over all networks")
ax.set_ylabel("log10 above the best network of the table")
plt.show()

# %%
ends = np.asarray(table.values[:, 0, -1])
print("networks     started   completed   rank of the best, of 120 (median)")
for name, found in runs.items():
    at = np.asarray(found.step)  # the checkpoint of each step of each search
    started, completed = (
        (at == step).sum(axis=1).mean() for step in (0, len(epochs) - 1)
    )
    rank = np.median([1 + (ends < best).sum() for best in np.asarray(found.best[:, -1])])
    print(f"{name:14} {started:5.1f} {completed:11.1f} {rank:8.0f}")

# %% [markdown]
# For the same amount of training, the search on curves sees many more networks.
#
# **Next.** With real training the objective is a traceable function `(key, x, step) -> value`.
# For any other code, [a study](07_your_training_loop.ipynb) prunes trials by the values that they
# report.
