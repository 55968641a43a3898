# %% [markdown]
# # A first search in ten lines
#
# After this notebook you can pass any training code to bonas and get back the settings that
# worked best.
#
# The training code here is scikit-learn's: how many hidden units and which learning rate suit a
# network that reads handwritten digits? Ten passes over the data take a fraction of a second.

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

# Ten passes are deliberately few.
warnings.simplefilter("ignore", ConvergenceWarning)

# %% [markdown]
# ## The ten lines
#
# A **space** defines the choices, a **function** returns the loss of a choice, and `minimize`
# does the rest.

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


result = bonas.minimize(error, space, trials=20, progress=False)
print(result)

# %% [markdown]
# The printed value is the share of digits that the best network misreads. `configure()` is the
# only line that changes settings of the process (float64, one BLAS thread, a persistent
# compilation cache); importing bonas changes nothing. Without `progress=False`, a progress bar is
# shown.
#
# ## The evaluations
#
# Every evaluation is recorded: its configuration, its value, its duration and how its point was
# chosen.

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
style = {"cmap": "viridis_r", "edgecolors": "black", "linewidths": 0.5, "s": 60}
style["norm"] = LogNorm(values.min(), values.max())
kinds = {"initial design": (designed, "s"), "chosen by the model": (~designed, "o")}
dots = [
    left.scatter(
        rates[some], units[some], c=values[some], marker=marker, label=name, **style
    )
    for name, (some, marker) in kinds.items()
]
left.set(xscale="log", yscale="log", xlabel="rate", ylabel="units")
left.set_yticks([2, 4, 8, 16, 32, 64], labels=[2, 4, 8, 16, 32, 64], minor=False)
left.minorticks_off()
left.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
bar = figure.colorbar(
    dots[0], ax=left, label="error", ticks=[0.05, 0.1, 0.2, 0.5], format="%g"
)
bar.minorticks_off()
right.step(number, np.minimum.accumulate(values), where="post", color=plots.COLORS[0])
right.plot(number, values, "o", color="gray", markersize=4)
right.set(yscale="log", xlabel="evaluations", ylabel="error, and the best so far")
right.set_xticks(range(0, 21, 5))
plt.show()

# %% [markdown]
# The left plot shows the points. The first five (squares) are spread out, because nothing is
# known yet. From then on, a Gaussian process models the error, and each new point is where the
# expected improvement is largest: circles gather where the error is low, with an occasional
# exploration elsewhere. The right plot shows every error and the best so far.
#
# ## Use your own code
#
# Nothing above is specific to scikit-learn. The function receives a dict and returns a number. A
# parameter that exists only under a condition, such as the width of an optional layer, gets a
# `when=`:

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
# **Next.** [Networks of unknown depth](04_unknown_depth.ipynb) search such spaces; [your own
# training loop](07_your_training_loop.ipynb) stores every trial in a file and resumes after a
# crash; [fifty seeds](03_fifty_seeds.ipynb) shows how to compare methods over seeds.
