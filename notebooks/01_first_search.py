# %% [markdown]
# # A first search in ten lines
#
# After this notebook you can hand any training code to bonas and get back the settings that worked best.
#
# The code here is scikit-learn's, and the question an everyday one: how many hidden units, and which learning rate, for a
# network that reads handwritten digits? Ten passes over the data take a fraction of a second, so we can watch.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from bonas import plots

# Ten passes are few, and meant to be.
warnings.simplefilter("ignore", ConvergenceWarning)

# %% [markdown]
# ## The ten lines
#
# A **space** says what may be chosen, a **function** how good a choice is – lower is better – and `minimise` does the rest.

# %%
import bonas

bonas.configure()
x, valid_x, y, valid_y = train_test_split(*load_digits(return_X_y=True), random_state=0)
space = bonas.Space(
    units=bonas.Int(2, 64, log=True), rate=bonas.Float(1e-4, 1.0, log=True)
)


def error(config):
    settings = {"learning_rate_init": config["rate"], "max_iter": 10, "random_state": 0}
    network = MLPClassifier([config["units"]], **settings).fit(x, y)
    return 1.0 - network.score(valid_x, valid_y)


result = bonas.minimise(error, space, trials=20, progress=False)
print(result)

# %% [markdown]
# The number is the share of digits that the best network misreads. `configure()` is the only line that changes settings of
# the process (float64, one BLAS thread, compiled programs kept for the next time); importing bonas changes none. Leave
# `progress=False` out, and a bar tells you how far the search is.
#
# ## What it tried
#
# Every evaluation is kept: its configuration, its value, the seconds it took, and how its point was found.

# %%
for each in result.evaluations[:8]:
    how = "initial design" if each.info.random else "chosen by the model"
    units, rate = each.config["units"], each.config["rate"]
    print(f"{units:3d} units, rate {rate:.4f}: error {each.value:.3f}   {how}")

# %%
values = np.array([each.value for each in result.evaluations])
units = np.array([each.config["units"] for each in result.evaluations])
rates = np.array([each.config["rate"] for each in result.evaluations])
number = np.arange(1, len(values) + 1)
designed = np.array([bool(each.info.random) for each in result.evaluations])

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
look = {"cmap": "viridis_r", "edgecolors": "black", "linewidths": 0.5, "s": 60}
look["norm"] = LogNorm(values.min(), values.max())
kinds = {"initial design": (designed, "s"), "chosen by the model": (~designed, "o")}
for name, (some, marker) in kinds.items():
    dots = left.scatter(
        rates[some], units[some], c=values[some], marker=marker, label=name, **look
    )
left.set(xscale="log", yscale="log", xlabel="rate", ylabel="units")
left.set_yticks([2, 4, 8, 16, 32, 64], labels=[2, 4, 8, 16, 32, 64], minor=False)
left.minorticks_off()
left.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
bar = figure.colorbar(
    dots, ax=left, label="error", ticks=[0.05, 0.1, 0.2, 0.5], format="%g"
)
bar.minorticks_off()
right.step(number, np.minimum.accumulate(values), where="post", color=plots.COLOURS[0])
right.plot(number, values, "o", color="grey", markersize=4)
right.set(yscale="log", xlabel="evaluations", ylabel="error: each, and the best so far")
right.set_xticks(range(0, 21, 5))
plt.show()

# %% [markdown]
# On the left is where it looked. The first five points, the squares, are spread out, for nothing is known yet; from then on
# a Gaussian process models the error, and each new point is where most improvement is expected. So circles gather where
# colours are light, and now and then one goes where nobody has been. On the right is every error, and the best so far.
#
# ## Make it yours
#
# Nothing above is special to scikit-learn. The function gets a dict and returns a number; what happens in between is your
# affair. Parameters that exist only sometimes, such as the width of a layer that may not be there, get a `when=`:

# %%
deeper = bonas.Space(
    depth=bonas.Int(1, 2),
    width_1=bonas.Int(2, 64, log=True),
    width_2=bonas.Int(2, 64, log=True, when={"depth": (">=", 2)}),
    activation=bonas.Choice("relu", "tanh"),
    rate=bonas.Float(1e-4, 1.0, log=True),
)
point = deeper.encode({"depth": 1, "width_1": 8, "activation": "tanh", "rate": 0.01})
deeper.decode(point)

# %% [markdown]
# **Where next.** [Networks of unknown depth](04_unknown_depth.ipynb) are such spaces;
# [your own training loop](07_your_training_loop.ipynb) keeps every trial in a file, and survives being killed;
# [fifty seeds](03_fifty_seeds.ipynb) tells whether a search was lucky.
