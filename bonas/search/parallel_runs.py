"""Run many searches at once on all devices."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array

from bonas.search.argument_types import Direction
from bonas.search.batches import Record
from bonas.search.checks import check_keys, check_search
from bonas.search.compiled_runs import ProgramCache
from bonas.search.history import History
from bonas.search.model_warnings import warn_about_model
from bonas.search.objectives import Objective, check_extra
from bonas.search.progress import progress_bar
from bonas.search.runs import run
from bonas.search.search import Search
from bonas.search.start_states import Known, read_known
from bonas.static_settings import check_counts

# The number of steps of the progress bar.
_PARTS = 20


def run_many(
    search: Search,
    objective: Objective,
    keys: Array,
    steps: int,
    *args: Any,
    direction: Direction = "minimize",
    state: Any = None,
    data: Known | None = None,
    record: Record | None = None,
    progress: bool = False,
) -> History:
    """Run a search once for each of k random keys, in one compiled program.

    The keys are distributed over all devices. A CPU device runs its keys in sequence, an
    accelerator in parallel.

    Args:
        search: The search.
        objective: A traceable function, as for `run`.
        keys: One random key per run (k,).
        steps: The number of evaluations of each run.
        *args: Arrays that the objective receives after the point, the same in all runs. Calls that
            differ only in these arrays, in the keys and in `data` share one compiled program. To
            use different arrays in every run, map `run` over them by `jax.vmap` or `jax.lax.map`.
        direction: "minimize" or "maximize".
        state: The states (k, ...) of earlier runs, to continue them.
        data: Known observations from which all runs start, as for `run`.
        record: A function of the state and the `AskInfo` of every ask, as for `run`.
        progress: Whether to run in about twenty parts and show a progress bar.

    Returns:
        The histories of all runs as one History, whose leaves have a leading axis (k, ...).
    """
    check_search(search)
    check_counts(steps=steps)
    check_keys(keys)
    check_extra(args)
    if keys.ndim != 1 or not keys.size:
        raise ValueError(
            f"expected keys of shape (k,), as from jax.random.split(key, k); got {keys.shape}"
        )
    devices = jax.devices()
    n = len(keys)
    size = -(-n // _PARTS) if progress else n
    size = -(-size // len(devices)) * len(devices) if n > 1 else 1
    mesh = Mesh(np.array(devices[: min(size, len(devices))]), ("seeds",))
    known = None if data is None else read_known(search.space, data)
    padded = _pad((keys, state), n, size)
    program = _programs(search, objective, steps, direction, record, mesh)
    run_part = partial(program, known, args)
    if not progress:
        first = jax.tree.map(lambda leaf: leaf[0], padded)
        history: History = jax.tree.map(lambda leaf: leaf[:n], run_part(first))
        warn_about_model(history.info)
        return history
    parts = []
    with progress_bar(n, unit="runs") as update:
        for i in range(-(-n // size)):
            part = jax.tree.map(lambda leaf, i=i: leaf[i], padded)
            parts.append(jax.block_until_ready(run_part(part)))
            update(min(len(parts) * size, n), "")
    histories: History = jax.tree.map(
        lambda *leaves: jnp.concatenate(leaves)[:n], *parts
    )
    warn_about_model(histories.info)
    return histories


def _pad(tree: Any, n: int, size: int) -> Any:
    """Cut the leading axis n of all leaves into parts of equal size.

    Copies of the last entry fill the last part, so that all parts have the same shape.
    """
    lengths = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(tree)}
    if lengths != {(n,)}:
        raise ValueError(
            f"expected a state of each of the {n} runs: leaves with a leading axis of this length"
        )
    rows = jnp.minimum(jnp.arange(-(-n // size) * size), n - 1)
    return jax.tree.map(
        lambda leaf: leaf[rows].reshape(-1, size, *leaf.shape[1:]), tree
    )


def _run_part(
    search: Search,
    objective: Objective,
    steps: int,
    direction: Direction,
    record: Record | None,
    mesh: Mesh,
    known: Any,
    args: tuple[Any, ...],
    starts: tuple[Array, Any],
) -> History:
    """Run one part of the keys and states (size, ...)."""

    def run_one(start: tuple[Array, Any], known: Any, args: tuple[Any, ...]) -> History:
        key, state = start
        return run(
            search,
            objective,
            key,
            steps,
            *args,
            direction=direction,
            state=state,
            data=known,
            record=record,
        )

    def run_all(
        starts: tuple[Array, Any], known: Any, args: tuple[Any, ...]
    ) -> History:
        on_cpu = mesh.devices.flat[0].platform == "cpu"
        one = partial(run_one, known=known, args=args)
        histories: History = (
            jax.lax.map(one, starts) if on_cpu else jax.vmap(one)(starts)
        )
        return histories

    if mesh.size == 1:
        return run_all(starts, known, args)
    spec = PartitionSpec("seeds")
    sharded = jax.shard_map(
        run_all,
        mesh=mesh,
        in_specs=(spec, PartitionSpec(), PartitionSpec()),
        out_specs=spec,
        check_vma=False,
    )
    histories: History = sharded(starts, known, args)
    return histories


_programs = ProgramCache(_run_part)
