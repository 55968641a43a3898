"""Example spaces and helpers for the tests of spaces."""

import math

import jax
import pytest

from bonas import Choice, Float, Int, Space


def conditional_space():
    """A space like the README's, with both kinds of conditions and both scales."""
    return Space(
        depth=Int(1, 5),
        lr=Float(1e-5, 1.0, log=True),
        activation=Choice("relu", "tanh"),
        width_2=Int(1, 256, log=True, when=lambda p: p["depth"] >= 2),
        slope=Float(0.0, 0.5, when={"activation": "relu"}),
    )


GOOD = {
    "depth": 2,
    "lr": 0.1,
    "activation": "relu",
    "width_2": 8,
    "slope": 0.1,
}  # a configuration of it


def chain():
    """A chain of conditions: c depends on b, and b on a."""
    return Space(
        a=Choice("none", None, (1, 2)),
        b=Int(-2, 3, when={"a": ("!=", None)}),
        c=Float(2.0, 4.0, when=lambda p: p["b"] > 0),
        d=Choice(1, "one", None, (1,), 1.5, when={"b": ("<=", 0), "a": "none"}),
        e=Int(3, 40, log=True, when={"c": ("<", 3.0)}),
    )


SPACES = {
    "conditional": conditional_space(),
    "chain": chain(),
    "plain": Space(x=Float(-1.0, 1.0), y=Float(1e-3, 1e3, log=True)),
    "single values": Space(
        a=Choice("only"),
        b=Int(2, 2),
        c=Float(0.1, 0.1),
        d=Int(1, 9, when={"a": "only"}),
    ),
    "wide": Space(n=Int(1, 100_000, log=True), m=Int(0, 100_000)),
}
each_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


# Spaces are static, so one compiled function serves each: without it most of the time goes into
# single operations.
snap = jax.jit(Space.snap)
spread = jax.jit(Space.spread)
around = jax.jit(lambda space, u: jax.vmap(space.neighbors)(u))
placing = pytest.mark.parametrize("place", [snap, spread], ids=["snap", "spread"])


def uniform(seed, space, n=200, low=0.0, high=1.0):
    return jax.random.uniform(
        jax.random.key(seed), (n, space.dim), minval=low, maxval=high
    )


def same(a, b):
    """Whether two values are equal but for rounding of real numbers."""
    return (
        math.isclose(a, b, rel_tol=1e-9)
        if isinstance(a, float) and isinstance(b, float)
        else a == b
    )


def close(a, b):
    """Whether two configurations have the same names and the same values."""
    return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
