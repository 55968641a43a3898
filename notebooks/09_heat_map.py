# %% [markdown]
# # A heat map of settings in one compiled call
#
# After this notebook you can try many settings of a search at once: here 8 × 8 settings with 20
# seeds each, 1280 searches in one compiled call.

# %%
import time

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro.distributions as dist

import bonas
from bonas import acquire, gp, plots, surrogates

bonas.configure()
space = bonas.Space(x=bonas.Float(0.0, 1.0))

# %% [markdown]
# ## A noisy function with a trap
#
# It has a wide minimum at 0.25 and a narrow, lower one at 0.8. Evaluations have noise with a
# standard deviation of 0.2.


# %%
def truth(u):
    wide = jnp.exp(-(((u[0] - 0.25) / 0.2) ** 2))
    narrow = 1.5 * jnp.exp(-(((u[0] - 0.8) / 0.06) ** 2))
    return -wide - narrow


def objective(key, u):
    return truth(u) + 0.2 * jax.random.normal(key)


grid = jnp.linspace(0.0, 1.0, 501)
values = jax.vmap(truth)(grid[:, None])
noisy = jax.vmap(objective)(jax.random.split(jax.random.key(1), 501), grid[:, None])
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(grid, noisy, ".", color="gray", markersize=3, label="evaluations")
ax.plot(grid, values, color=plots.COLORS[0], label="without noise")
ax.legend(frameon=False, loc="lower center")
ax.set(xlabel="x", ylabel="value")
plt.show()

# %% [markdown]
# ## A search as a function of its settings
#
# Two settings matter here: `kappa`, the weight of the standard deviation in the confidence bound,
# and the median of the prior of the length scale. The search is made *inside* the function, so
# both may be traced arrays. The result is the regret: how far the best of 20 points is above the
# minimum, without noise.


# %%
def regret(kappa, median, key):
    def prior(d):
        return {
            "variance": dist.LogNormal(0.0, 1.0),
            "lengthscale": dist.LogNormal(jnp.log(median), 0.1).expand([d]),
        }

    search = bonas.bayes(
        space,
        surrogate=surrogates.gp(gp.matern52(prior)),
        acquisition=acquire.closed_form_acquisition(bonas.lcb, kappa=kappa),
    )
    history = bonas.run(search, objective, key, steps=20)
    return jax.vmap(truth)(history.x).min() - values.min()


# %% [markdown]
# ## 1280 searches
#
# Each `vmap` adds an axis: seeds, then medians, then kappas. The call is compiled once.

# %%
kappas = jnp.geomspace(0.25, 8.0, 8)
medians = jnp.geomspace(0.02, 0.6, 8)
seeds = jax.random.split(jax.random.key(0), 20)

over_seeds = jax.vmap(regret, (None, None, 0))
over_medians = jax.vmap(over_seeds, (None, 0, None))
over_kappas = jax.vmap(over_medians, (0, None, None))

began = time.perf_counter()
compiled = jax.jit(over_kappas).lower(kappas, medians, seeds).compile()
compiling = time.perf_counter() - began
began = time.perf_counter()
regrets = np.asarray(compiled(kappas, medians, seeds))
running = time.perf_counter() - began
print(f"{regrets.size} searches of 20 evaluations: {running:.1f} s")
print(f"compiling them: {compiling:.1f} s")

# %% [markdown]
# ## What one sees

# %%
mean = regrets.mean(axis=2)
error = regrets.std(axis=2, ddof=1) / np.sqrt(len(seeds))

figure, ax = plt.subplots(figsize=(7, 5.5), layout="constrained")
image = ax.imshow(mean, origin="lower", cmap="viridis_r", vmin=0.0)
ax.set_xticks(range(8), [f"{median:.2g}" for median in medians])
ax.set_yticks(range(8), [f"{kappa:.2g}" for kappa in kappas])
ax.set(xlabel="median of the length scale", ylabel="kappa")
for (i, j), value in np.ndenumerate(mean):
    color = "white" if value > 0.5 * mean.max() else "black"
    ax.text(j, i, f"{value:.2f}", ha="center", va="center", color=color, fontsize=8)
figure.colorbar(image, label="mean regret of 20 seeds")
plt.show()

# %%
best = np.unravel_index(mean.argmin(), mean.shape)
worst = np.unravel_index(mean.argmax(), mean.shape)
for name, (i, j) in (("best", best), ("worst", worst)):
    setting = f"kappa {kappas[i]:.2g}, median {medians[j]:.2g}"
    print(f"{name}: {setting}: regret {mean[i, j]:.2f} ± {error[i, j]:.2f}")
close = int((mean - mean[best] < 2 * np.hypot(error, error[best])).sum())
print(f"{close} of {mean.size} settings are within two standard errors of the best")

# %% [markdown]
# Dark is bad: there most searches stay at the wide minimum. With a small kappa they do not
# explore, and with a long length scale the model believes that it knows the function between its
# points. The border of the good region rises to the right: a longer length scale needs a larger
# kappa. In the top row, searches explore more than they need to, and a little regret remains.
#
# The good region is large, and its cells differ by less than the noise of 20 seeds. To find the
# best cell, take more seeds.
#
# ## The same as a loop
#
# A loop makes a search from Python numbers, and each setting is another program. Two are enough to
# see what 64 would take.

# %%
began = time.perf_counter()
for kappa in (0.25, 8.0):
    bound = acquire.closed_form_acquisition(bonas.lcb, kappa=kappa)
    search = bonas.bayes(space, surrogate=surrogates.gp(gp.matern52()), acquisition=bound)
    jax.block_until_ready(bonas.run_many(search, objective, seeds, steps=20))
each = (time.perf_counter() - began) / 2
print(f"{each:.1f} s for one setting, about {64 * each:.0f} s for 64")

# %% [markdown]
# **Next.** The page "Vmap over anything" lists what may be mapped, and what must remain a Python
# number. On a CPU, `jax.lax.map` in place of `jax.vmap` compiles faster and needs less memory,
# because the searches run in sequence.
