"""Whole searches as pure functions of a key: one run, or many at once."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, PartitionSpec

from bonas.search.door import check_key, check_search
from bonas.search.types import History, Search, Trial

Objective = Callable[[Array, Array], Array]
_PARTS = 20  # calls that the progress of many runs is shown in


def run(search: Search, objective: Objective, key: Array, steps: int) -> History:
    """A whole search of `steps` evaluations, the initial ones included: a pure, jittable function of its key.

    objective(key, u (d,)) -> value must be traceable; a NaN or an infinite value is a failed evaluation. It may return
    (value, cost) instead, for acquisitions that weigh the cost.
    """
    check_search(search)
    check_key(key)
    init_key, run_key = jax.random.split(key)

    def step(state, i):
        ask_key, eval_key = jax.random.split(jax.random.fold_in(run_key, i))
        x, state, info = search.ask(ask_key, state)
        if len(x) != 1:
            raise ValueError(f"run evaluates one point at a time; this search asks for {len(x)}")
        outcome = objective(eval_key, x[0])
        y, cost = (jnp.asarray(part, x.dtype) for part in (outcome if isinstance(outcome, tuple) else (outcome, 1.0)))
        if y.shape != () or cost.shape != ():
            raise ValueError(f"an objective returns one number, or a value and its cost; got shapes {y.shape} and {cost.shape}")
        trial = Trial(x=x[0], y=y, step=jnp.asarray(0), cost=cost, ok=jnp.isfinite(y))
        return search.tell(state, trial), (x[0], y, info)

    state, (x, y, info) = jax.lax.scan(step, search.init(init_key, steps), jnp.arange(steps))
    return History(x=x, y=y, best=jax.lax.cummin(jnp.where(jnp.isfinite(y), y, jnp.inf)), info=info, state=state)


def run_many(search: Search, objective: Objective, keys: Array, steps: int, *, progress: bool = False) -> History:
    """One run a key, leaves (len(keys), ...), compiled once.

    Keys are shared out over all devices; each CPU device runs its own in turn, an accelerator all at once. With progress
    the keys go in some twenty parts, and a bar shows how far they are.
    """
    check_search(search)
    check_key(keys)
    if keys.ndim != 1 or not keys.size:
        raise ValueError(f"expected keys of shape (k,), as jax.random.split(key, k) gives them; got {keys.shape}")
    devices, n = jax.devices(), len(keys)
    size = -(-n // _PARTS) if progress else n
    size = -(-size // len(devices)) * len(devices) if n > 1 else 1
    mesh = Mesh(np.array(devices[: min(size, len(devices))]), ("seeds",))
    # the last part is filled up with copies of the last key, so that all have one shape
    padded = keys[jnp.minimum(jnp.arange(-(-n // size) * size), n - 1)].reshape(-1, size)
    several = partial(_part, search, objective, steps=steps, mesh=mesh)
    parts = [jax.block_until_ready(several(part)) for part in _shown(padded)] if progress else [several(padded[0])]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[:n] if len(parts) > 1 else leaves[0][:n], *parts)


@partial(jax.jit, static_argnames=("objective", "steps", "mesh"))
def _part(search: Search, objective: Objective, keys: Array, steps: int, mesh: Mesh) -> History:
    def several(keys):
        each = partial(run, search, objective, steps=steps)
        on_cpu = mesh.devices.flat[0].platform == "cpu"
        return jax.lax.map(each, keys) if on_cpu else jax.vmap(each)(keys)

    if mesh.size == 1:
        return several(keys)
    spec = PartitionSpec("seeds")
    return jax.shard_map(several, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)(keys)


def _shown(parts: Array):
    """The parts, with a bar that moves as they are done."""
    from rich.progress import track

    yield from track(list(parts), description="runs")
