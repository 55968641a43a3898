# %% [markdown]
# # Tune your own training loop
#
# After this notebook you can put bonas around your own training loop (NumPy here, PyTorch works
# the same way), with every trial stored in a file, poor trials pruned early, and nothing lost if
# the process is killed.

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
from bonas.study import Pruned

bonas.configure()
folder = Path(tempfile.mkdtemp())  # for this notebook's files

# %% [markdown]
# ## The loop
#
# The loop is plain NumPy: one hidden layer, softmax, stochastic gradients with or without
# momentum. Two things were added for the search: it takes a dict of settings, and after each
# epoch it **reports** the validation error and asks whether it **should be pruned**.


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
    momentum = config.get("momentum", 0.0)  # only active with momentum
    wrong = 1.0
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
        outputs = np.tanh(valid_x @ weights[0]) @ weights[1]
        wrong = float(np.mean(outputs.argmax(axis=1) != valid_y.argmax(axis=1)))
        trial.report(epoch, wrong)
        if trial.should_prune():
            raise Pruned  # the last report is the value of the trial
    return wrong


space = bonas.Space(
    width=bonas.Int(2, 64, log=True),
    rate=bonas.Float(1e-3, 3.0, log=True),
    optimizer=bonas.Choice("plain", "momentum"),
    momentum=bonas.Float(0.5, 0.99, when={"optimizer": "momentum"}),
)

# %% [markdown]
# ## A study, and a kill
#
# `bonas.Study` is a search that is stored in a file. To show what that is worth, we write the
# loop to a script, start it as a separate process, and kill it after a few trials. The script
# does not need to repeat the space, which is in the file.

# %%
script = f"""
import bonas, numpy as np
from bonas.study import Pruned
from sklearn.datasets import load_digits

{inspect.getsource(train)}

bonas.configure()
bonas.Study("runs.db").optimize(train, trials=24, progress=False)
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
# ## Resume
#
# `trials` is the **total** number of trials, so resuming means calling `optimize` again, from
# this process or from the same script. The trial that was interrupted is evaluated again.

# %%
study.optimize(train, trials=24, progress=False)
study

# %% [markdown]
# Did the kill change anything? Here is the same search without one. The points are identical,
# because a study derives its random numbers from the seed and the number of the trial, and stores
# the state of its model.

# %%
whole = bonas.Study(folder / "whole.db", space, seed=0)
whole.optimize(train, trials=24, progress=False)
pairs = zip(study.trials, whole.trials, strict=True)
same = [(a.config, a.value) == (b.config, b.value) for a, b in pairs]
print(f"{sum(same)} of {len(same)} trials are the same")

# %% [markdown]
# ## Results

# %%
best = study.best
assert best is not None  # some trial has a value
print(f"best: trial {best.number}, error {best.value:.3f}, {best.config}")
shown = ["value", "width", "rate", "optimizer", "momentum"]
study.frame().sort_values("value")[shown].head().round(4)

# %%
figure, ax = plt.subplots(layout="constrained")
pruned = [trial for trial in study.trials if trial.state == "pruned"]
looks = {
    "best": (plots.COLORS[1], "", 2.5),
    "trained to the end": (plots.COLORS[0], "", 1.0),
    "pruned": ("gray", "x", 1.0),
}
for trial in study.trials:
    kind = "pruned" if trial in pruned else "trained to the end"
    color, marker, width = looks["best" if trial == best else kind]
    steps, errors = np.array(trial.reports).T
    ax.plot(
        steps + 1, errors, color=color, marker=marker, markevery=[-1], linewidth=width
    )
for kind, (color, marker, width) in looks.items():
    ax.plot([], [], color=color, marker=marker, linewidth=width, label=kind)
ax.set(xlabel="epochs", ylabel="validation error", yscale="log")
ax.legend(frameon=False)
plt.show()

epochs = sum(len(trial.reports) for trial in study.trials)
every = 12 * len(study.trials)
print(f"{len(pruned)} of {len(study.trials)} trials were pruned:", end=" ")
print(f"{epochs} epochs instead of {every}")

# %% [markdown]
# A trial is pruned if its best report so far is worse than the median of the other trials at the
# same epoch. Which settings matter most, according to a Gaussian process fitted to all trials?

# %%
for name, share in study.importance().items():
    print(f"{name:10} {share:.0%}")

# %% [markdown]
# `bonas report runs.db` writes one HTML page about the study, and `bonas.interchange.to_optuna` a
# file for Optuna's dashboard.
#
# ## In PyTorch
#
# The objective is any Python function, so only its body changes:
#
# ```python
# def train(config, trial):
#     torch.manual_seed(0)
#     width, momentum = config["width"], config.get("momentum", 0.0)
#     layers = torch.nn.Linear(64, width), torch.nn.Tanh(), torch.nn.Linear(width, 10)
#     network = torch.nn.Sequential(*layers)
#     optimizer = torch.optim.SGD(network.parameters(), config["rate"], momentum=momentum)
#     for epoch in range(12):
#         for x, y in train_loader:
#             optimizer.zero_grad()
#             torch.nn.functional.cross_entropy(network(x), y).backward()
#             optimizer.step()
#         error = validation_error(network)
#         trial.report(epoch, error)
#         if trial.should_prune():
#             raise Pruned
#     return error
#
#
# bonas.Study("runs.db", space).optimize(train, trials=100)
# ```
#
# - **Errors.** An objective that raises makes a failed trial, with its reason and traceback in
#   the file; the search continues and treats the point as a bad one.
# - **Parallel evaluation.** Use `optimize(train, workers=4)` for processes, `executor=` for a
#   Dask cluster.
# - **Time limits.** `trial_seconds=600` ends a trial that takes longer.
# - **Other schedulers.** Call `trial = study.ask()`, and later `study.tell(trial, value)`.
