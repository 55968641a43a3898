"""A heat map of 8 × 8 settings of a search: one compiled call against a search per setting."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from rich.console import Console
from rich.table import Table

import bonas
from bonas import acquire, gp, surrogates

EVALUATIONS = 20  # of each search
SPACE = bonas.Space(x=bonas.Float(0.0, 1.0))


def bumps(key: jax.Array, u: jax.Array) -> jax.Array:
    """Return noisy values of a function with a wide minimum and a lower, narrow one."""
    narrow = 1.5 * jnp.exp(-(((u[0] - 0.8) / 0.06) ** 2))
    wide = jnp.exp(-(((u[0] - 0.25) / 0.2) ** 2))
    return -wide - narrow + 0.2 * jax.random.normal(key)


def make_search(kappa: Any, median: Any) -> Any:
    """Return a search with a confidence bound and a prior of the length scale."""

    def prior(d: int) -> dict[str, Any]:
        lengthscale = dist.LogNormal(jnp.log(median), 0.1).expand([d])
        return {"variance": dist.LogNormal(0.0, 1.0), "lengthscale": lengthscale}

    bound = acquire.closed_form_acquisition(bonas.lcb, kappa=kappa)
    model = surrogates.gp(gp.matern52(prior))
    return bonas.bayes(SPACE, surrogate=model, acquisition=bound)


def heat_map(side: int, runs: int, looped: int) -> dict[str, Any]:
    """Measure one call for all pairs of settings, by `vmap` and in sequence, and a loop.

    Args:
        side: The number of values of each setting.
        runs: The number of searches for each pair.
        looped: The number of pairs that the loop measures.
    """
    keys = jax.random.split(jax.random.key(0), runs)
    kappas, medians = jnp.geomspace(0.25, 8.0, side), jnp.geomspace(0.02, 0.6, side)
    pairs = [grid.ravel() for grid in jnp.meshgrid(kappas, medians)]
    return {
        "searches": runs * side**2,
        "vmap": _measure(_in_parallel, pairs, keys),
        "map": _measure(_in_sequence, pairs, keys),
        "loop": [
            _measure_one(*(grid[i] for grid in pairs), keys) for i in range(looped)
        ],
    }


def _best(kappa: jax.Array, median: jax.Array, key: jax.Array) -> jax.Array:
    return bonas.run(make_search(kappa, median), bumps, key, EVALUATIONS).best[-1]


def _in_parallel(pairs: list[jax.Array], keys: jax.Array) -> jax.Array:
    return jax.vmap(jax.vmap(_best, (None, None, 0)), (0, 0, None))(*pairs, keys)


def _in_sequence(pairs: list[jax.Array], keys: jax.Array) -> jax.Array:
    def one_pair(pair: list[jax.Array]) -> jax.Array:
        return jax.lax.map(lambda key: _best(*pair, key), keys)

    return jax.lax.map(one_pair, pairs)


def _measure(
    grid: Callable[..., jax.Array], pairs: list[jax.Array], keys: jax.Array
) -> dict[str, float]:
    """Return the CPU seconds of compiling and of running all searches."""
    program, compiling = cpu_seconds(lambda: jax.jit(grid).lower(pairs, keys).compile())
    _, running = cpu_seconds(lambda: jax.block_until_ready(program(pairs, keys)))
    return {"compile": compiling, "run": running}


def _measure_one(kappa: jax.Array, median: jax.Array, keys: jax.Array) -> float:
    """Return the CPU seconds of the searches of a pair of Python numbers, with compilation."""

    def run() -> Any:
        search = make_search(float(kappa), float(median))
        return jax.block_until_ready(bonas.run_many(search, bumps, keys, EVALUATIONS))

    return cpu_seconds(run)[1]


def cpu_seconds(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a function and its CPU seconds."""
    begin = time.process_time()
    return function(), time.process_time() - begin


def show_heat_map(
    console: Console, row: dict[str, Any], config: dict[str, Any]
) -> None:
    """Print the heat map in one call, and what a loop would take."""
    table = Table(
        "",
        "compile",
        "run",
        "searches per s",
        title=f"{row['searches']} searches, CPU s",
    )
    for name in ("vmap", "map"):
        each = row[name]
        rate = row["searches"] / each["run"]
        table.add_row(
            f"jax {name}", f"{each['compile']:.1f}", f"{each['run']:.1f}", f"{rate:.0f}"
        )
    console.print(table)
    one = sum(row["loop"]) / len(row["loop"])
    settings = config["side"] ** 2
    console.print(
        f"A search made for each setting takes {one:.1f} CPU s for {config['runs']} seeds (mean of "
        f"{len(row['loop'])} settings), so {settings} would take about {settings * one:.0f}."
    )
