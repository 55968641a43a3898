"""Agrawal's verification problem (G-E2): the function, the points, the network and its posterior on a grid."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

import bonas
from bonas.nets.bnn import BNN


@dataclass(frozen=True)
class Problem:
    widths: tuple[int, ...] = (50, 50, 50)  # stated: three layers of 50 tanh units
    points: int = 20  # stated
    noise_std: float = 0.1  # not stated: a tenth of the function's standard deviation
    weight_prior: tuple[float, float] = (5.0, 80.0)  # not stated: Gamma, a weight's standard deviation about 4. With a
    # vaguer one, such as Gamma(2, 8), precisions wander off to networks so rough that no two points are related
    noise_prior: tuple[float, float] = (10.0, 0.1)  # not stated: Gamma about the true noise, as of a known instrument. With
    # a vaguer one, such as Gamma(2, 0.02), chains can end where all of the data is noise
    grid: int = 101  # values of x in [-1, 1] at which functions are compared


PROBLEM = Problem()


def truth(x):
    """sin 7x + cos 17x: Agrawal, eq. 5.10."""
    return np.sin(7.0 * x) + np.cos(17.0 * x)


def observe(problem: Problem, seed: int) -> bonas.Dataset:
    """Noisy values of the function at random points of [-1, 1]."""
    draw = np.random.default_rng(seed)
    x = draw.uniform(-1.0, 1.0, (problem.points, 1))
    return bonas.dataset(x, truth(x[:, 0]) + problem.noise_std * draw.normal(size=problem.points))


def network(problem: Problem, **settings) -> BNN:
    priors = {"weight_prior": problem.weight_prior, "noise_prior": problem.noise_prior}
    return BNN(1, problem.widths, **{**priors, **settings})


def grid(problem: Problem):
    return jnp.linspace(-1.0, 1.0, problem.grid)[:, None]
