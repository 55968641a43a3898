"""Synthetic data sets of Twist, Wilton and Agrawal.

The functions draw a data set from a random key; use another key for a test set.
"""

from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import PRNGKeyArray
from numpy.typing import ArrayLike

from bonas.problems.examples import Examples

# Range of x in Wilton's experiment 1.
WILTON_RANGE = (-14.0, 11.0)


def boundary(x1: np.ndarray) -> np.ndarray:
    """Return the height of the boundary between the two classes of `two_class_plane`."""
    return 0.5 + 0.25 * np.sin(2.0 * np.pi * x1)


def two_class_plane(key: PRNGKeyArray, *, n: int = 200, noise: float = 0.1) -> Examples:
    """Draw points of two classes, red (0) and blue (1), in the unit square.

    Points are blue where x2 + N(0, noise²) is above a sine wave. This replaces the two-class data
    of Twist, which are not published. The wave needs a hidden layer; the noise mixes the classes
    along the boundary, so that a large network can overfit.

    Args:
        key: A random key.
        n: The number of points.
        noise: The standard deviation of the noise.
    """
    x_key, noise_key = jax.random.split(key)
    x = np.asarray(jax.random.uniform(x_key, (_check_rows(n), 2), np.float32))
    blue = x[:, 1] + _noise(noise_key, n, noise) > boundary(x[:, 0].astype(np.float64))
    return Examples(
        x, blue.astype(np.int32), "classification", ("x1", "x2"), ("red", "blue")
    )


def pieces(x: ArrayLike) -> np.ndarray:
    """Evaluate the function of Wilton's experiment 1: lines, a parabola and a growing wave.

    It jumps at -10, -8 and 2.
    """
    x = np.asarray(x, np.float64)
    places = [x < -10.0, x < -8.0, x < -6.0, x < 2.0]
    return np.select(places, [x, -x, x, (x + 5.0) ** 2 - 7.0], x**2 * np.sin(2.0 * x))


def wilton_pieces(key: PRNGKeyArray, *, n: int = 150, noise: float = 5.0) -> Examples:
    """Draw the data of Wilton's experiment 1: x ~ U(-14, 11), y = pieces(x) + N(0, noise²).

    Wilton does not state the size of the test set.

    Args:
        key: A random key.
        n: The number of rows.
        noise: The standard deviation of the noise.
    """
    return _curve(key, pieces, WILTON_RANGE, n, noise)


def cubic(x: ArrayLike) -> np.ndarray:
    """Evaluate 10 - 140 x + 400 x² - 250 x³, the function of Wilton's experiment 2.

    It is "polyreg" of Kroese et al. 2019.
    """
    return np.polyval([-250.0, 400.0, -140.0, 10.0], np.asarray(x, np.float64))


def wilton_cubic(key: PRNGKeyArray, *, n: int = 100, noise: float = 5.0) -> Examples:
    """Draw the data of Wilton's experiment 2: x ~ U(0, 1), y = cubic(x) + N(0, noise²).

    Args:
        key: A random key.
        n: The number of rows.
        noise: The standard deviation of the noise.
    """
    return _curve(key, cubic, (0.0, 1.0), n, noise)


def sinusoid(x: ArrayLike) -> np.ndarray:
    """Evaluate sin 7x + cos 17x (Agrawal, eq. 5.10)."""
    x = np.asarray(x, np.float64)
    return np.sin(7.0 * x) + np.cos(17.0 * x)


def agrawal_sinusoid(key: PRNGKeyArray, *, n: int = 20, noise: float = 0.1) -> Examples:
    """Draw the data of Agrawal's verification: x ~ U(-1, 1), y = sinusoid(x) + N(0, noise²).

    The thesis does not state the noise; the default is our choice.

    Args:
        key: A random key.
        n: The number of rows.
        noise: The standard deviation of the noise.
    """
    return _curve(key, sinusoid, (-1.0, 1.0), n, noise)


def _curve(
    key: PRNGKeyArray,
    function: Callable[[ArrayLike], np.ndarray],
    bounds: tuple[float, float],
    n: int,
    noise: float,
) -> Examples:
    x_key, noise_key = jax.random.split(key)
    x = np.asarray(jax.random.uniform(x_key, (_check_rows(n), 1), np.float32, *bounds))
    y = function(x[:, 0]) + _noise(noise_key, n, noise)
    return Examples(x, y.astype(np.float32), "regression", ("x",))


def _check_rows(n: int) -> int:
    if n < 1:
        raise ValueError(f"n, the number of rows, must be at least 1; got {n}")
    return n


def _noise(key: PRNGKeyArray, n: int, std: float) -> np.ndarray:
    if not 0.0 <= std < np.inf:
        raise ValueError(
            f"noise must be a finite standard deviation of at least 0; got {std}"
        )
    # float32 whether or not x64 is enabled, so that a key gives the same data everywhere.
    return std * np.asarray(jax.random.normal(key, (n,), np.float32))
