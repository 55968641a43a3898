"""Test functions with known minima, each with its search space.

A problem such as `functions.branin` has a `space`, an `objective(key, u)` and an `optimum`.
Functions of any dimension are made by a call, such as `functions.ackley(10)`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bonas import spaces
from bonas.linalg import safe_sqrt
from bonas.spaces import Choice, Int, Space

Formula = Callable[[Array], Array]  # x (d,) in natural units -> ()
Objective = Callable[[Array, Array], Array]  # (key, u (d,)) -> ()


@jax.tree_util.register_static
@dataclass(frozen=True)
class Problem:
    """A function to minimize, with its search space and known minimum.

    Args:
        name: The name in tables and figures.
        space: The search space.
        objective: Traceable function (key, u (d,)) -> () of a point of the unit cube of the space.
            Without noise, it ignores the key.
        optimum: The minimum, without noise.
        minimizers: All points of the minimum, each a tuple of parameter values in natural units,
            None for inactive parameters.
    """

    name: str
    space: Space
    objective: Objective
    optimum: float
    minimizers: tuple[tuple, ...]

    @property
    def configurations(self) -> list[dict[str, Any]]:
        """The minimizers as configurations of the space."""
        named = (zip(self.space.names, row, strict=True) for row in self.minimizers)
        return [
            {name: value for name, value in row if value is not None} for row in named
        ]


@dataclass(frozen=True)
class NoisyObjective:
    """An objective with added Gaussian noise."""

    objective: Objective
    std: float

    def __call__(self, key: Array, u: Float[Array, " d"]) -> Float[Array, ""]:
        value_key, noise_key = jax.random.split(key)
        value = self.objective(value_key, u)
        return value + self.std * jax.random.normal(noise_key, value.shape, value.dtype)


def add_noise(problem: Problem, std: float) -> Problem:
    """Add Gaussian noise to the objective of a problem; the optimum is unchanged.

    Args:
        problem: The problem.
        std: The standard deviation of the noise, in units of the objective.
    """
    if not 0.0 <= std < math.inf:
        raise ValueError(f"std must be finite and not negative; got {std}")
    return Problem(
        name=f"{problem.name}, noise {std:g}",
        space=problem.space,
        objective=NoisyObjective(problem.objective, std),
        optimum=problem.optimum,
        minimizers=problem.minimizers,
    )


@dataclass(frozen=True)
class BoxObjective:
    """An objective given by a formula of x (d,) on a box."""

    space: Space
    formula: Formula

    def __call__(self, key: Array | None, u: Float[Array, " d"]) -> Float[Array, ""]:
        values = self.space.values(u)
        # In the order of the space: jit sorts a dict by name, which puts x10 before x2.
        return self.formula(jnp.stack([values[name] for name in self.space.parameters]))


def _on_box(
    name: str,
    formula: Formula,
    bounds: Sequence[tuple[float, float]],
    optimum: float,
    minimizers: tuple[tuple[float, ...], ...],
) -> Problem:
    """Make a problem of formula(x (d,)) on a box with parameters x1, x2, …"""
    columns = {
        f"x{i}": spaces.Float(low, high) for i, (low, high) in enumerate(bounds, 1)
    }
    space = Space(**columns)
    return Problem(name, space, BoxObjective(space, formula), optimum, minimizers)


# The four functions of Agrawal's comparison, with optima to all digits; the thesis rounds them.


def _forrester(x: Array) -> Array:
    return (6.0 * x[0] - 2.0) ** 2 * jnp.sin(12.0 * x[0] - 4.0)


def _rosenbrock(x: Array) -> Array:
    return 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2


def _mccormick(x: Array) -> Array:
    return jnp.sin(x[0] + x[1]) + (x[0] - x[1]) ** 2 - 1.5 * x[0] + 2.5 * x[1] + 1.0


def _six_hump_camel(x: Array) -> Array:
    a = x[0] ** 2
    b = x[1] ** 2
    return (4.0 - 2.1 * a + a**2 / 3.0) * a + x[0] * x[1] + (4.0 * b - 4.0) * b


# One parameter, a local minimum (−0.986 at 0.143) beside the global one: Agrawal, eq. 5.11.
forrester = _on_box(
    "forrester", _forrester, [(0.0, 1.0)], -6.020740055767083, ((0.7572487578418559,),)
)
# A curved, nearly flat valley.
rosenbrock = _on_box(
    "rosenbrock", _rosenbrock, [(-2.048, 2.048)] * 2, 0.0, ((1.0, 1.0),)
)
# A tilted trough. The minimum is at x1 = 1/2 − π/3, x2 = x1 − 1.
mccormick = _on_box(
    "mccormick",
    _mccormick,
    [(-1.5, 4.0), (-3.0, 4.0)],
    -math.sqrt(0.75) - math.pi / 3.0,
    ((0.5 - math.pi / 3.0, -0.5 - math.pi / 3.0),),
)
# Six minima, two of them global.
six_hump_camel = _on_box(
    "six_hump_camel",
    _six_hump_camel,
    [(-3.0, 3.0), (-2.0, 2.0)],
    -1.0316284534898774,
    (
        (0.08984201310031806, -0.7126564030207396),
        (-0.08984201310031806, 0.7126564030207396),
    ),
)


# The standard functions of Dixon & Szegö 1978.


def _branin(x: Array) -> Array:
    bowl = x[1] - 5.1 / (4.0 * math.pi**2) * x[0] ** 2 + 5.0 / math.pi * x[0] - 6.0
    return bowl**2 + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * jnp.cos(x[0]) + 10.0


# Three global minima of value 10/8π, where the cosine is −1 and the square 0.
branin = _on_box(
    "branin",
    _branin,
    [(-5.0, 10.0), (0.0, 15.0)],
    1.25 / math.pi,
    ((-math.pi, 12.275), (math.pi, 2.275), (3.0 * math.pi, 2.475)),
)

_HARTMANN_WEIGHTS = (1.0, 1.2, 3.0, 3.2)
Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class _Hartmann:
    """Hartmann's formula −Σ weight_i exp(−Σ_j scale_ij (x_j − center_ij)²) with four minima."""

    scales: Rows  # (4, d)
    centers: Rows  # (4, d)

    def __call__(self, x: Array) -> Array:
        tables = (
            np.array(_HARTMANN_WEIGHTS),
            np.array(self.scales),
            np.array(self.centers),
        )
        w, a, c = (jnp.asarray(table, x.dtype) for table in tables)
        return -w @ jnp.exp(-jnp.sum(a * (x[None, :] - c) ** 2, axis=1))


# Four local minima in three parameters. 0.03815 is the original value; copies that print 0.0381
# have another minimum, −3.8627798.
hartmann3 = _on_box(
    "hartmann3",
    _Hartmann(
        scales=(
            (3.0, 10.0, 30.0),
            (0.1, 10.0, 35.0),
            (3.0, 10.0, 30.0),
            (0.1, 10.0, 35.0),
        ),
        centers=(
            (0.3689, 0.1170, 0.2673),
            (0.4699, 0.4387, 0.7470),
            (0.1091, 0.8732, 0.5547),
            (0.03815, 0.5743, 0.8828),
        ),
    ),
    [(0.0, 1.0)] * 3,
    -3.8627821478207553,
    ((0.11461433858967198, 0.5556488499718569, 0.8525469535208658),),
)
_HARTMANN6_MINIMIZER = (
    0.20168951100670542,
    0.15001069182345797,
    0.476873974221897,
    0.27533243049405607,
    0.31165161660011324,
    0.6573005340656203,
)
# Four local minima in six parameters.
hartmann6 = _on_box(
    "hartmann6",
    _Hartmann(
        scales=(
            (10.0, 3.0, 17.0, 3.5, 1.7, 8.0),
            (0.05, 10.0, 17.0, 0.1, 8.0, 14.0),
            (3.0, 3.5, 1.7, 10.0, 17.0, 8.0),
            (17.0, 8.0, 0.05, 10.0, 0.1, 14.0),
        ),
        centers=(
            (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
            (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
            (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
            (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
        ),
    ),
    [(0.0, 1.0)] * 6,
    -3.322368011415515,
    (_HARTMANN6_MINIMIZER,),
)


# Functions of any dimension.


def _ackley(x: Array) -> Array:
    # expm1, so that the minimum is exactly 0; safe_sqrt, because the minimum is the tip of a cone.
    ripple = jnp.mean(jnp.cos(2.0 * math.pi * x)) - 1.0
    return -20.0 * jnp.expm1(-0.2 * safe_sqrt(jnp.mean(x**2))) - math.e * jnp.expm1(
        ripple
    )


def ackley(d: int) -> Problem:
    """Make Ackley's function in d dimensions, a cone with many local minima (Ackley 1987)."""
    return _on_box(f"ackley{d}", _ackley, [(-32.768, 32.768)] * d, 0.0, ((0.0,) * d,))


def _levy(x: Array) -> Array:
    w = 1.0 + (x - 1.0) / 4.0
    first = jnp.sin(math.pi * w[0]) ** 2
    middle = jnp.sum(
        (w[:-1] - 1.0) ** 2 * (1.0 + 10.0 * jnp.sin(math.pi * w[:-1] + 1.0) ** 2)
    )
    return (
        first
        + middle
        + (w[-1] - 1.0) ** 2 * (1.0 + jnp.sin(2.0 * math.pi * w[-1]) ** 2)
    )


def levy(d: int) -> Problem:
    """Make Levy's function in d dimensions, a quadratic with many local minima.

    From Levy & Montalvo 1985, in the form of Laguna & Martí 2005.
    """
    return _on_box(f"levy{d}", _levy, [(-10.0, 10.0)] * d, 0.0, ((1.0,) * d,))


# A conditional function, like a network with a parameter for every layer.

# The best x1, x2, x3; equal at every depth, so that depths are informative about each other.
_CENTERS = (0.2, 0.7, 0.45)
# By depth: the optimum is narrower for deeper networks.
_STEEPNESS = (1.0, 4.0, 16.0)
# The minimum by depth (rows) and activation (relu, tanh).
_MINIMA = ((0.5, 0.6), (0.4, 0.25), (0.3, 0.0))
_layers = Space(
    depth=Int(1, 3),
    activation=Choice("relu", "tanh"),
    x1=spaces.Float(0.0, 1.0),
    x2=spaces.Float(0.0, 1.0, when={"depth": (">=", 2)}),
    x3=spaces.Float(0.0, 1.0, when={"depth": (">=", 3)}),
)


def _layered(key: Array, u: Array) -> Array:
    """Return minimum + steepness · Σ (x_l − center_l)² over the layers l ≤ depth.

    The global minimum, 0, is at depth 3 with tanh. Every other depth and activation has a higher
    minimum, but the quadratic is far wider at smaller depths, so that shallow points are better on
    average (0.7 at depth 1, 6 at depth 3). Fewer than one random point in five hundred is below
    0.25, the best of the other minima. At depth 1 relu has the lower minimum, at depth 3 tanh, so
    the activation cannot be chosen at depth 1.
    """
    values = _layers.values(u)
    active = _layers.active(u)
    tables = (_MINIMA, _STEEPNESS, _CENTERS)
    floors, steepness, centers = (jnp.asarray(table, u.dtype) for table in tables)
    depth = values["depth"] - 1
    x = jnp.stack([values["x1"], values["x2"], values["x3"]])
    distance = jnp.where(active[2:], x - centers, 0.0)
    return floors[depth, values["activation"]] + steepness[depth] * jnp.sum(distance**2)


# One to three layers with one parameter each: conditional, and deceptive at small depths.
layered = Problem("layered", _layers, _layered, 0.0, ((3, "tanh", *_CENTERS),))
