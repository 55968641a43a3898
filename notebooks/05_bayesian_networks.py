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
network = nets.BNN(inputs=1, widths=(20, 20), weight_prior=(5.0, 80.0), noise_prior=(10.0, 0.1))
line = jnp.linspace(-1.3, 1.3, 131)[:, None]


@jax.jit
def walk(key, data):
    """Four chains: the networks they met, what those say along the line, and what the chains did."""
    start_key, run_key = jax.random.split(key)
    start = bnn_hmc.begin(start_key, network, chains=4)  # each from a draw of the prior
    how = {"precisions": "joint", "output": "integrated", "target": 0.8}
    draws, _, info = bnn_hmc.sample(run_key, network, data, start, samples=200, burn=400, thin=4, **how)
    return draws, jax.vmap(lambda some: bnn_hmc.outputs(network, some, line)[:, :, 0])(draws.weights), info


draws, values, info = walk(jax.random.key(0), data)
before = bnn_hmc.outputs(network, bnn_hmc.prior(jax.random.key(1), network, 5).weights, line)[:, :, 0]
values.shape  # chains, networks, points of the line

# %%
figure, panels = plt.subplots(1, 3, figsize=(13, 3.8), sharex=True, layout="constrained")
mean, std = values.mean(axis=(0, 1)), values.std(axis=(0, 1))
panels[0].plot(line, before.T, color="grey", linewidth=1)
panels[1].plot(line, values[:, ::40].reshape(-1, len(line)).T, color=plots.COLOURS[0], linewidth=0.5)
panels[2].fill_between(line[:, 0], mean - 2 * std, mean + 2 * std, color=plots.COLOURS[0], alpha=0.2, linewidth=0)
panels[2].plot(line, mean, color=plots.COLOURS[0], label="mean ± 2 standard deviations")
panels[2].plot(line, synthetic.sinusoid(line[:, 0]), "--", color="black", linewidth=1, label="truth")
for ax, title in zip(panels, ("five networks before", "twenty after the data", "all of them"), strict=True):
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
covered = np.abs(mean - synthetic.sinusoid(line[:, 0])) <= 2 * std
print(f"{np.mean(covered[inside]):.0%}")

# %% [markdown]
# ## Can it be trusted?
#
# Only if the chains have mixed. Two numbers tell: R-hat, near 1 when chains that began in different places have come to the
# same answer, and the effective sample size, how many independent draws the dependent ones are worth. Look at **functions**
# rather than weights: swap two units, and the weights are others while the network is the same.

# %%
print(f"R-hat of what networks say along the line: {np.max(infer.r_hat(values)):.3f} at worst")
size = infer.effective_sample_size(values)
print(
    f"{values.shape[0] * values.shape[1]} networks are worth {np.median(size):.0f} in the median, {np.min(size):.0f} at worst"
)

# %% [markdown]
# Everything else is one call from ArviZ and its tables and figures. The precisions mix more slowly than functions do, and it
# is good to know:

# %%
chains = {"log_noise_precision": jnp.log(draws.precisions.noise), "log_weight_precision": jnp.log(draws.precisions.weights)}
posterior = infer.to_arviz(chains, info)
arviz.summary(posterior, kind="diagnostics", round_to=2)

# %%
axes = arviz.plot_trace(posterior, var_names=["log_noise_precision"], figsize=(10, 2.6), legend=True)
plt.show()

# %% [markdown]
# ## How many units does it use?
#
# A cheaper way to a posterior gives each weight a mean and a deviation of its own and trains those: a variational network. It
# has a remarkable habit. A unit that is of no use is sent back to the prior, where it costs nothing. So a network that is too
# wide tells you how wide it should have been. Fifty units for the progress of diabetes in a few hundred patients:

# %%
split = datasets.split(datasets.load("diabetes"), seed=0)
patients = nets.examples(split.train.x, split.train.y, split.validation.x, split.validation.y)
shape = nets.Shape(inputs=patients.x.shape[1], outputs=1, depth=1, width=50, activations=("relu",))
architecture = nets.architecture(shape, [50], "relu")
recipe, course = nets.VI(samples=1), nets.Course(checkpoints=tuple(range(500, 6001, 500)), draws=20)
q, scores = jax.jit(nets.train_vi)(
    jax.random.key(0), shape, recipe, course, architecture, nets.Traits(learning_rate=0.01), patients
)

mask = mlp.masks(jax.random.key(0), shape, architecture)
divergence = pruning.unit_divergence(recipe, q, mask, jnp.asarray(1.0, jnp.float32))[0]
kept = pruning.active(divergence[None, :])

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
left.hist(np.log10(np.asarray(divergence)), bins=30, color=plots.COLOURS[0])
left.axvline(np.log10(pruning.THRESHOLDS[0]), color=plots.COLOURS[1], label="in use to the right of this")
left.set(xlabel="divergence from the prior, log10 of nats a weight", ylabel="units")
left.legend(frameon=False)
right.plot(course.checkpoints, scores.active[:, 0], "o-", color=plots.COLOURS[0], markersize=4)
right.set(xlabel="updates", ylabel="units in use", ylim=(0, None))
error = right.twinx()
error.plot(course.checkpoints, scores.valid.rmse, "s--", color=plots.COLOURS[1], markersize=4)
error.set_ylabel("validation error (rmse)", color=plots.COLOURS[1])
plt.show()

# %% [markdown]
# Units form two groups with nothing in between, and the network gets better as it lets go of them. Take the idle ones out, and
# it says the same:

# %%
small, small_mask = pruning.prune(shape, q, mask, kept)


def rmse(q, mask):
    """Of the mean over 200 draws, on patients that training has not seen."""
    said = bnn_vi.sample_outputs(jax.random.key(1), shape, q, mask, architecture, patients.valid_x, 200).mean(axis=0)
    return float(jnp.sqrt(jnp.mean((said - patients.valid_y) ** 2)))


weights = [sum(int(leaf.sum()) for leaf in jax.tree.leaves(some)) for some in (mask, small_mask)]
print(f"50 units, {weights[0]} weights: error {rmse(q, mask):.4f}")
print(f"{int(kept.sum())} units, {weights[1]} weights: error {rmse(small, small_mask):.4f}")

# %% [markdown]
# **Where next.** Both kinds of network can be the model of a search: `surrogates.hmc_network()` and
# `surrogates.variational_network()` go where [a kernel](02_your_own_kernel.ipynb) goes. The width at which units begin
# to idle is a fine hint for the bounds of a [space](04_unknown_depth.ipynb).
