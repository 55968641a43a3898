"""Test functions with known minima, each with the space it is searched in.

`functions.branin.space`, `.objective(key, u)`, `.optimum`; the ones of any dimension are made: `functions.ackley(10)`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas.linalg import safe_sqrt
from bonas.spaces import Choice, Float, Int, Space


@jax.tree_util.register_static
@dataclass(frozen=True)
class Problem:
    """Something to minimise, and the answer. Static: it may be passed to any jitted function.

    objective: objective(key, u (d,)) -> () for a row of the space's unit cube; traceable. Without noise the key is ignored.
    optimum: the least value, without noise.
    minimisers: every place where it is reached, one value a parameter in natural units, None for an inactive one.
    """

    name: str
    space: Space
    objective: Callable[[Array, Array], Array]
    optimum: float
    minimisers: tuple[tuple, ...]

    @property
    def configurations(self) -> list[dict[str, Any]]:
        """The minimisers as `space.decode` would write them; `space.encode` takes them."""
        named = (zip(self.space.names, row, strict=True) for row in self.minimisers)
        return [{name: value for name, value in row if value is not None} for row in named]


@cache
def noisy(problem: Problem, std: float) -> Problem:
    """The problem seen through Gaussian noise of standard deviation std, drawn from the key; its optimum is still the
    noise-free one."""
    if not 0.0 <= std < math.inf:
        raise ValueError(f"std is a finite number that is not negative; got {std}")

    def objective(key, u):
        value_key, noise_key = jax.random.split(key)
        value = problem.objective(value_key, u)
        return value + std * jax.random.normal(noise_key, value.shape, value.dtype)

    return Problem(f"{problem.name}, noise {std:g}", problem.space, objective, problem.optimum, problem.minimisers)


def _on_box(name, formula, bounds, optimum, minimisers) -> Problem:
    """The problem of formula(x (d,)) on a box: one pair of bounds a parameter, named x1, x2, …"""
    space = Space(**{f"x{i}": Float(low, high) for i, (low, high) in enumerate(bounds, 1)})

    def objective(key, u):
        values = space.values(u)  # a dict that was jitted is sorted by name, so x10 comes before x2
        return formula(jnp.stack([values[name] for name in space.parameters]))

    return Problem(name, space, objective, optimum, minimisers)


# The four of Agrawal's comparison (G-E3, G-E4), with optima to all digits; the document rounds them.


def _forrester(x):
    return (6.0 * x[0] - 2.0) ** 2 * jnp.sin(12.0 * x[0] - 4.0)


def _rosenbrock(x):
    return 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2


def _mccormick(x):
    return jnp.sin(x[0] + x[1]) + (x[0] - x[1]) ** 2 - 1.5 * x[0] + 2.5 * x[1] + 1.0


def _six_hump_camel(x):
    a, b = x[0] ** 2, x[1] ** 2
    return (4.0 - 2.1 * a + a**2 / 3.0) * a + x[0] * x[1] + (4.0 * b - 4.0) * b


# One column, one local minimum (−0.986 at 0.143) beside the global one: Agrawal, eq. 5.11.
forrester = _on_box("forrester", _forrester, [(0.0, 1.0)], -6.020740055767083, ((0.7572487578418559,),))
# A curved, nearly flat valley.
rosenbrock = _on_box("rosenbrock", _rosenbrock, [(-2.048, 2.048)] * 2, 0.0, ((1.0, 1.0),))
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
    ((0.08984201310031806, -0.7126564030207396), (-0.08984201310031806, 0.7126564030207396)),
)


# The standard ones of Dixon & Szegö 1978.


def _branin(x):
    bowl = x[1] - 5.1 / (4.0 * math.pi**2) * x[0] ** 2 + 5.0 / math.pi * x[0] - 6.0
    return bowl**2 + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * jnp.cos(x[0]) + 10.0


# Three global minima, where the cosine is −1 and the bowl 0; their value is 10/8π.
branin = _on_box(
    "branin",
    _branin,
    [(-5.0, 10.0), (0.0, 15.0)],
    1.25 / math.pi,
    ((-math.pi, 12.275), (math.pi, 2.275), (3.0 * math.pi, 2.475)),
)


def _hartmann(scales, centres):
    """−Σ weight_i exp(−Σ_j scale_ij (x_j − centre_ij)²), four wells."""
    weights, scales, centres = np.array([1.0, 1.2, 3.0, 3.2]), np.array(scales), np.array(centres)

    def formula(x):
        w, a, c = (jnp.asarray(table, x.dtype) for table in (weights, scales, centres))
        return -w @ jnp.exp(-jnp.sum(a * (x[None, :] - c) ** 2, axis=1))

    return formula


# 0.03815 is the original's; copies that print 0.0381 have their minimum, −3.8627798, elsewhere.
hartmann3 = _on_box(
    "hartmann3",
    _hartmann(
        [[3.0, 10.0, 30.0], [0.1, 10.0, 35.0], [3.0, 10.0, 30.0], [0.1, 10.0, 35.0]],
        [[0.3689, 0.1170, 0.2673], [0.4699, 0.4387, 0.7470], [0.1091, 0.8732, 0.5547], [0.03815, 0.5743, 0.8828]],
    ),
    [(0.0, 1.0)] * 3,
    -3.8627821478207553,
    ((0.11461433858967198, 0.5556488499718569, 0.8525469535208658),),
)
# Four wells in six columns.
hartmann6 = _on_box(
    "hartmann6",
    _hartmann(
        [
            [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
            [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
            [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
            [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
        ],
        [
            [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
            [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
            [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
            [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
        ],
    ),
    [(0.0, 1.0)] * 6,
    -3.322368011415515,
    (
        (
            0.20168951100670542,
            0.15001069182345797,
            0.476873974221897,
            0.27533243049405607,
            0.31165161660011324,
            0.6573005340656203,
        ),
    ),
)


# Of any dimension.


def _ackley(x):
    # expm1, so that the minimum is exactly 0; a guarded root, because the minimum is the tip of a cone.
    ripple = jnp.mean(jnp.cos(2.0 * math.pi * x)) - 1.0
    return -20.0 * jnp.expm1(-0.2 * safe_sqrt(jnp.mean(x**2))) - math.e * jnp.expm1(ripple)


@cache
def ackley(d: int) -> Problem:
    """A cone in a rippled plain, in d dimensions: Ackley 1987."""
    return _on_box(f"ackley{d}", _ackley, [(-32.768, 32.768)] * d, 0.0, ((0.0,) * d,))


def _levy(x):
    w = 1.0 + (x - 1.0) / 4.0
    first = jnp.sin(math.pi * w[0]) ** 2
    middle = jnp.sum((w[:-1] - 1.0) ** 2 * (1.0 + 10.0 * jnp.sin(math.pi * w[:-1] + 1.0) ** 2))
    return first + middle + (w[-1] - 1.0) ** 2 * (1.0 + jnp.sin(2.0 * math.pi * w[-1]) ** 2)


@cache
def levy(d: int) -> Problem:
    """A rippled bowl, in d dimensions: Levy & Montalvo 1985; in this form Laguna & Martí 2005."""
    return _on_box(f"levy{d}", _levy, [(-10.0, 10.0)] * d, 0.0, ((1.0,) * d,))


# A conditional one: like a network whose every layer has a parameter of its own.

_CENTRES = (0.2, 0.7, 0.45)  # the best x1, x2, x3: the same at every depth, so that depths can learn from one another
_STEEPNESS = (1.0, 4.0, 16.0)  # by depth: deeper is harder to get right
_FLOORS = ((0.5, 0.6), (0.4, 0.25), (0.3, 0.0))  # the least value by depth (rows) and activation (relu, tanh)
_layers = Space(
    depth=Int(1, 3),
    activation=Choice("relu", "tanh"),
    x1=Float(0.0, 1.0),
    x2=Float(0.0, 1.0, when={"depth": (">=", 2)}),
    x3=Float(0.0, 1.0, when={"depth": (">=", 3)}),
)


def _layered(key, u):
    """floor + steepness · Σ (x_l − centre_l)² over the layers l ≤ depth.

    The minimum, 0, is at depth 3 with tanh. Every other depth and activation is a decoy: a bowl of its own whose floor is
    higher but, at smaller depths, far wider, so that shallow points are better on average (0.7 at depth 1, 6 at depth 3)
    and fewer than one random point in five hundred is below 0.25, the best decoy. With relu the least depth-1 value is
    lower than with tanh, the least depth-3 value higher: the activation cannot be chosen at depth 1.
    """
    values, on = _layers.values(u), _layers.active(u)
    floors, steepness, centres = (jnp.asarray(table, u.dtype) for table in (_FLOORS, _STEEPNESS, _CENTRES))
    depth = values["depth"] - 1
    apart = jnp.where(on[2:], jnp.stack([values["x1"], values["x2"], values["x3"]]) - centres, 0.0)
    return floors[depth, values["activation"]] + steepness[depth] * jnp.sum(apart**2)


# A network of one to three layers with a number each: conditional, and a trap for those who stay shallow.
layered = Problem("layered", _layers, _layered, 0.0, ((3, "tanh", *_CENTRES),))
