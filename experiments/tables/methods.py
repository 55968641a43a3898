"""The searches that are compared: kernels that know of relevance and some that do not, evolution and chance."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

import bonas
from bonas import gp, surrogates
from bonas.acquire.maximise import shifted, sobol
from bonas.search import Search, evolution, random

ARC, BLIND, SAMPLED = "arc", "GP, random fill", ", sampled"
EVOLUTION, CHANCE = "evolution", "random"


@dataclass(frozen=True)
class Method:
    """A GP by its kernel, a function of the space, and what it is told of irrelevant columns."""

    kernel: Callable[[bonas.Listed], gp.Kernel]
    blind: bool = False  # random numbers stand there
    infer: str = "map"


def columns_together(space: bonas.Listed) -> tuple[tuple[int, ...], ...]:
    """Columns that come and go together in the listed rows: the groups of `gp.blocks`."""
    groups: dict[bytes, list[int]] = {}
    for column, pattern in enumerate(np.asarray(space.active(space.rows)).T):
        groups.setdefault(pattern.tobytes(), []).append(column)
    return tuple(map(tuple, groups.values()))


@cache
def constant_fill(space: bonas.Listed) -> gp.Kernel:
    """Matérn 5/2 with −1 in irrelevant columns, the poor man's embedding of the authors' code (R-S2); a Choice is then none
    of its options."""
    base = gp.without_order(gp.matern52(), space.categories)

    def fill(x):
        return jnp.where(space.active(x), x, -1.0)

    def value(params, a, b):
        return base.value(params, fill(a), fill(b))

    def matrix(params, a, b):
        return gp.gram(base, params, fill(a), fill(b))

    return gp.Kernel(base.prior, value, matrix, space.categories)


def two_arcs(space: bonas.Listed) -> gp.Kernel:
    return gp.add(gp.arc(space), gp.arc(space))


KERNELS = {
    ARC: Method(gp.arc),
    BLIND: Method(lambda space: gp.matern52(), blind=True),
    "arc, flat prior": Method(lambda space: gp.arc(space, prior=gp.priors.flat_angles)),
    "GP, constant fill": Method(constant_fill),
    "product of arcs": Method(lambda space: gp.arc(space, product=True)),
    "box": Method(gp.box),
    "wedge": Method(gp.wedge),
    "masked Matérn": Method(gp.masked),
    "blocks": Method(lambda space: gp.blocks(space, columns_together(space))),
    "sum of arcs": Method(two_arcs),
}
SLOW = {name + SAMPLED: replace(KERNELS[name], infer="slice") for name in (ARC, BLIND)}
METHODS = (*KERNELS, EVOLUTION, CHANCE, *SLOW)


def search_of(name: str, problem, config) -> Search:
    """The search of that name. In a seed all begin with the same rows."""
    if name in (EVOLUTION, CHANCE):
        space = problem.space
        return started(random(space) if name == CHANCE else evolution(space), config.initial)
    method = (KERNELS | SLOW)[name]
    space = problem.blind if method.blind else problem.space
    settings = {"samples": config.samples, "steps": config.steps, "burn": config.burn}
    surrogate = surrogates.gp(method.kernel(space), infer=method.infer, **settings)
    return bonas.bayes(space, surrogate=surrogate, acquisition=bonas.log_ei, initial=config.initial, output="plain")


def started(search: Search, initial: int) -> Search:
    """A search that follows a plan, with the initial points that `bonas.bayes` has for the same key before it."""

    def init(key: jax.Array, capacity: int):
        state = search.init(key, capacity)
        design = search.space.spread(shifted(key, sobol(initial, search.space.dim)))
        return state._replace(plan=jnp.concatenate([design, state.plan]), times=jnp.pad(state.times, (initial, 0)))

    return replace(search, init=init)
