# %% [markdown]
# # Networks of unknown depth
#
# After this notebook you can search spaces with conditional parameters, such as the width of a
# third layer that exists only in networks with three layers, and choose among the kernels made
# for them.

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
# `when=` states the condition under which a parameter exists. A configuration contains only
# active parameters. Its point in the unit cube has 0 in the other columns, and `space.active`
# returns which columns are active.

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
# Compare a network with one hidden layer to networks with two, as the width of the second layer
# varies. A kernel without knowledge of conditions treats the 0 of the missing layer as a very
# narrow layer, so the shallow network looks almost the same as a deep one with few units. The
# **arc** kernel (Swersky et al. 2014) places an existing layer on an arc and a missing one at its
# center, equally far from all widths. The **wedge** kernel learns whether "missing" is closer to
# narrow or to wide. Both are shown at the medians of their priors.

# %%
shallow = space.encode({"depth": 1, "width_1": 32})[None, :]
widths = np.geomspace(4, 256, 60).round().astype(int)


def two_layers(*widths):
    configs = ({"depth": 2, "width_1": 32, "width_2": int(width)} for width in widths)
    return jnp.stack([space.encode(config) for config in configs])


deep, middle = two_layers(*widths), two_layers(32)

kernels = {"arc": gp.arc(space), "wedge": gp.wedge(space), "Matérn": gp.matern52()}
figure, panels = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
for color, (name, kernel) in zip(plots.COLORS, kernels.items(), strict=False):
    no_data = bonas.empty(1, space.dim)  # the prior
    target = gp.hyperposterior(kernel, no_data)
    params = target.constrain(target.start)["kernel"]
    for ax, other in zip(panels, (shallow, middle), strict=True):
        correlation = gp.gram(kernel, params, deep, other)[:, 0] / params["variance"]
        ax.plot(widths, correlation, color=color, label=name)
panels[0].set(title="with a network of one layer", ylabel="correlation", ylim=(0.0, 1.02))
panels[1].set(title="with a network of two layers, 32 units in the second")
for ax in panels:
    ax.set(xscale="log", xlabel="width of the second layer")
panels[0].legend(frameon=False, ncols=3)
plt.show()

# %% [markdown]
# ## Does it matter?
#
# A small test problem has up to five layers, each with one number to tune. Each added layer
# removes four tenths of the remaining error, and adds the squared deviation of its number. So
# deep networks are best, and hardest to tune. We compare the arc kernel with two simple
# alternatives: treat the zeros as values (**zeros**), or pretend that all parameters always exist
# (**ignored**).

# %%
LAYERS = 5
numbers = [f"x{layer}" for layer in range(1, LAYERS + 1)]
best = jnp.linspace(0.3, 0.7, LAYERS)  # the optimal number of each layer


def layers(conditional):
    each = {}
    for layer, name in enumerate(numbers, start=1):
        when = {"depth": (">=", layer)} if conditional and layer > 1 else None
        each[name] = bonas.Float(0.0, 1.0, when=when)
    return bonas.Space(depth=bonas.Int(1, LAYERS), **each)


def error(key, u):
    values = layered.values(u)
    off = jnp.stack([values[name] for name in numbers]) - best
    active = jnp.arange(LAYERS) < values["depth"]
    return 0.6 ** values["depth"] + jnp.sum(jnp.where(active, off**2, 0.0))


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
ax.axhline(four, color="gray", linestyle=":")
ax.text(1, 0.95 * four, "the best network of four layers", va="top", color="gray")
plt.show()

# %% [markdown]
# Which depths did they try? The mean number of layers, in groups of fifteen evaluations:

# %%
print(f"{'':8}" + "".join(f"{start + 1:>5}–{start + 15:<3}" for start in (0, 15, 30)))
for name, history in histories.items():
    depth = np.asarray(jax.vmap(jax.vmap(layered.values))(history.x)["depth"])
    means = depth.reshape(len(keys), 3, 15).mean(axis=(0, 2))
    print(f"{name:8}" + "".join(f"{mean:7.1f}  " for mean in means))

# %% [markdown]
# One interpretation: with zeros, a shallow network is next to deep ones with low numbers, so
# knowledge about one is wrongly applied to the others. Ignoring conditions works well at first,
# since all depths share information; later, parameters without effect still have to be modeled.
# The arc kernel first has to learn how far apart depths are, and can then go deep. It does not
# help everywhere: on `functions.layered`, where depths have little in common, all of these
# searches settle for two of three layers after forty evaluations.
#
# This is one search with the arc kernel. A panel has no point where its layer does not exist:

# %%
one = jax.tree.map(lambda leaf: leaf[0], histories["arc"])
panels = plots.choices(one, layered)
plt.show()

# %% [markdown]
# ## Which kernel to use
#
# For a conditional space, `bonas.bayes(space)` uses the arc kernel by default. The others are one
# argument away:
#
# | kernel | a missing parameter is … |
# |---|---|
# | `gp.arc` | equally far from all of its values |
# | `gp.wedge` | as far from low and high values as the data suggest |
# | `gp.box` | at a learned default value, some distance away |
# | `gp.masked` | unrelated: networks with different active parameters share only hyperparameters |
# | `gp.blocks` | one term less in a sum over layers |
# | `gp.tied` | (wraps any of them) layers share their length scales |
#
# On tables of trained networks none of them wins everywhere: see the findings
# (`notebooks/site/findings.md`).
#
# **Next.** [Your own kernel](02_your_own_kernel.ipynb) can be used in the same place; [learning
# curves](06_learning_curves.ipynb) save most of the training.
