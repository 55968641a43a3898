# %% [markdown]
# # What a Bayesian network believes
#
# After this notebook you can ask a network not only what it predicts but how sure it is, check whether the answer can be
# trusted, and find out how many of its units it really uses.

# %%
import arviz
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import bonas
from bonas import infer, nets, plots
from bonas.nets import bnn_hmc, bnn_vi, mlp, pruning
from bonas.problems import datasets, synthetic

bonas.configure()

# %% [markdown]
# ## The posterior
#
# A Bayesian network has a prior over its weights, and data turn it into a posterior: not one network, but all that could have
# made the data, each as often as it deserves. Hamiltonian Monte Carlo walks among them. Here they are networks of two layers
# of twenty tanh units, and the data are twenty noisy values of a wave. The precisions – how large weights are, layer by layer,
# and how noisy the data – are unknown too, and move along.

# %%
examples = synthetic.agrawal_sinusoid(jax.random.key(1))
data = bonas.dataset(np.asarray(examples.x, float), np.asarray(examples.y, float))
network = nets.BNN(
    inputs=1, widths=(20, 20), weight_prior=(5.0, 80.0), noise_prior=(10.0, 0.1)
)
line = jnp.linspace(-1.3, 1.3, 131)[:, None]


@jax.jit
def walk(key, data):
    """Four chains: the networks they met, what those say, what the chains did."""
    start_key, run_key = jax.random.split(key)
    start = bnn_hmc.begin(start_key, network, chains=4)  # each from a draw of the prior
    how = {"precisions": "joint", "output": "integrated", "target": 0.8}
    long = {"samples": 200, "burn": 400, "thin": 4}
    draws, _, info = bnn_hmc.sample(run_key, network, data, start, **long, **how)
    return draws, jax.vmap(said)(draws.weights), info


def said(weights):
    """What networks say along the line, a row each."""
    return bnn_hmc.outputs(network, weights, line)[:, :, 0]


draws, values, info = walk(jax.random.key(0), data)
before = said(bnn_hmc.prior(jax.random.key(1), network, 5).weights)
values.shape  # chains, networks, points of the line

# %%
figure, panels = plt.subplots(1, 3, figsize=(13, 3.8), sharex=True, layout="constrained")
mean, std = values.mean(axis=(0, 1)), values.std(axis=(0, 1))
twenty = values[:, ::40].reshape(-1, len(line))
truth, blue = synthetic.sinusoid(line[:, 0]), plots.COLOURS[0]
panels[0].plot(line, before.T, color="grey", linewidth=1)
panels[1].plot(line, twenty.T, color=blue, linewidth=0.5)
panels[2].fill_between(line[:, 0], mean - 2 * std, mean + 2 * std, color=blue, alpha=0.2)
panels[2].plot(line, mean, color=blue, label="mean ± 2 standard deviations")
panels[2].plot(line, truth, "--", color="black", linewidth=1, label="truth")
titles = ("five networks before", "twenty after the data", "all of them")
for ax, title in zip(panels, titles, strict=True):
    ax.set(title=title, xlabel="x")
for ax in panels[1:]:
    ax.plot(data.x, data.y, "o", color="black", markersize=4)
    ax.set_ylim(-5, 5)
panels[2].legend(frameon=False, loc="lower center")
plt.show()

# %% [markdown]
# They agree where there are data, and each goes its own way where there are none. That is the whole point: doubt where doubt
# is due, without being told. How much of the true wave, between the outermost points, is within the band?

# %%
inside = (line[:, 0] > data.x.min()) & (line[:, 0] < data.x.max())
covered = np.abs(mean - truth) <= 2 * std
print(f"{np.mean(covered[inside]):.0%}")

# %% [markdown]
# ## Can it be trusted?
#
# Only if the chains have mixed. Two numbers tell: R-hat, near 1 when chains that began in different places have come to the
# same answer, and the effective sample size, how many independent draws the dependent ones are worth. Look at **functions**
# rather than weights: swap two units, and the weights are others while the network is the same.

# %%
worst, size = np.max(infer.r_hat(values)), infer.effective_sample_size(values)
print(f"R-hat of what networks say along the line: {worst:.3f} at worst")
print(
    f"{values[:, :, 0].size} networks are worth {np.median(size):.0f} independent ones",
    end=" ",
)
print(f"in the median over the line, {np.min(size):.0f} at worst")

# %% [markdown]
# A usual bound for R-hat is 1.01: functions are about there. Everything else is one call from ArviZ and its tables and
# figures, here of the precisions:

# %%
logs = jax.tree.map(jnp.log, draws.precisions)
chains = {"log_noise_precision": logs.noise, "log_weight_precision": logs.weights}
posterior = infer.to_arviz(chains, info)
arviz.summary(posterior, kind="diagnostics", round_to=2)

# %%
arviz.plot_trace(posterior, ["log_noise_precision"], figsize=(10, 2.6), legend=True)
plt.show()

# %% [markdown]
# Precisions mix more slowly than functions do. An R-hat of 1.05 or 1.10 is **too high**: the chains do not agree yet on how
# large the weights of a layer are, and the least effective sizes, a few dozen draws, say the same. What networks say along the
# line may be used. For a statement about the precisions themselves, take several times as many draws (`samples=`, `thin=`).
#
# ## How many units does it use?
#
# A cheaper way to a posterior gives each weight a mean and a deviation of its own and trains those: a variational network. It
# has a remarkable habit. A unit that is of no use is sent back to the prior, where it costs nothing. So a network that is too
# wide tells you how wide it should have been. Fifty units for the progress of diabetes in a few hundred patients:

# %%
split = datasets.split(datasets.load("diabetes"), seed=0)
train, validation = split.train, split.validation
patients = nets.examples(train.x, train.y, validation.x, validation.y)
shape = nets.Shape(inputs=10, outputs=1, depth=1, width=50, activations=("relu",))
architecture, traits = (
    nets.architecture(shape, [50], "relu"),
    nets.Traits(learning_rate=0.01),
)
recipe = nets.VI(samples=1)
course = nets.Course(checkpoints=tuple(range(500, 6001, 500)), draws=20)
key = jax.random.key(0)
fit = jax.jit(nets.train_vi)
q, scores = fit(key, shape, recipe, course, architecture, traits, patients)

mask = mlp.masks(key, shape, architecture)
divergence = pruning.unit_divergence(recipe, q, mask, jnp.asarray(1.0, jnp.float32))[0]
kept = pruning.active(divergence[None, :])

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
orange = plots.COLOURS[1]
left.hist(np.log10(np.asarray(divergence)), bins=30, color=blue)
threshold = np.log10(pruning.THRESHOLDS[0])
left.axvline(threshold, color=orange, label="in use to the right of this")
left.set(xlabel="divergence from the prior, log10 of nats a weight", ylabel="units")
left.legend(frameon=False)
right.plot(course.checkpoints, scores.active[:, 0], "o-", color=blue, markersize=4)
right.set(xlabel="updates", ylabel="units in use", ylim=(0, None))
error = right.twinx()
error.plot(course.checkpoints, scores.valid.rmse, "s--", color=orange, markersize=4)
error.set_ylabel("validation error (rmse)", color=orange)
plt.show()

# %% [markdown]
# Most units are next to the prior, some are on their way there, and very few are far from it. The threshold is Hutchinson's: a
# convention, not a gap. The network got better as it let go of units. Is it right to call those to the left idle? Take them
# out, and compare:

# %%
small, small_mask = pruning.prune(shape, q, mask, kept)


def rmse(q, mask):
    """Of the mean over 200 draws, on patients that training has not seen."""
    key, x = jax.random.key(1), patients.valid_x
    drawn = bnn_vi.sample_outputs(key, shape, q, mask, architecture, x, 200)
    return float(jnp.sqrt(jnp.mean((drawn.mean(axis=0) - patients.valid_y) ** 2)))


for units, trained, there in ((50, q, mask), (int(kept.sum()), small, small_mask)):
    weights = sum(int(leaf.sum()) for leaf in jax.tree.leaves(there))
    print(f"{units:2} units, {weights:3} weights: error {rmse(trained, there):.4f}")

# %% [markdown]
# **Where next.** Both kinds of network can be the model of a search: `surrogates.hmc_network()` and
# `surrogates.variational_network()` go where [a kernel](02_your_own_kernel.ipynb) goes. The width at which units begin
# to idle is a fine hint for the bounds of a [space](04_unknown_depth.ipynb).
