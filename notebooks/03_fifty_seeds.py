# %% [markdown]
# # Fifty seeds at once, and how to read an efficiency plot
#
# After this notebook you can run a whole search for fifty seeds in one call, plot the results,
# and compare methods over seeds.

# %%
import time

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import bonas
from bonas import plots
from bonas import search as searches
from bonas.problems import functions

bonas.configure()
# Two parameters, six local minima, two of them global.
problem = functions.six_hump_camel

# %% [markdown]
# ## A search is a function of a key
#
# `bonas.run(search, objective, key, steps)` is pure: the result depends only on its arguments.
# Fifty keys are fifty searches. `run_many` compiles the search once, with its model, inference
# and acquisition, and runs all of them.

# %%
search = bonas.bayes(problem.space)
keys = jax.random.split(jax.random.key(0), 50)

began = time.perf_counter()
model = bonas.run_many(search, problem.objective, keys, steps=40)
jax.block_until_ready(model.best)
first = time.perf_counter() - began
random = bonas.run_many(searches.random(problem.space), problem.objective, keys, steps=40)
seeds, evaluations = model.best.shape
print(
    f"{seeds} searches of {evaluations} evaluations: {first:.1f} s, compilation included"
)

# %% [markdown]
# ## One run says little
#
# Here are the first three seeds of Bayesian optimization and of random search. Which is better
# after ten evaluations? It depends on the seed.

# %%
figure, ax = plt.subplots(layout="constrained")
steps = np.arange(1, 41)
for color, name, history in zip(
    plots.COLORS, ("bayes", "random"), (model, random), strict=False
):
    regret = np.asarray(history.best[:3]) - problem.optimum
    ax.step(steps, regret.T, where="post", color=color, label=[name, None, None])
ax.set(yscale="log", xlabel="evaluations", ylabel="regret")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## Fifty runs say more
#
# How to read the plot below:
#
# - The **x axis** counts evaluations, the cost. The **y axis** is the *regret*: the best value
#   found so far minus the true minimum. Lower is better.
# - A **line** is the median over seeds. A **band** contains the middle half of the seeds. It
#   shows the variation between runs, not the uncertainty of the median.
# - The y axis is **logarithmic**: each tick down is one more correct digit.
# - The lines **start together** while points come from the initial design; the model is used from
#   the sixth evaluation on.
# - Read the plot **horizontally** too: how many evaluations does random search need for what the
#   model reaches in ten?

# %%
ax = plots.efficiency({"bayes": model, "random": random}, optimum=problem.optimum)
plt.show()

# %%
after = float(jnp.median(model.best[:, 9]))
enough = np.asarray(jnp.median(random.best, axis=0) <= after)
needs = f"{enough.argmax() + 1}" if enough.any() else f"more than {enough.size}"
print(f"random search needs {needs} evaluations for what the model reaches in 10")

# %% [markdown]
# ## Compare in pairs
#
# A harder question: is expected improvement, the default acquisition, better here than a
# confidence bound? With the same keys, both searches start from the same five points. So compare
# them seed by seed, with a confidence interval for the mean difference. An interval that excludes
# 0 is a finding; otherwise the question stays open.

# %%
bounded = bonas.bayes(problem.space, acquisition=bonas.lcb)
bound = bonas.run_many(bounded, problem.objective, keys, steps=40)
ours, theirs = (np.asarray(history.best - problem.optimum) for history in (model, bound))
digits = np.log10(theirs) - np.log10(ours)  # above 0, expected improvement is ahead
mean = digits.mean(axis=0)
error = 1.96 * digits.std(axis=0, ddof=1) / np.sqrt(len(digits))

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
both = {"expected improvement": model, "confidence bound": bound}
plots.efficiency(both, optimum=problem.optimum, ax=left)
green = plots.COLORS[2]
right.axhline(0.0, color="black", linewidth=0.8)
right.fill_between(steps, mean - error, mean + error, color=green, alpha=0.2, linewidth=0)
right.plot(steps, mean, color=green)
right.set(xlabel="evaluations", title="in pairs: mean and 95% interval")
right.set_ylabel("digits gained by expected improvement")
plt.show()

# %%
ahead = int((digits[:, -1] > 0).sum())
low, high = mean[-1] - error[-1], mean[-1] + error[-1]
verdict = "outside: a finding" if low > 0 or high < 0 else "inside: still a question"
print(f"Expected improvement is ahead in {ahead} of {len(digits)} seeds.")
print(f"Its mean lead is {mean[-1]:+.2f} digits; below 0, it is behind.")
print(f"The 95% interval is from {low:+.2f} to {high:+.2f}, and 0 is {verdict}.")

# %% [markdown]
# ## The chosen points
#
# A history contains every point. In this run, orange points improved on all earlier ones:

# %%
one = jax.tree.map(lambda leaf: leaf[0], model)
panels = plots.choices(one, problem.space)
plt.show()

# %% [markdown]
# **Next.** The x axis can also be seconds (`plots.efficiency(..., seconds=)`), which is fairer to
# cheap methods. `functions.add_noise` adds noise to an objective. Several devices need no change in
# the code: see [devices](08_devices.ipynb).
