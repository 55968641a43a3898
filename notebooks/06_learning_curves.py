# %% [markdown]
# # Learning curves: train a little, predict the rest
#
# After this notebook you can tell from the beginning of a learning curve where it is likely to end, with an error bar, and run
# a search that spends its budget on networks worth finishing.

# %%
from functools import partial

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import bonas
from bonas import gp, infer, nets, plots
from bonas import search as searches
from bonas.problems import tables

bonas.configure()

# %% [markdown]
# ## Some real curves
#
# We train 120 networks of one hidden layer, with different widths and learning rates, on noisy values of a function of five
# inputs, and write down the validation error at six checkpoints. They all fit into one shape, so this is one compiled program.


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
        hyper = nets.Hyper(values["rate"].astype(jnp.float32))
        return nets.train(key, shape, settings, architecture, hyper, data).metrics[:, 0]

    # Each network has initial weights of its own: luck.
    keys = jax.random.split(jax.random.key(3), len(networks))
    return jax.lax.map(lambda given: one(*given), (keys, networks))


curves = train_all(networks).astype(float)
curves = jnp.log10(curves)  # errors are compared by their digits

# %%
errors = [0.1, 0.2, 0.5, 1, 2]  # marks of the axis
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
colours = plt.get_cmap("viridis")(np.asarray(networks[:, 1]))
for curve, colour in zip(curves, colours, strict=True):
    ax.plot(epochs, 10**curve, color=colour, linewidth=0.7)
ax.set(xscale="log", yscale="log", xlabel="epochs")
ax.set_ylabel("validation error (mean square)")
ax.set_xticks(epochs, labels=epochs)
ax.set_yticks(errors, labels=errors)
ax.minorticks_off()
scale = plt.cm.ScalarMappable(plt.Normalize(*np.log10([3e-4, 3e-2])), "viridis")
figure.colorbar(scale, ax=ax, label="log10 of the rate")
plt.show()

# %% [markdown]
# Curves cross: the best after two epochs need not be the best in the end.
#
# ## A model of curves
#
# GPAR, an autoregressive Gaussian process, models each checkpoint given the network **and the checkpoints before it**. We give
# it twenty complete curves. Of the other hundred it sees the first three checkpoints, and says how they go on.

# %%
model, known = gp.gpar(), 3
complete = bonas.dataset(networks[:20], curves[:20])


@jax.jit
def fit(key, complete):
    target = model.hyperposterior(complete)
    found, _ = infer.maximise(key, target.maximising, target.start, steps=100)
    params = jax.tree.map(lambda leaf: leaf[0], target.constrain(found))
    return model.condition(params, complete)


fitted = fit(jax.random.key(4), complete)
rest, truth = networks[20:], curves[20:]
seen = jnp.broadcast_to(jnp.arange(len(epochs)) < known, truth.shape)
from_start = model.predict(fitted, rest, gp.Known(truth, seen))
from_nothing = model.predict(fitted, rest)

# %%
form = {"sharex": True, "sharey": True, "layout": "constrained"}
figure, panels = plt.subplots(1, 4, figsize=(13, 3.4), **form)
later = np.asarray(epochs[known - 1 :])
from_best_to_worst = np.argsort(np.asarray(truth[:, -1]))[[0, 33, 66, 99]]
for ax, i in zip(panels, from_best_to_worst, strict=True):
    mean, std = (np.asarray(part[i, known:]) for part in from_start)
    middle, width = np.append(truth[i, known - 1], mean), np.append(0.0, std)
    low, high = middle - 2 * width, middle + 2 * width
    ax.fill_between(later, 10**low, 10**high, alpha=0.2, linewidth=0)
    ax.plot(later, 10**middle, label="predicted ± 2 std")
    came = 10 ** np.asarray(truth[i])
    ax.plot(epochs, came, "--", color="black", linewidth=1, label="what came")
    ax.plot(epochs[:known], came[:known], "o", color="black", label="seen")
    config = space.decode(rest[i])
    ax.set(xscale="log", yscale="log", xlabel="epochs")
    ax.set_title(f"{config['width']} units, rate {config['rate']:.4f}")
    ax.set_xticks(epochs, labels=epochs)
    ax.set_yticks(errors, labels=errors)
    ax.minorticks_off()
panels[0].set_ylabel("validation error")
panels[0].legend(frameon=False)
plt.show()

# %% [markdown]
# How good are the predictions of the last checkpoint, over all hundred? Three ways to guess: take the last value seen; predict
# from width and rate alone, without the beginning; and both.

# %%
end, std = truth[:, -1], from_start.std[:, -1]
guesses = {
    "the last value seen": truth[:, known - 1],
    "width and rate alone": from_nothing.mean[:, -1],
    "GPAR, with the beginning": from_start.mean[:, -1],
}
for name, guess in guesses.items():
    off = float(jnp.sqrt(jnp.mean((guess - end) ** 2)))
    print(f"{name:26} off by {off:.3f} digits")
inside = jnp.mean(jnp.abs(guesses["GPAR, with the beginning"] - end) <= 2 * std)
print(f"within two standard deviations: {inside:.0%}")

# %% [markdown]
# ## A search that stops early
#
# `bonas.curves` asks which network to advance by one checkpoint. We replay the curves above as a table, so that training costs
# nothing, and give every search the epochs that ten networks take to the end. Arrays have a fixed size, so a search is also
# told for how many networks there is room: forty, though the budget would do to begin all 120. The rivals train each network
# to the end: ordinary Bayesian optimisation, and chance.

# %%
table = tables.table(bonas.Listed(space, np.asarray(networks)), epochs, curves)
objective, keys = tables.objective(table), jax.random.split(jax.random.key(5), 12)
budget = 10 * epochs[-1]
methods = {
    "curves": bonas.curves(table.space, epochs, initial=3),
    "whole, bayes": searches.whole(bonas.bayes(table.space, initial=3), epochs),
    "whole, random": searches.whole(searches.random(table.space), epochs),
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
ax.set_xlabel("epochs of training, all networks together")
ax.set_ylabel("digits above the best network of the table")
plt.show()

# %%
ends = np.asarray(table.values[:, 0, -1])
print("networks       begun   completed   rank of the best, of 120 (median)")
for name, found in runs.items():
    at = np.asarray(found.step)  # the checkpoint of each step of each search
    begun, completed = ((at == step).sum(axis=1).mean() for step in (0, len(epochs) - 1))
    rank = np.median([1 + (ends < best).sum() for best in np.asarray(found.best[:, -1])])
    print(f"{name:14} {begun:5.1f} {completed:11.1f} {rank:8.0f}")

# %% [markdown]
# For the same training a search on curves sees many more networks: as many as there is room for.
#
# **Where next.** With real training the objective is a function `(key, x, step) -> value` that JAX can trace; for any other
# code, [a study](07_your_training_loop.ipynb) stops hopeless trials by what they report.
