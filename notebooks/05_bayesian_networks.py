# %% [markdown]
# # Bayesian networks
#
# After this notebook you can ask a network for its prediction and its uncertainty, check whether
# the uncertainty can be trusted, and find out how many units the network uses.

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
# A Bayesian network has a prior over its weights, which data turn into a posterior over networks.
# Hamiltonian Monte Carlo samples from it. Here the networks have two layers of twenty tanh units,
# and the data are twenty noisy values of a wave. The precisions of the weights of each layer and
# of the noise are unknown too and are sampled jointly.

# %%
examples = synthetic.agrawal_sinusoid(jax.random.key(1))
data = bonas.dataset(np.asarray(examples.x, float), np.asarray(examples.y, float))
network = nets.BNN(
    inputs=1, widths=(20, 20), weight_prior=(5.0, 80.0), noise_prior=(10.0, 0.1)
)
line = jnp.linspace(-1.3, 1.3, 131)[:, None]


@jax.jit
def sample_posterior(key, data):
    """Run four chains; return the networks, their outputs and the diagnostics."""
    start_key, run_key = jax.random.split(key)
    # Each chain starts at a draw from the prior.
    start = bnn_hmc.init_chains(start_key, network, chains=4)
    draws, _, info = bnn_hmc.sample(
        run_key,
        network,
        data,
        start,
        samples=200,
        burn=400,
        thin=4,
        precisions="joint",
        output="integrated",
        target=0.8,
    )
    return draws, jax.vmap(outputs)(draws.weights), info


def outputs(weights):
    """Return the outputs of the networks along the line, one row per network."""
    return bnn_hmc.outputs(network, weights, line)[:, :, 0]


draws, values, info = sample_posterior(jax.random.key(0), data)
before = outputs(bnn_hmc.prior(jax.random.key(1), network, 5).weights)
values.shape  # chains, networks, points of the line

# %%
figure, panels = plt.subplots(1, 3, figsize=(13, 3.8), sharex=True, layout="constrained")
mean, std = values.mean(axis=(0, 1)), values.std(axis=(0, 1))
twenty = values[:, ::40].reshape(-1, len(line))
truth, blue = synthetic.sinusoid(line[:, 0]), plots.COLORS[0]
panels[0].plot(line, before.T, color="gray", linewidth=1)
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
# The networks agree near the data and disagree elsewhere: the uncertainty grows where there are
# no data. How much of the true function, between the outermost points, is within the band?

# %%
inside = (line[:, 0] > data.x.min()) & (line[:, 0] < data.x.max())
covered = np.abs(mean - truth) <= 2 * std
print(f"{np.mean(covered[inside]):.0%}")

# %% [markdown]
# ## Can the uncertainty be trusted?
#
# Only if the chains have mixed. Two diagnostics help: R-hat is near 1 if chains from different
# starting points agree, and the effective sample size is the number of independent draws that the
# dependent ones are worth. Compute them for **function values** rather than weights: exchanging
# two units changes the weights but not the network.

# %%
worst, size = np.max(infer.r_hat(values)), infer.effective_sample_size(values)
print(f"largest R-hat of the outputs along the line: {worst:.3f}")
print(
    f"{values[:, :, 0].size} networks are worth {np.median(size):.0f} independent ones",
    end=" ",
)
print(f"in the median over the line, {np.min(size):.0f} at worst")

# %% [markdown]
# A common threshold for R-hat is 1.01, and the function values are near it. ArviZ computes
# further diagnostics, here for the precisions:

# %%
logs = jax.tree.map(jnp.log, draws.precisions)
chains = {"log_noise_precision": logs.noise, "log_weight_precision": logs.weights}
posterior = infer.to_arviz(chains, info)
arviz.summary(posterior, kind="diagnostics", round_to=2)

# %%
arviz.plot_trace(posterior, ["log_noise_precision"], figsize=(10, 2.6), legend=True)
plt.show()

# %% [markdown]
# Precisions mix more slowly than function values. An R-hat of 1.05 or 1.10 is **too high**: the
# chains do not yet agree on the size of the weights, and the smallest effective sample sizes are
# only a few dozen. The function values can be used. For statements about the precisions, draw
# several times as many samples (`samples=`, `thin=`).
#
# ## How many units does it use?
#
# A variational network is a cheaper approximation: each weight has a mean and a standard
# deviation, which are trained. Units that do not help return to the prior, where they cost
# nothing. So a network that is too wide shows how wide it needs to be. Here are fifty units for
# the progression of diabetes in a few hundred patients:

# %%
split = datasets.split(datasets.load("diabetes"), seed=0)
train, validation = split.train, split.validation
patients = nets.examples(train.x, train.y, validation.x, validation.y)
shape = nets.Shape(inputs=10, outputs=1, depth=1, width=50, activations=("relu",))
architecture = nets.architecture(shape, [50], "relu")
hyper = nets.VIHyperparameters(learning_rate=0.01)
vi = nets.VI(samples=1)
plan = nets.TrainingPlan(checkpoints=tuple(range(500, 6001, 500)), draws=20)
key = jax.random.key(0)
fit = jax.jit(nets.train_vi)
q, scores = fit(key, shape, vi, plan, architecture, hyper, patients)

mask = mlp.masks(key, shape, architecture)
divergence = pruning.unit_divergence(vi, q, mask, jnp.asarray(1.0, jnp.float32))[0]
kept = pruning.active(divergence[None, :])

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
orange = plots.COLORS[1]
left.hist(np.log10(np.asarray(divergence)), bins=30, color=blue)
threshold = np.log10(pruning.THRESHOLDS[0])
left.axvline(threshold, color=orange, label="used units are to the right")
left.set(xlabel="divergence from the prior, log10 of nats per weight", ylabel="units")
left.legend(frameon=False)
right.plot(plan.checkpoints, scores.active[:, 0], "o-", color=blue, markersize=4)
right.set(xlabel="updates", ylabel="units used", ylim=(0, None))
error = right.twinx()
error.plot(plan.checkpoints, scores.valid.rmse, "s--", color=orange, markersize=4)
error.set_ylabel("validation error (rmse)", color=orange)
plt.show()

# %% [markdown]
# Most units are close to the prior, some are on their way, and very few are far from it. The
# threshold is Hutchinson's convention, not a gap in the distribution. The network improved as it
# switched units off. Are the units on the left really unused? Remove them and compare:

# %%
small, small_mask = pruning.prune(shape, q, mask, kept)


def rmse(q, mask):
    """Return the validation error of the mean over 200 draws."""
    key, x = jax.random.key(1), jnp.asarray(patients.valid_x)
    valid_y = jnp.asarray(patients.valid_y)
    drawn = bnn_vi.sample_outputs(key, shape, q, mask, architecture, x, 200)
    return float(jnp.sqrt(jnp.mean((drawn.mean(axis=0) - valid_y) ** 2)))


for units, trained, mask_of in ((50, q, mask), (int(kept.sum()), small, small_mask)):
    weights = sum(int(leaf.sum()) for leaf in jax.tree.leaves(mask_of))
    print(f"{units:2} units, {weights:3} weights: error {rmse(trained, mask_of):.4f}")

# %% [markdown]
# **Next.** Both kinds of networks can be the model of a search: use `surrogates.hmc_network()` or
# `surrogates.variational_network()` in place of [a Gaussian process](02_your_own_kernel.ipynb).
# The number of used units is a good hint for the bounds of a [space](04_unknown_depth.ipynb).
