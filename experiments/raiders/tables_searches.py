"""Searches with kernels that do or do not know relevance, evolution and random search."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import jax.numpy as jnp
import numpy as np

import bonas
from bonas import gp, surrogates
from bonas.search import Search, evolution, random
from experiments import common

ARC, BLIND, SAMPLED = "arc", "GP, random fill", ", sampled"
EVOLUTION, CHANCE = "evolution", "random"


@dataclass(frozen=True)
class Method:
    """A GP with a kernel made for the space, and its filling of irrelevant columns."""

    kernel: Callable[[bonas.TableSpace], gp.Kernel]
    blind: bool = False  # fill irrelevant columns with random numbers
    infer: str = "map"


def columns_together(space: bonas.TableSpace) -> tuple[tuple[int, ...], ...]:
    """Return groups of columns that are active in the same rows, for `gp.blocks`."""
    groups: dict[bytes, list[int]] = {}
    for column, pattern in enumerate(np.asarray(space.active(space.rows)).T):
        groups.setdefault(pattern.tobytes(), []).append(column)
    return tuple(map(tuple, groups.values()))


@cache
def constant_fill(space: bonas.TableSpace) -> gp.Kernel:
    """Return Matérn 5/2 with −1 in irrelevant columns, as in the authors' code."""
    base = gp.with_categories(gp.matern52(), space.categories)

    def fill(x):
        return jnp.where(space.active(x), x, -1.0)

    def value(params, a, b):
        return base.value(params, fill(a), fill(b))

    def matrix(params, a, b):
        return gp.gram(base, params, fill(a), fill(b))

    return gp.Kernel(base.prior, value, matrix, space.categories)


def two_arcs(space: bonas.TableSpace) -> gp.Kernel:
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
    """Return a search by name; all searches of a seed start from the same rows."""
    if name in (EVOLUTION, CHANCE):
        space = problem.space
        search = random(space) if name == CHANCE else evolution(space)
        return common.plan_from_sobol(search, config.initial)
    method = (KERNELS | SLOW)[name]
    space = problem.blind if method.blind else problem.space
    settings = {"samples": config.samples, "steps": config.steps, "burn": config.burn}
    surrogate = surrogates.gp(method.kernel(space), infer=method.infer, **settings)
    return bonas.bayes(
        space,
        surrogate=surrogate,
        acquisition=bonas.log_ei,
        initial=config.initial,
        output="plain",
    )
