# %% [markdown]
# # Networks of unknown depth: arc and its rivals
#
# After this notebook you can search spaces in which parameters come and go – the width of a third layer exists only in
# networks that have one – and choose among the kernels that know about it.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import bonas
from bonas import gp, plots, surrogates
from bonas import search as searches

bonas.configure()

# %% [markdown]
# ## A space with conditions
#
# `when=` says under which condition a parameter exists. A configuration holds what exists and nothing else; the row of the
# unit cube behind it holds 0 elsewhere, and `space.active` tells which columns count.

# %%
space = bonas.Space(
    depth=bonas.Int(1, 3),
    width_1=bonas.Int(4, 256, log=True),
    width_2=bonas.Int(4, 256, log=True, when={"depth": (">=", 2)}),
    width_3=bonas.Int(4, 256, log=True, when={"depth": (">=", 3)}),
)
rows = space.sample(jax.random.key(4), 4)
for row in rows:
    active = np.asarray(space.active(row)).astype(int)
    print(f"{space.decode(row)!s:62} {np.asarray(row).round(2)} {active}")

# %% [markdown]
# ## What a kernel should know
#
# Take one network with a single hidden layer, and others with two. How alike are they, as the width of the second layer
# varies? A kernel that is blind to conditions takes the 0 of the missing layer for a very narrow one, so it holds that the
# shallow network is nearly the same as a deep one with few units. The **arc** kernel (Swersky et al., 2014) puts a layer that
# is there on an arc, and one that is not at its centre: equally far from all. The **wedge** lets the data decide whether
# "missing" is closer to narrow or to wide. Below, both are drawn at the middle of their priors.

# %%
shallow = space.encode({"depth": 1, "width_1": 32})[None, :]
widths = np.geomspace(4, 256, 60).round().astype(int)


def two_layers(*widths):
    configs = ({"depth": 2, "width_1": 32, "width_2": int(width)} for width in widths)
    return jnp.stack([space.encode(config) for config in configs])


deep, middle = two_layers(*widths), two_layers(32)

kernels = {"arc": gp.arc(space), "wedge": gp.wedge(space), "blind": gp.matern52()}
figure, panels = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
for colour, (name, kernel) in zip(plots.COLOURS, kernels.items(), strict=False):
    nothing = bonas.empty(1, space.dim)  # no data yet: the prior
    target = gp.hyperposterior(kernel, nothing)
    params = target.constrain(target.start)["kernel"]
    for ax, other in zip(panels, (shallow, middle), strict=True):
        alike = gp.gram(kernel, params, deep, other)[:, 0] / params["variance"]
        ax.plot(widths, alike, color=colour, label=name)
panels[0].set(title="with a network of one layer", ylabel="correlation", ylim=(0.0, 1.02))
panels[1].set(title="with a network of two layers, 32 units in the second")
for ax in panels:
    ax.set(xscale="log", xlabel="width of the second layer")
panels[0].legend(frameon=False, ncols=3)
plt.show()

# %% [markdown]
# ## Does it matter?
#
# A small model of the problem: up to five layers, each with a number to get right. Every layer that is added takes away four
# tenths of the error that is left, and adds its own as far as its number is off. So deep is best, and hard. Two rivals of the
# arc are what one would do without such kernels: take the zeros for numbers (**zeros**), or pretend that every parameter
# always exists, and let the search find out which ones do nothing (**ignored**).

# %%
LAYERS = 5
numbers = [f"x{layer}" for layer in range(1, LAYERS + 1)]
best = jnp.linspace(0.3, 0.7, LAYERS)  # the right number of each layer


def layers(conditional):
    each = {}
    for layer, name in enumerate(numbers, start=1):
        when = {"depth": (">=", layer)} if conditional and layer > 1 else None
        each[name] = bonas.Float(0.0, 1.0, when=when)
    return bonas.Space(depth=bonas.Int(1, LAYERS), **each)


def error(key, u):
    values = layered.values(u)
    off = jnp.stack([values[name] for name in numbers]) - best
    there = jnp.arange(LAYERS) < values["depth"]
    return 0.6 ** values["depth"] + jnp.sum(jnp.where(there, off**2, 0.0))


layered, flat = layers(True), layers(False)
searched = {
    "arc": bonas.bayes(layered, surrogate=surrogates.gp(gp.arc(layered))),
    "zeros": bonas.bayes(layered, surrogate=surrogates.gp(gp.matern52())),
    "ignored": bonas.bayes(flat, surrogate=surrogates.gp(gp.matern52())),
    "random": searches.random(layered),
}
keys = jax.random.split(jax.random.key(0), 20)
histories = {}
for name, search in searched.items():
    histories[name] = bonas.run_many(search, error, keys, steps=45)

# %%
ax = plots.efficiency(histories, optimum=0.6**LAYERS)
four = 0.6**4 - 0.6**5
ax.axhline(four, color="grey", linestyle=":")
ax.text(1, 0.95 * four, "the best network of four layers", va="top", color="grey")
plt.show()

# %% [markdown]
# Which depths did they look at? The mean number of layers, fifteen evaluations at a time:

# %%
print(f"{'':8}" + "".join(f"{start + 1:>5}–{start + 15:<3}" for start in (0, 15, 30)))
for name, history in histories.items():
    depth = np.asarray(jax.vmap(jax.vmap(layered.values))(history.x)["depth"])
    means = depth.reshape(len(keys), 3, 15).mean(axis=(0, 2))
    print(f"{name:8}" + "".join(f"{mean:7.1f}  " for mean in means))

# %% [markdown]
# One way to read this: zeros put a shallow network next to deep ones with low numbers, and what is known of the one is
# wrongly believed of the others. Ignoring conditions is not bad at all while little is known, for depths then share
# everything; the price comes later, when numbers that do nothing still have to be modelled. The arc has to learn how far
# apart depths are, which takes evaluations, and is then free to go deep. It is no cure for everything: on `functions.layered`,
# where depths have little in common, all of them are content with two layers of three after forty evaluations. Try it.
#
# Here is one search with the arc, evaluation by evaluation. Where a layer is not there, its panel has no point:

# %%
one = jax.tree.map(lambda leaf: leaf[0], histories["arc"])
panels = plots.choices(one, layered)
plt.show()

# %% [markdown]
# ## Which to take
#
# For a space with conditions `bonas.bayes(space)` takes the arc by itself. The others are one argument away:
#
# | kernel | a missing parameter is … |
# |---|---|
# | `gp.arc` | equally far from all its values |
# | `gp.wedge` | as far from low values and from high ones as the data say |
# | `gp.box` | at a default value that is learned, some distance off |
# | `gp.masked` | in another world: networks with different parameters share nothing but the kernel's |
# | `gp.blocks` | a term less in a sum over layers |
# | `gp.shared` | (wraps any of them) layers share their length scales |
#
# On tables of networks that were really trained none of them wins everywhere: the site's findings have the numbers
# (`notebooks/site/findings.md`), and `experiments/raiders_tables.py` makes them. Your problem may be the one where it matters:
# now you know how to see.
#
# **Where next.** [Your own kernel](02_your_own_kernel.ipynb) goes into the same place;
# [learning curves](06_learning_curves.ipynb) save most of the training.
