# %% [markdown]
# # Tune your own training loop
#
# After this notebook you can put bonas around a training loop of your own – NumPy here, PyTorch in the same way – with every
# trial kept in a file, hopeless ones stopped early, and nothing lost when the process is killed.

# %%
import inspect
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import bonas
from bonas import plots
from bonas.study import Stop

bonas.configure()
folder = Path(tempfile.mkdtemp())  # for the files of this notebook

# %% [markdown]
# ## The loop
#
# One hidden layer, softmax, stochastic gradients with or without momentum: plain NumPy, as one might have it lying around. Two
# things were added for the search. It takes a dict of settings, and after each epoch it **reports** the validation error and
# asks whether it **should stop**.


# %%
def train(config, trial):
    draw = np.random.default_rng(0)
    images, digits = load_digits(return_X_y=True)
    order = draw.permutation(len(images))
    x, y = images[order] / 16.0, np.eye(10)[digits[order]]
    x, valid_x, y, valid_y = x[:600], x[600:], y[:600], y[600:]

    sizes = ((64, config["width"]), (config["width"], 10))
    weights = [draw.normal(0.0, 1.0 / np.sqrt(n), (n, m)) for n, m in sizes]
    speed = [np.zeros_like(each) for each in weights]
    momentum = config.get("momentum", 0.0)  # there only where the optimiser has it
    for epoch in range(12):
        for rows in np.array_split(draw.permutation(len(x)), 20):
            hidden = np.tanh(x[rows] @ weights[0])
            scores = hidden @ weights[1]
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            error = (scores / scores.sum(axis=1, keepdims=True) - y[rows]) / len(rows)
            back = (error @ weights[1].T) * (1.0 - hidden**2)
            for i, gradient in enumerate((x[rows].T @ back, hidden.T @ error)):
                speed[i] = momentum * speed[i] - config["rate"] * gradient
                weights[i] += speed[i]
        said = np.tanh(valid_x @ weights[0]) @ weights[1]
        wrong = float(np.mean(said.argmax(axis=1) != valid_y.argmax(axis=1)))
        trial.report(epoch, wrong)
        if trial.should_stop():
            raise Stop  # what was reported last counts
    return wrong


space = bonas.Space(
    width=bonas.Int(2, 64, log=True),
    rate=bonas.Float(1e-3, 3.0, log=True),
    optimiser=bonas.Choice("plain", "momentum"),
    momentum=bonas.Float(0.5, 0.99, when={"optimiser": "momentum"}),
)

# %% [markdown]
# ## A study, and a kill
#
# `bonas.Study` is a search that lives in a file. To see what that is worth, we write the loop into a script, start it as a
# process of its own, and when a few trials are done we kill it the hard way, as a power cut would. The script need not repeat
# the space: it is in the file.

# %%
script = f"""
import bonas, numpy as np
from bonas.study import Stop
from sklearn.datasets import load_digits

{inspect.getsource(train)}

bonas.configure()
bonas.Study("runs.db").optimise(train, trials=24, progress=False)
"""
(folder / "search.py").write_text(script)
study = bonas.Study(folder / "runs.db", space, seed=0)

child = subprocess.Popen([sys.executable, "search.py"], cwd=folder)
while child.poll() is None and len(study.trials) < 9:
    time.sleep(0.02)
child.kill()
child.wait()
study

# %% [markdown]
# ## Going on
#
# `trials` is how many the study shall have **in the end**, so going on is calling it again: from this process, or from the
# same script. A trial that was under way is evaluated anew.

# %%
study.optimise(train, trials=24, progress=False)
study

# %% [markdown]
# Did the kill change anything? Here is the same search without one. The points are the same to the last digit, since a study
# draws its random numbers from the seed and the number of the trial, and keeps what its model had learned.

# %%
whole = bonas.Study(folder / "whole.db", space, seed=0)
whole.optimise(train, trials=24, progress=False)
pairs = zip(study.trials, whole.trials, strict=True)
same = [(a.config, a.value) == (b.config, b.value) for a, b in pairs]
print(f"{sum(same)} of {len(same)} trials are the same")

# %% [markdown]
# ## What came of it

# %%
best = study.best
print(f"best: trial {best.number}, error {best.value:.3f}, {best.config}")
shown = ["value", "width", "rate", "optimiser", "momentum"]
study.frame().sort_values("value")[shown].head().round(4)

# %%
figure, ax = plt.subplots(layout="constrained")
stopped = [trial for trial in study.trials if "stopped" in trial.info]
looks = {
    "best": (plots.COLOURS[1], "", 2.5),
    "trained to the end": (plots.COLOURS[0], "", 1.0),
    "stopped": ("grey", "x", 1.0),
}
for trial in study.trials:
    kind = "stopped" if trial in stopped else "trained to the end"
    colour, marker, width = looks["best" if trial == best else kind]
    steps, errors = np.array(trial.reports).T
    look = {"color": colour, "marker": marker, "markevery": [-1], "linewidth": width}
    ax.plot(steps + 1, errors, **look)
for kind, (colour, marker, width) in looks.items():
    ax.plot([], [], color=colour, marker=marker, linewidth=width, label=kind)
ax.set(xlabel="epochs", ylabel="validation error", yscale="log")
ax.legend(frameon=False)
plt.show()

epochs = sum(len(trial.reports) for trial in study.trials)
every = 12 * len(study.trials)
print(f"{len(stopped)} of {len(study.trials)} trials were stopped:", end=" ")
print(f"{epochs} epochs in place of {every}")

# %% [markdown]
# A trial is stopped where its best report so far is worse than the median of what the others had reported by the same epoch.
# Which settings decide most, by a Gaussian process fitted to all trials?

# %%
for name, share in study.importance().items():
    print(f"{name:10} {share:.0%}")

# %% [markdown]
# `bonas report runs.db` makes one HTML file of all this, and `bonas.export.optuna` a file for Optuna's dashboard.
#
# ## In PyTorch it looks the same
#
# The objective is any Python function, so nothing of the above changes but its inside:
#
# ```python
# def train(config, trial):
#     torch.manual_seed(0)
#     width, momentum = config["width"], config.get("momentum", 0.0)
#     layers = torch.nn.Linear(64, width), torch.nn.Tanh(), torch.nn.Linear(width, 10)
#     network = torch.nn.Sequential(*layers)
#     optimiser = torch.optim.SGD(network.parameters(), config["rate"], momentum=momentum)
#     for epoch in range(12):
#         for x, y in train_loader:
#             optimiser.zero_grad()
#             torch.nn.functional.cross_entropy(network(x), y).backward()
#             optimiser.step()
#         wrong = validation_error(network)
#         trial.report(epoch, wrong)
#         if trial.should_stop():
#             raise Stop
#     return wrong
#
#
# bonas.Study("runs.db", space).optimise(train, trials=100)
# ```
#
# - **Out of memory?** What raises is a failed trial, with its reason and traceback in the file; the search takes its point
#   for a bad one and goes on.
# - **Several at once?** `optimise(train, workers=4)` for processes, `executor=` for a Dask cluster.
# - **Too slow?** `trial_seconds=600` ends a trial that takes longer.
# - **Somebody else runs the trainings?** `trial = study.ask()`, and later `study.tell(trial, value)`.
