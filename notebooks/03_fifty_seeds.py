# %% [markdown]
# # Fifty seeds at once, and how to read an efficiency plot
#
# After this notebook you can run a whole search for fifty seeds in one call, draw what came of it, and tell a better method
# from a lucky one.

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
# Two columns, six hollows, two of them deepest; its least value is known.
problem = functions.six_hump_camel

# %% [markdown]
# ## A search is a function of a key
#
# `bonas.run(search, objective, key, steps)` is pure: nothing but the key decides what happens. So fifty keys are fifty
# searches, and `run_many` compiles the search once – model, inference, acquisition and all – and goes through them.

# %%
search = bonas.bayes(problem.space)
keys = jax.random.split(jax.random.key(0), 50)

began = time.perf_counter()
model = bonas.run_many(search, problem.objective, keys, steps=40)
jax.block_until_ready(model.best)
first = time.perf_counter() - began
chance = bonas.run_many(searches.random(problem.space), problem.objective, keys, steps=40)
seeds, evaluations = model.best.shape
print(f"{seeds} searches of {evaluations} evaluations: {first:.1f} s, compiling included")

# %% [markdown]
# ## One run tells little
#
# Here are the first three seeds of our search and of chance. Which is better after ten evaluations? It depends on whom you
# ask.

# %%
figure, ax = plt.subplots(layout="constrained")
steps = np.arange(1, 41)
for colour, name, history in zip(
    plots.COLOURS, ("bayes", "random"), (model, chance), strict=False
):
    regret = np.asarray(history.best[:3]) - problem.optimum
    ax.step(steps, regret.T, where="post", color=colour, label=[name, None, None])
ax.set(yscale="log", xlabel="evaluations", ylabel="regret")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## Fifty tell more
#
# How to read the plot below:
#
# - **Across** are evaluations: what you pay. **Up** is the *regret*, how far the best value found so far is above the true
#   minimum: what you still lack. Lower is better, and further left is cheaper.
# - A **line** is the median over seeds: half of the searches are below it. A **band** holds the middle half of them. It shows
#   how much luck is involved, not how well the median is known.
# - The axis is **logarithmic**: each mark down is one more correct digit.
# - Lines **begin together** while points are taken blindly; the model speaks from the sixth evaluation on.
# - Read it **across** too: how many evaluations does chance need for what the model reaches in ten?

# %%
ax = plots.efficiency({"bayes": model, "random": chance}, optimum=problem.optimum)
plt.show()

# %%
after = float(jnp.median(model.best[:, 9]))
enough = np.asarray(jnp.median(chance.best, axis=0) <= after)
needs = f"{enough.argmax() + 1}" if enough.any() else f"more than {enough.size}"
print(
    f"what half of the searches reach with a model in 10 evaluations takes chance {needs}"
)

# %% [markdown]
# ## Compare in pairs
#
# A harder question: is the default acquisition, expected improvement, better here than a confidence bound? With the same keys
# two such searches begin at the same five points. So do not compare two clouds: compare seed by seed, and ask how sure you can
# be. The interval is of the mean difference; one that leaves out 0 is a finding, one that does not is a question.

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
green = plots.COLOURS[2]
right.axhline(0.0, color="black", linewidth=0.8)
right.fill_between(steps, mean - error, mean + error, color=green, alpha=0.2, linewidth=0)
right.plot(steps, mean, color=green)
right.set(xlabel="evaluations", title="in pairs: mean and 95% interval")
right.set_ylabel("digits by which expected improvement is ahead")
plt.show()

# %%
ahead = int((digits[:, -1] > 0).sum())
low, high = mean[-1] - error[-1], mean[-1] + error[-1]
verdict = "outside: a finding" if low > 0 or high < 0 else "inside: still a question"
print(f"Expected improvement is ahead in {ahead} of {len(digits)} seeds.")
print(f"Its mean lead is {mean[-1]:+.2f} digits; below 0, it is behind.")
print(f"The 95% interval is from {low:+.2f} to {high:+.2f}, and 0 is {verdict}.")

# %% [markdown]
# ## Where it looked
#
# A history holds every point as well. In one run, orange points were better than all before them:

# %%
one = jax.tree.map(lambda leaf: leaf[0], model)
panels = plots.choices(one, problem.space)
plt.show()

# %% [markdown]
# **Where next.** The axis can be seconds (`plots.efficiency(..., seconds=)`), which is fair to cheap methods. Values that are
# noisy are in `functions.noisy`. And on more than one device nothing changes: see [devices](08_devices.ipynb).
