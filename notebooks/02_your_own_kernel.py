# %% [markdown]
# # Write your own kernel
#
# After this notebook you can encode your knowledge of a problem in a kernel of three lines, and
# use it in every fit, plot and search of bonas.
#
# A kernel defines how similar the values at two points are. For the built-in kernels, nearby
# points are similar. Suppose you know more: your quantity is periodic, with a trend.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro.distributions as dist

import bonas
from bonas import gp, infer, plots, surrogates

bonas.configure()


def rhythm(u):  # the true function, minimized below
    turns = 2.0 * jnp.pi * 6.0 * u
    return jnp.sin(turns) + 0.4 * jnp.sin(2.0 * turns) - 1.5 * u


# %% [markdown]
# ## The kernel
#
# A kernel is a function of its parameters and **two points**, with a **prior** for each
# parameter. bonas takes care of batches, gradients, compilation and padding.


# %%
def periodic(params, a, b):
    turns = jnp.sin(jnp.pi * (a - b) / params["period"]) / params["lengthscale"]
    return params["variance"] * jnp.exp(-2.0 * jnp.sum(turns**2))


season = gp.Kernel(
    prior={
        "variance": dist.LogNormal(0.0, 0.5),
        # about a fifth of the axis
        "period": dist.LogNormal(jnp.log(0.2), 0.3),
        "lengthscale": dist.LogNormal(0.0, 0.5),
    },
    value=periodic,
)
seasonal = season + gp.linear()  # kernels add and multiply
# The parameters to infer:
{part: list(unknown) for part, unknown in seasonal.prior(1).items()}

# %% [markdown]
# ## In a fit
#
# We measure twelve values on the left and ask both models about the rest. A fit has three steps:
# define the posterior of the kernel's parameters (`hyperposterior`), explore it (here by NUTS;
# slice sampling, HMC and MAP are called in the same way), and condition the Gaussian process on
# each sample.

# %%
x = jax.random.uniform(jax.random.key(0), (12, 1), maxval=0.55)
measured = rhythm(x[:, 0]) + 0.05 * jax.random.normal(jax.random.key(1), (12,))
data, level, spread = bonas.standardize(bonas.dataset(x, measured))
line = jnp.linspace(0.0, 1.0, 201)[:, None]


def fit(kernel, key):
    """Return mean and std along the line, and samples of the kernel's parameters."""
    target = gp.hyperposterior(kernel, data)
    draws, _ = infer.nuts(key, target.sampling, target.start, samples=100, burn=200)
    params = jax.vmap(target.constrain)(draws)
    each = jax.vmap(gp.predict, (0, None))(gp.condition_all(kernel, params, data), line)
    mean, std = plots.mixture_moments(each)
    return level + spread * mean, spread * std, params


models = {"Matérn 5/2": gp.matern52(), "periodic": seasonal}
fits = {name: fit(kernel, jax.random.key(2)) for name, kernel in models.items()}

# %%
figure, panels = plt.subplots(1, 2, figsize=(10, 3.5), sharey=True, layout="constrained")
for ax, color, name in zip(panels, plots.COLORS, fits, strict=False):
    mean, std, _ = fits[name]
    low, high = mean - 2 * std, mean + 2 * std
    ax.fill_between(line[:, 0], low, high, color=color, alpha=0.2, linewidth=0)
    ax.plot(line, mean, color=color, label="mean ± 2 standard deviations")
    ax.plot(line, rhythm(line), "--", color="black", linewidth=1, label="truth")
    ax.plot(x, measured, "o", color="black", markersize=4, label="measured")
    ax.set(title=name, xlabel="u")
panels[0].legend(frameon=False, loc="upper right")
plt.show()

# %% [markdown]
# Near the measurements both models are accurate. To the right, the Matérn kernel returns to its
# mean and reports, correctly, that it does not know. The periodic kernel extrapolates. It has
# learned the period:

# %%
period = np.asarray(fits["periodic"][2]["kernel"]["0"]["period"])
print(f"period {period.mean():.3f} ± {period.std():.3f}; the truth is {1 / 6:.3f}")

# %% [markdown]
# ## In a search
#
# The same kernel works in a search. `run_many` compiles the whole search (fits, acquisition and
# its maximization) together with your function, and runs twenty seeds:

# %%
space = bonas.Space(x=bonas.Float(0.0, 1.0))


def objective(key, u):
    return rhythm(u[0])


keys = jax.random.split(jax.random.key(3), 20)
histories = {}
for name, kernel in {"default": None, "periodic": seasonal}.items():
    search = bonas.bayes(space, surrogate=surrogates.gp(kernel))
    histories[name] = bonas.run_many(search, objective, keys, steps=20)
optimum = float(rhythm(jnp.linspace(0.0, 1.0, 100_001)).min())

# %%
ax = plots.efficiency(histories, optimum=optimum)
plt.show()

# %% [markdown]
# Both searches use the same five initial points for each seed, so the lines start together. How
# many evaluations are needed until nine searches out of ten are within 0.01 of the minimum?

# %%
for name, history in histories.items():
    close = (history.best < optimum + 0.01).mean(axis=0) >= 0.9
    print(f"{name:8}", int(close.argmax()) + 1 if close.any() else "more than 20")

# %% [markdown]
# ## Good to know
#
# - Points are rows of the unit cube with one column per parameter; `gp.on_columns((0,), kernel)`
#   restricts a kernel to some columns.
# - Priors expect values of mean 0 and variance 1, as `bonas.standardize` and every search
#   provide.
# - A pointwise function is vectorized by `vmap`. If that is too slow, pass a matrix form as
#   `gp.Kernel(..., gram=)`.
# - Mistakes raise clear errors: a kernel without its `.sum()` is reported, not broadcast.
#
# **Next.** [Fifty seeds](03_fifty_seeds.ipynb) explains how to read such a plot; [networks of
# unknown depth](04_unknown_depth.ipynb) has kernels for conditional parameters.
