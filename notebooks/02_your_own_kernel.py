# %% [markdown]
# # Write a kernel in a cell, and use it everywhere
#
# After this notebook you can teach a Gaussian process something that only you know about your problem, in three lines, and
# use it in every fit, plot and search of bonas.
#
# A kernel says how alike the values at two points are. The built-in ones say: the nearer, the more alike. Suppose you know
# more: your quantity has a rhythm – seasons, say – on top of a trend.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro.distributions as dist

import bonas
from bonas import gp, infer, plots, surrogates

bonas.configure()


def rhythm(u):  # what is measured, and to be minimised later on
    turns = 2.0 * jnp.pi * 6.0 * u
    return jnp.sin(turns) + 0.4 * jnp.sin(2.0 * turns) - 1.5 * u


# %% [markdown]
# ## The kernel
#
# A function of its parameters and **two points**, and a **prior** for each parameter. That is all. Batches, gradients, jit
# and padding are bonas's business.


# %%
def periodic(params, a, b):
    turns = jnp.sin(jnp.pi * (a - b) / params["period"]) / params["lengthscale"]
    return params["variance"] * jnp.exp(-2.0 * jnp.sum(turns**2))


season = gp.Kernel(
    prior={
        "variance": dist.LogNormal(0.0, 0.5),
        # a fifth of the axis, give or take a third
        "period": dist.LogNormal(jnp.log(0.2), 0.3),
        "lengthscale": dist.LogNormal(0.0, 0.5),
    },
    value=periodic,
)
mine = season + gp.linear()  # kernels add and multiply
# What is to be inferred:
{part: list(unknown) for part, unknown in mine.prior(1).items()}

# %% [markdown]
# ## In a fit
#
# We measure twelve values in the left part and ask both models about the rest. A fit is three steps: the posterior of the
# kernel's parameters (`hyperposterior`), a way to explore it (here NUTS; slice sampling, HMC or an optimum have the same
# shape), and the Gaussian process given each sample.

# %%
x = jax.random.uniform(jax.random.key(0), (12, 1), maxval=0.55)
measured = rhythm(x[:, 0]) + 0.05 * jax.random.normal(jax.random.key(1), (12,))
data, level, spread = bonas.standardise(bonas.dataset(x, measured))
line = jnp.linspace(0.0, 1.0, 201)[:, None]


def believe(kernel, key):
    """Mean and std along the line, over samples of the kernel's parameters; and those."""
    target = gp.hyperposterior(kernel, data)
    draws, _ = infer.nuts(key, target.sampling, target.start, samples=100, burn=200)
    params = jax.vmap(target.constrain)(draws)
    each = jax.vmap(gp.predict, (0, None))(gp.condition_all(kernel, params, data), line)
    mean, std = plots.mixed(each)
    return level + spread * mean, spread * std, params


models = {"Matérn 5/2": gp.matern52(), "mine": mine}
found = {name: believe(kernel, jax.random.key(2)) for name, kernel in models.items()}

# %%
figure, panels = plt.subplots(1, 2, figsize=(10, 3.5), sharey=True, layout="constrained")
for ax, colour, name in zip(panels, plots.COLOURS, found, strict=False):
    mean, std, _ = found[name]
    low, high = mean - 2 * std, mean + 2 * std
    ax.fill_between(line[:, 0], low, high, color=colour, alpha=0.2, linewidth=0)
    ax.plot(line, mean, color=colour, label="mean ± 2 standard deviations")
    ax.plot(line, rhythm(line), "--", color="black", linewidth=1, label="truth")
    ax.plot(x, measured, "o", color="black", markersize=4, label="measured")
    ax.set(title=name, xlabel="u")
panels[0].legend(frameon=False, loc="upper right")
plt.show()

# %% [markdown]
# Where there are measurements both know what to say. To the right of them the Matérn kernel falls back to its mean and says,
# rightly, that it does not know. Yours goes on counting seasons. What it has learned about them:

# %%
period = np.asarray(found["mine"][2]["kernel"]["0"]["period"])
print(f"period {period.mean():.3f} ± {period.std():.3f}; the truth is {1 / 6:.3f}")

# %% [markdown]
# ## In a search
#
# The same kernel, in the same words, in a search. `run_many` compiles the whole of it – fits, acquisition, its maximisation –
# around your function, and runs twenty seeds:

# %%
space = bonas.Space(u=bonas.Float(0.0, 1.0))


def objective(key, u):
    return rhythm(u[0])


keys = jax.random.split(jax.random.key(3), 20)
histories = {}
for name, kernel in {"default": None, "mine": mine}.items():
    search = bonas.bayes(space, surrogate=surrogates.gp(kernel))
    histories[name] = bonas.run_many(search, objective, keys, steps=20)
optimum = float(rhythm(jnp.linspace(0.0, 1.0, 100_001)).min())

# %%
ax = plots.efficiency(histories, optimum=optimum)
plt.show()

# %% [markdown]
# Both have the same first five points in each seed, so the lines begin together. How many evaluations until nine searches of
# ten are within 0.01 of the minimum?

# %%
for name, history in histories.items():
    close = (history.best < optimum + 0.01).mean(axis=0) >= 0.9
    print(f"{name:8}", int(close.argmax()) + 1 if close.any() else "more than 20")

# %% [markdown]
# ## What to know
#
# - Points are rows of the unit cube, one column a parameter; `gp.on((0,), kernel)` shows a kernel some columns only.
# - Priors expect values of mean 0 and variance 1, as `bonas.standardise` and every search give them.
# - A pointwise function is turned into matrices by `vmap`. Where that is too slow, `gp.Kernel(..., gram=)` takes a matrix form.
# - Mistakes are met with words: a kernel that forgets its `.sum()` is told so, not broadcast.
#
# **Where next.** How to read such a plot is the subject of [fifty seeds](03_fifty_seeds.ipynb); kernels for parameters that
# come and go are in [networks of unknown depth](04_unknown_depth.ipynb).
