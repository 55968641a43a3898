"""Functions of many columns whose minima are known, each with another reason why many columns need not be hopeless.

Few of them matter (`few_live`); they matter in groups (`additive`); they matter through a few directions (`rotated`); or
none of these, as for the weights of a network (`weights`). Whatever is random is drawn once from a seed of the problem.
"""

import math
from collections.abc import Callable
from functools import cache

import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas.problems.functions import Problem, branin, hartmann3, mccormick, six_hump_camel
from bonas.spaces import Float, Space

# Each divided by its standard deviation on its box, rounded, so that no term of a sum drowns the others.
_TERMS = ((branin, 50.0), (mccormick, 8.0), (six_hump_camel, 26.0))


def _box(name: str, low: float, high: float, d: int, formula: Callable[[Array], Array], optimum: float, minimisers) -> Problem:
    """The problem of formula(x (d,)) on the cube [low, high]^d with columns x1, x2, …"""
    space = Space(**{f"x{i}": Float(low, high) for i in range(1, d + 1)})

    def objective(key, u):
        if jnp.shape(u) != (d,):  # an index past the end would give the last column
            raise ValueError(f"expected one row of {d} columns; got shape {jnp.shape(u)}")
        space.check(u)
        return formula(low + (high - low) * u)

    return Problem(name, space, objective, optimum, tuple(tuple(map(float, row)) for row in minimisers))


def _units(problem: Problem) -> np.ndarray:
    """The minimisers (k, d) of a problem on a box as rows of the unit cube."""
    low, high = np.array([parameter.bounds[:2] for parameter in problem.space.parameters.values()]).T
    return (np.array(problem.minimisers) - low) / (high - low)


@cache
def few_live(d: int = 25, *, base: Problem = branin, seed: int = 0) -> Problem:
    """base on a few columns of [0, 1]^d, drawn by the seed; the others are inert: as in Wang et al. 2013.

    In the minimisers inert columns hold 0.5; any other value is as good.
    """
    live = live_columns(d, base=base, seed=seed)
    rows = np.full((len(base.minimisers), d), 0.5)
    rows[:, live] = _units(base)

    def formula(x):
        return base.objective(None, x[np.array(live)])  # type: ignore[arg-type]  # without noise the key is ignored

    return _box(f"{base.name}, {base.space.dim} of {d}", 0.0, 1.0, d, formula, base.optimum, rows)


def live_columns(d: int = 25, *, base: Problem = branin, seed: int = 0) -> tuple[int, ...]:
    """The columns of `few_live` that matter, in the order in which base takes them."""
    if d < base.space.dim:
        raise ValueError(f"{base.name} has {base.space.dim} columns, which do not fit into {d}")
    return tuple(np.random.default_rng(seed).permutation(d)[: base.space.dim].tolist())


@cache
def additive(d: int = 20, *, seed: int = 0) -> Problem:
    """A sum of functions of two columns each on [0, 1]^d, in turn branin/50, mccormick/8 and six_hump_camel/26.

    `pairs` says which columns go together; the least value is the sum of theirs (G-D8). Of all minimisers, one for each way
    to choose among those of the terms, the first is listed.
    """
    groups = pairs(d, seed=seed)
    terms = [_TERMS[i % len(_TERMS)] for i in range(len(groups))]
    row = np.empty(d)
    for columns, (term, _) in zip(groups, terms, strict=True):
        row[list(columns)] = _units(term)[0]

    def formula(x):
        values = [
            term.objective(None, x[np.array(columns)]) / size  # type: ignore[arg-type]
            for columns, (term, size) in zip(groups, terms, strict=True)
        ]
        return jnp.stack(values).sum()

    return _box(f"additive, {d}", 0.0, 1.0, d, formula, math.fsum(term.optimum / size for term, size in terms), [row])


def pairs(d: int = 20, *, seed: int = 0) -> tuple[tuple[int, int], ...]:
    """Which columns of `additive` go together."""
    if d < 2 or d % 2:
        raise ValueError(f"pairs of columns need an even number of them; got {d}")
    order = np.random.default_rng(seed).permutation(d).tolist()
    return tuple(zip(order[::2], order[1::2], strict=True))


@cache
def rotated(d: int = 50, *, base: Problem = hartmann3, seed: int = 0) -> Problem:
    """base at (1 + tanh z)/2, z = Qᵀx for x in [−1, 1]^d, with Q (d, d_e) an orthonormal basis of a random subspace.

    No column is inert and no groups of columns add up: the value changes along d_e directions (`directions`), none of which
    is an axis. At a random x each z has a standard deviation of 1/√3, whatever d is, and the smooth step keeps it within the
    box of base. So the least value is that of base, reached at x = Qz with z = artanh(2t − 1), t a minimiser in the unit cube,
    and wherever Qᵀx is the same. That x must lie in the box, which it does unless d is small: otherwise a ValueError.
    """
    basis = directions(d, base.space.dim, seed=seed)
    rows = np.arctanh(2.0 * _units(base) - 1.0) @ basis.T
    if not np.abs(rows).max() <= 1.0:
        raise ValueError(f"with d = {d} and seed {seed} a minimiser lies outside the box; use more columns")

    def formula(x):
        return base.objective(None, 0.5 + 0.5 * jnp.tanh(jnp.asarray(basis.T, x.dtype) @ x))  # type: ignore[arg-type]

    return _box(f"{base.name}, rotated in {d}", -1.0, 1.0, d, formula, base.optimum, rows)


def directions(d: int = 50, effective: int = 3, *, seed: int = 0) -> np.ndarray:
    """The orthonormal directions (d, effective) along which `rotated` changes, those of a normal matrix."""
    if d < effective:
        raise ValueError(f"{effective} directions need as many columns; got {d}")
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, effective)))[0]


@cache
def weights(inputs: int = 4, hidden: int = 10, *, rows: int = 100, seed: int = 0) -> Problem:
    """The weights of a network with one hidden layer of tanh units, fitted to what another of its shape, the teacher, says.

    The value is the mean squared error over the variance of the teacher's outputs at `rows` normal inputs: 1 for the best
    constant, and 0, the least, at the teacher's weights, which are uniform in [−1.5, 1.5]; the box is [−2, 2]. Their
    number is hidden (inputs + 2) + 1, 61 by default. Hidden units may be swapped, and the signs of a unit's weights changed:
    of these 2^hidden · hidden! minimisers the teacher alone is listed.
    """
    chance = np.random.default_rng(seed)
    x = chance.normal(size=(rows, inputs))
    d = hidden * (inputs + 2) + 1
    teacher = chance.uniform(-1.5, 1.5, size=d)
    y = outputs(teacher, x)

    def formula(w):
        error = outputs(w, jnp.asarray(x, w.dtype)) - jnp.asarray(y, w.dtype)
        return jnp.mean(error**2) / float(y.var())

    return _box(f"weights of a network, {d}", -2.0, 2.0, d, formula, 0.0, [teacher])


def outputs(w, x):
    """b + Σ_j v_j tanh(a_j + Σ_i u_ij x_i) (n,) for x (n, i); w is u, a, v and b in a row (Agrawal, eqs. 2.1 and 2.2)."""
    inputs = x.shape[1]
    hidden = (len(w) - 1) // (inputs + 2)
    tanh = np.tanh if isinstance(w, np.ndarray) else jnp.tanh
    u, (a, v) = w[: inputs * hidden].reshape(inputs, hidden), w[inputs * hidden : -1].reshape(2, hidden)
    return w[-1] + tanh(a[None, :] + x @ u) @ v
