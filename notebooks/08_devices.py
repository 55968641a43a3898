# %% [markdown]
# # GPU, TPU and many devices
#
# After this notebook you can run the searches of the other notebooks on any device that JAX
# supports, on several devices at once, and export a whole compiled search to another machine.
#
# The code does **not** change: JAX uses the fastest device that it finds. Here one processor is
# presented as eight virtual devices.

# %%
import jax

# Must come before any computation; omit it with real devices.
jax.config.update("jax_num_cpu_devices", 8)

import jax.export
import jax.numpy as jnp
import numpy as np

import bonas
from bonas.problems import functions

bonas.configure()
jax.devices()

# %% [markdown]
# ## Many seeds on many devices
#
# `run_many` distributes its keys over all devices. Seeds are independent, so the devices do not
# communicate. (Virtual devices share the cores of one processor, so this is not faster here.)

# %%
problem = functions.branin
search = bonas.bayes(problem.space)
keys = jax.random.split(jax.random.key(0), 32)
histories = bonas.run_many(search, problem.objective, keys, steps=15)
jax.debug.visualize_array_sharding(histories.best)

# %% [markdown]
# The array of best values, 32 seeds by 15 evaluations, is stored in eight pieces, one per device.
# It can be used like any other array:

# %%
regret = jnp.median(histories.best[:, -1]) - problem.optimum
print(f"median regret of {len(keys)} searches: {regret:.4f}")

# %% [markdown]
# Up to rounding, the result of a seed does not depend on the device. The first seed on a single
# device:

# %%
alone = jax.jit(lambda key: bonas.run(search, problem.objective, key, 15).best)(keys[0])
difference = np.abs(np.asarray(alone) - np.asarray(histories.best[0]))
print(f"largest difference: {difference.max()}")

# %% [markdown]
# On accelerators the seeds of one device run in parallel (`vmap`); on a CPU they run one after
# the other. Loops inside a search have a fixed length, so that seeds do not wait for each other.
#
# ## Export to another device
#
# A whole search is one program. It can be lowered for GPUs and TPUs without having one: the
# result is StableHLO, which a machine with such a device compiles and runs without the source
# code.


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
# `exported.serialize()` returns the contents of a file; on the other machine,
# `jax.export.deserialize(contents).call(seed)` runs the search.

# %% [markdown]
# ## Good to know
#
# - **Precision.** `bonas.configure()` selects float64, which Gaussian processes need. Most GPUs
#   compute it slowly, and TPUs emulate it. `bonas.configure(x64=False)` selects float32, and the
#   jitter is scaled accordingly.
# - **What to run on an accelerator.** Training many networks (`nets.train_many`), many seeds, and
#   networks as surrogates. A single search with forty values is small; a CPU is as fast.
# - **Several machines.** Use a [study](07_your_training_loop.ipynb) with `executor=`: the search
#   runs here, the training elsewhere.
# - **Not tested.** The programs for CUDA and TPU are lowered here but have not been run on such
#   devices.
