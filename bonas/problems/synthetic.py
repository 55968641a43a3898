"""The synthetic data sets of the sources: each a pure function of a key. A test set is a draw with another key."""

import jax
import numpy as np
from jax import Array

from bonas.problems.examples import Examples

WILTON_RANGE = (-14.0, 11.0)  # of experiment 1 (W-E1)


def boundary(x1: np.ndarray) -> np.ndarray:
    """The height at which the two classes of `two_class_plane` meet."""
    return 0.5 + 0.25 * np.sin(2.0 * np.pi * x1)


def two_class_plane(key: Array, *, n: int = 200, noise: float = 0.1) -> Examples:
    """Two classes, red (0) and blue (1), in the unit square: blue where x2 + N(0, noise²) lies above a sine wave.

    Stands for Twist's two-class plane (T-E2, T-E3, T-E7), whose points are not stated: our choice. The wave needs a hidden
    layer; the noise mixes the classes along it, so that there are uncertain bands and a large network can overfit.
    """
    x_key, noise_key = jax.random.split(key)
    x = np.asarray(jax.random.uniform(x_key, (_rows(n), 2), np.float32))
    blue = x[:, 1] + _noise(noise_key, n, noise) > boundary(x[:, 0].astype(np.float64))
    return Examples(x, blue.astype(np.int32), "classification", ("x1", "x2"), ("red", "blue"))


def pieces(x: np.ndarray) -> np.ndarray:
    """Wilton's first function (W-E1): lines, a parabola and a growing wave, with jumps at -10, -8 and 2."""
    x = np.asarray(x, np.float64)
    places = [x < -10.0, x < -8.0, x < -6.0, x < 2.0]
    return np.select(places, [x, -x, x, (x + 5.0) ** 2 - 7.0], x**2 * np.sin(2.0 * x))


def wilton_pieces(key: Array, *, n: int = 150, noise: float = 5.0) -> Examples:
    """Wilton's experiment 1 (W-E1): x ~ U(-14, 11), y = pieces(x) + N(0, 5²). The size of the test set is not stated."""
    return _curve(key, pieces, WILTON_RANGE, n, noise)


def cubic(x: np.ndarray) -> np.ndarray:
    """10 - 140 x + 400 x² - 250 x³ (W-E2; polyreg of Kroese et al. 2019)."""
    return np.polyval([-250.0, 400.0, -140.0, 10.0], np.asarray(x, np.float64))


def wilton_cubic(key: Array, *, n: int = 100, noise: float = 5.0) -> Examples:
    """Wilton's experiment 2 (W-E2): x ~ U(0, 1), y = cubic(x) + N(0, 5²)."""
    return _curve(key, cubic, (0.0, 1.0), n, noise)


def sinusoid(x: np.ndarray) -> np.ndarray:
    """sin 7x + cos 17x (Agrawal, eq. 5.10)."""
    x = np.asarray(x, np.float64)
    return np.sin(7.0 * x) + np.cos(17.0 * x)


def agrawal_sinusoid(key: Array, *, n: int = 20, noise: float = 0.1) -> Examples:
    """Agrawal's verification (G-E2): x ~ U(-1, 1), y = sinusoid(x) + N(0, noise²). The noise is not stated: our choice."""
    return _curve(key, sinusoid, (-1.0, 1.0), n, noise)


def _curve(key, function, bounds, n, noise) -> Examples:
    x_key, noise_key = jax.random.split(key)
    x = np.asarray(jax.random.uniform(x_key, (_rows(n), 1), np.float32, *bounds))
    y = function(x[:, 0]) + _noise(noise_key, n, noise)
    return Examples(x, y.astype(np.float32), "regression", ("x",))


def _rows(n: int) -> int:
    if n < 1:
        raise ValueError(f"n is a number of rows, at least 1; got {n}")
    return n


def _noise(key: Array, n: int, std: float) -> np.ndarray:
    if not 0.0 <= std < np.inf:
        raise ValueError(f"noise is a standard deviation, finite and not negative; got {std}")
    # float32 whatever the setting of x64, so that a key gives the same data everywhere
    return std * np.asarray(jax.random.normal(key, (n,), np.float32))
