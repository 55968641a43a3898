"""Functions of many parameters with known minima, each with different exploitable structure.

A few columns matter (`few_effective`), the function is a sum over groups of columns (`additive`), a
few directions matter (`rotated_subspace`), or there is no such structure, as for the weights of a
network (`weights`). Random numbers are drawn once, from the seed of the problem.
"""

import math
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bonas import spaces
from bonas.problems.functions import (
    Formula,
    Problem,
    branin,
    hartmann3,
    mccormick,
    six_hump_camel,
)
from bonas.spaces import Space

# Functions and their rounded standard deviations; each is divided by its own, for equal weight.
_TERMS = ((branin, 50.0), (mccormick, 8.0), (six_hump_camel, 26.0))


@dataclass(frozen=True)
class CubeObjective:
    """An objective given by a formula of x (d,) on the cube [low, high]^d."""

    space: Space
    low: float
    high: float
    formula: Formula

    def __call__(self, key: Array | None, u: Float[Array, " d"]) -> Float[Array, ""]:
        d = self.space.dim
        if jnp.shape(u) != (d,):  # JAX clamps an index past the end
            raise ValueError(f"expected a row of shape ({d},); got {jnp.shape(u)}")
        self.space.check(u)
        return self.formula(self.low + (self.high - self.low) * u)


def _on_cube(
    name: str,
    formula: Formula,
    bounds: tuple[float, float],
    optimum: float,
    minimizers: Any,
) -> Problem:
    """Make a problem of formula(x (d,)) on a cube with parameters x1, x2, …"""
    low, high = bounds
    rows = tuple(tuple(map(float, row)) for row in minimizers)
    names = (f"x{i}" for i in range(1, len(rows[0]) + 1))
    space = Space(**{name: spaces.Float(low, high) for name in names})
    return Problem(name, space, CubeObjective(space, low, high, formula), optimum, rows)


def _unit_minimizers(problem: Problem) -> np.ndarray:
    """Return the minimizers (k, d) of a problem on a box as rows of the unit cube."""
    bounds = [parameter.bounds[:2] for parameter in problem.space.parameters.values()]
    low, high = np.array(bounds).T
    return (np.array(problem.minimizers) - low) / (high - low)


def _evaluate(problem: Problem, u: Array) -> Array:
    """Evaluate a problem without noise, which ignores the key."""
    return problem.objective(None, u)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _FewEffective:
    base: Problem
    columns: tuple[int, ...]

    def __call__(self, x: Array) -> Array:
        return _evaluate(self.base, x[np.array(self.columns)])


def few_effective(d: int = 25, *, base: Problem = branin, seed: int = 0) -> Problem:
    """Embed a problem in a few random columns of [0, 1]^d; the others have no effect.

    As in Wang et al. 2013. The listed minimizers have 0.5 in the other columns.

    Args:
        d: The number of columns.
        base: The problem to embed.
        seed: The random seed of the columns, which `effective_columns` returns.
    """
    columns = effective_columns(d, base=base, seed=seed)
    rows = np.full((len(base.minimizers), d), 0.5)
    rows[:, columns] = _unit_minimizers(base)
    name = f"{base.name}, {base.space.dim} of {d}"
    return _on_cube(name, _FewEffective(base, columns), (0.0, 1.0), base.optimum, rows)


def effective_columns(
    d: int = 25, *, base: Problem = branin, seed: int = 0
) -> tuple[int, ...]:
    """Return the columns that affect `few_effective`, in the order of the base problem.

    The arguments are those of `few_effective`.
    """
    if d < base.space.dim:
        raise ValueError(f"{base.name} has {base.space.dim} columns; got only d = {d}")
    return tuple(np.random.default_rng(seed).permutation(d)[: base.space.dim].tolist())


@dataclass(frozen=True)
class _Additive:
    groups: tuple[tuple[int, int], ...]

    @property
    def terms(self) -> list[tuple[Problem, float]]:
        return [_TERMS[i % len(_TERMS)] for i in range(len(self.groups))]

    def __call__(self, x: Array) -> Array:
        values = [
            _evaluate(term, x[np.array(columns)]) / size
            for columns, (term, size) in zip(self.groups, self.terms, strict=True)
        ]
        return jnp.stack(values).sum()


def additive(d: int = 20, *, seed: int = 0) -> Problem:
    """Make a sum of functions of two columns each, on [0, 1]^d.

    The terms are branin/50, mccormick/8 and six_hump_camel/26 in turn; `pairs` returns their
    columns. The minimum is the sum of their minima. Of the many minimizers only one is listed.

    Args:
        d: The number of columns, which must be even.
        seed: The random seed of the pairs of columns.
    """
    formula = _Additive(pairs(d, seed=seed))
    row = np.empty(d)
    for columns, (term, _) in zip(formula.groups, formula.terms, strict=True):
        row[list(columns)] = _unit_minimizers(term)[0]
    optimum = math.fsum(term.optimum / size for term, size in formula.terms)
    return _on_cube(f"additive, {d}", formula, (0.0, 1.0), optimum, [row])


def pairs(d: int = 20, *, seed: int = 0) -> tuple[tuple[int, int], ...]:
    """Return the pairs of columns that the terms of `additive` depend on.

    The arguments are those of `additive`.
    """
    if d < 2 or d % 2:
        raise ValueError(f"d must be even and at least 2; got {d}")
    order = np.random.default_rng(seed).permutation(d).tolist()
    return tuple(zip(order[::2], order[1::2], strict=True))


@dataclass(frozen=True)
class _Rotated:
    base: Problem
    d: int
    seed: int

    @property
    def basis(self) -> np.ndarray:
        return directions(self.d, self.base.space.dim, seed=self.seed)

    def __call__(self, x: Array) -> Array:
        z = jnp.asarray(self.basis.T, x.dtype) @ x
        return _evaluate(self.base, 0.5 + 0.5 * jnp.tanh(z))


def rotated_subspace(
    d: int = 50, *, base: Problem = hartmann3, seed: int = 0
) -> Problem:
    """Embed a problem in a random subspace of [−1, 1]^d.

    The base problem is evaluated at (1 + tanh z)/2, z = Qᵀx, where Q (d, d_e) is an orthonormal
    basis (`directions`). Every column has an effect, and the function is not a sum over groups of
    columns. At a random x each z has a standard deviation of 1/√3 for any d. The minimum is reached
    at x = Qz with z = artanh(2t − 1), for a minimizer t of the base problem in the unit cube, and
    at all points with the same Qᵀx.

    Args:
        d: The number of columns.
        base: The problem to embed, with d_e columns.
        seed: The random seed of Q.

    Raises:
        ValueError: If that x is outside the box, which happens only for small d.
    """
    formula = _Rotated(base, d, seed)
    rows = np.arctanh(2.0 * _unit_minimizers(base) - 1.0) @ formula.basis.T
    if not np.abs(rows).max() <= 1.0:
        raise ValueError(
            f"with d = {d} and seed {seed} a minimizer is outside the box; increase d"
        )
    return _on_cube(
        f"{base.name}, rotated in {d}", formula, (-1.0, 1.0), base.optimum, rows
    )


def directions(d: int = 50, effective: int = 3, *, seed: int = 0) -> np.ndarray:
    """Return the orthonormal directions along which `rotated_subspace` varies.

    Args:
        d: The number of columns.
        effective: The number of directions, which is that of the columns of the base problem.
        seed: The random seed of the problem.

    Returns:
        The matrix Q (d, effective), with one direction per column.
    """
    if d < effective:
        raise ValueError(
            f"d must be at least the number of directions, {effective}; got {d}"
        )
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, effective)))[0]


@dataclass(frozen=True)
class _TeacherError:
    inputs: int
    hidden: int
    rows: int
    seed: int

    def draw(self) -> tuple[np.ndarray, np.ndarray]:
        """Draw the inputs (rows, inputs) and the weights of the teacher (d,)."""
        rng = np.random.default_rng(self.seed)
        x = rng.normal(size=(self.rows, self.inputs))
        return x, rng.uniform(-1.5, 1.5, size=self.hidden * (self.inputs + 2) + 1)

    def __call__(self, w: Array) -> Array:
        x, teacher = self.draw()
        y = outputs(teacher, x)
        error = outputs(w, jnp.asarray(x, w.dtype)) - jnp.asarray(y, w.dtype)
        return jnp.mean(error**2) / float(y.var())


def weights(
    inputs: int = 4, hidden: int = 10, *, rows: int = 100, seed: int = 0
) -> Problem:
    """Make the problem of fitting a network with one tanh layer to a random teacher network.

    The value is the mean squared error at `rows` normal inputs, divided by the variance of the
    teacher's outputs. It is 1 for the best constant, and 0, the minimum, at the teacher's weights.
    These are uniform in [−1.5, 1.5]; the box is [−2, 2]. There are hidden (inputs + 2) + 1 weights,
    61 by default. Swapping hidden units or changing the signs of a unit gives 2^hidden · hidden!
    minimizers; only the teacher is listed.

    Args:
        inputs: The number of inputs of the network.
        hidden: The number of hidden units.
        rows: The number of rows of the training data.
        seed: The random seed of the teacher and the inputs.
    """
    formula = _TeacherError(inputs, hidden, rows, seed)
    _, teacher = formula.draw()
    return _on_cube(
        f"weights of a network, {len(teacher)}", formula, (-2.0, 2.0), 0.0, [teacher]
    )


def outputs(w: Any, x: Any) -> Any:
    """Compute the outputs (n,) of the network of `weights` (Agrawal, eqs. 2.1 and 2.2).

    They are b + Σ_j v_j tanh(a_j + Σ_i u_ij x_i).

    Args:
        w: The weights, a vector that concatenates u, a, v and b.
        x: The inputs (n, i).
    """
    inputs = x.shape[1]
    hidden = (len(w) - 1) // (inputs + 2)
    tanh = np.tanh if isinstance(w, np.ndarray) else jnp.tanh
    u = w[: inputs * hidden].reshape(inputs, hidden)
    a, v = w[inputs * hidden : -1].reshape(2, hidden)
    return w[-1] + tanh(a[None, :] + x @ u) @ v
