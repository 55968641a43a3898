"""Agrawal's verification problem: the function, the data and the network."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

import bonas
from bonas.nets import BNN


@dataclass(frozen=True)
class Problem:
    widths: tuple[int, ...] = (50, 50, 50)  # stated: three layers of 50 tanh units
    points: int = 20  # stated
    noise_std: float = 0.1  # not stated: a tenth of the function's standard deviation
    # Not stated: a Gamma prior under which weights have a standard deviation of about 4. With a
    # vaguer prior, such as Gamma(2, 8), precisions drift to networks so rough that points are
    # unrelated.
    weight_prior: tuple[float, float] = (5.0, 80.0)
    # Not stated: a Gamma prior centered on the true noise, as for a calibrated instrument. With a
    # vaguer prior, such as Gamma(2, 0.02), chains can end where all of the data is noise.
    noise_prior: tuple[float, float] = (10.0, 0.1)
    grid: int = 101  # number of inputs in [-1, 1] where functions are compared


PROBLEM = Problem()


def truth(x):
    """Return sin 7x + cos 17x (Agrawal, eq. 5.10)."""
    return np.sin(7.0 * x) + np.cos(17.0 * x)


def observe(problem: Problem, seed: int) -> bonas.Dataset:
    """Return noisy values of the function at random points of [-1, 1]."""
    draw = np.random.default_rng(seed)
    x = draw.uniform(-1.0, 1.0, (problem.points, 1))
    return bonas.dataset(
        x, truth(x[:, 0]) + problem.noise_std * draw.normal(size=problem.points)
    )


def network(problem: Problem, **settings) -> BNN:
    priors = {"weight_prior": problem.weight_prior, "noise_prior": problem.noise_prior}
    return BNN(1, problem.widths, **{**priors, **settings})


def grid(problem: Problem):
    return jnp.linspace(-1.0, 1.0, problem.grid)[:, None]
