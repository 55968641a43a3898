# %% [markdown]
# # On GPU, TPU and many devices: what changes
#
# After this notebook you can run the searches of the others on any device that JAX knows, on several at once, and send a
# whole search, compiled, to a machine that has never seen your code.
#
# What changes in the code? **Nothing.** JAX takes the fastest device that it finds. What there is to see, we show on this
# machine: its processor plays eight devices.

# %%
import jax

# Before anything is computed; with real devices, leave it out.
jax.config.update("jax_num_cpu_devices", 8)

import jax.export
import jax.numpy as jnp
import numpy as np

import bonas
from bonas.problems import functions

bonas.configure()
jax.devices()

# %% [markdown]
# ## Many seeds, many devices
#
# `run_many` shares its keys out over all devices. No seed needs another, so nothing is sent between them and none waits.
# (Virtual ones share the cores of one processor, so there is no time to be won here.)

# %%
problem = functions.branin
search = bonas.bayes(problem.space)
keys = jax.random.split(jax.random.key(0), 32)
histories = bonas.run_many(search, problem.objective, keys, steps=15)
jax.debug.visualize_array_sharding(histories.best)

# %% [markdown]
# The array of best values, 32 seeds by 15 evaluations, lies in eight pieces, one on each device, four seeds to a piece. It is
# an ordinary array to whoever uses it:

# %%
regret = jnp.median(histories.best[:, -1]) - problem.optimum
print(f"median regret of {len(keys)} searches: {regret:.4f}")

# %% [markdown]
# Up to rounding, a seed does not depend on where it runs. The first one alone, on one device:

# %%
alone = jax.jit(lambda key: bonas.run(search, problem.objective, key, 15).best)(keys[0])
difference = np.abs(np.asarray(alone) - np.asarray(histories.best[0]))
print(f"largest difference: {difference.max()}")

# %% [markdown]
# On accelerators the seeds of a device run side by side (`vmap`) instead of one after the other, as arithmetic is plentiful
# there. Loops inside a search have a fixed length, so that none waits for another.
#
# ## For a device that is not here
#
# A whole search is one program. It can be lowered for NVIDIA's GPUs and for TPUs without either of them: what comes out is
# StableHLO, which a machine with such a device compiles and runs, without the source of the search or of its objective.

# %%


@jax.jit
def program(seed):
    key = jax.random.wrap_key_data(seed)
    return bonas.run(search, problem.objective, key, 15).best


seed = jax.ShapeDtypeStruct((2,), jnp.uint32)
exported = jax.export.export(program, platforms=["cuda", "tpu"])(seed)
megabytes = len(exported.mlir_module_serialized) / 1e6
print(f"for {' and '.join(exported.platforms)}, {megabytes:.1f} MB:", end=" ")
print(f"{exported.in_avals[0]} -> {exported.out_avals[0]}")

# %% [markdown]
# `exported.serialize()` gives the contents of a file, and over there
# `jax.export.deserialize(contents).call(seed)` is the search.

# %% [markdown]
# ## What to know
#
# - **Precision.** `bonas.configure()` asks for float64, in which Gaussian processes are at home. GPUs have it, most of them
#   slowly; TPUs imitate it. `bonas.configure(x64=False)` computes in float32, and jitter scales with it.
# - **What belongs on an accelerator.** Training many networks (`nets.train_many`), many seeds, networks as surrogates. A single
#   search on forty values is small: a processor is as good.
# - **Several processes.** For trainings on many machines take a [study](07_your_training_loop.ipynb) with `executor=`: the
#   search stays here, and the work goes where the devices are.
# - **Not tried.** Programs for CUDA and TPU are lowered here, and nothing more: this notebook has seen none of the two.
