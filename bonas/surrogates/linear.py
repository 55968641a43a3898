"""Bayesian linear regression as a surrogate: what a search is worth without curves in its model."""

from collections.abc import Callable

from jax import Array

from bonas import gp as gaussian
from bonas.gp import priors
from bonas.gp.hyper import Noise
from bonas.surrogates.gaussian import gp
from bonas.surrogates.interface import Surrogate

FEATURES: dict[str, Callable[[Array], Array]] = {"linear": gaussian.affine, "quadratic": gaussian.quadratic}


def linear(
    features: str | Callable[[Array], Array] = "linear",
    *,
    noise: Noise = priors.log_normal_noise,
    infer: str = "map",
    samples: int = 16,
    steps: int = 10,
) -> Surrogate:
    """y = w·φ(x) + noise with w ~ N(0, variance I) in closed form (Twist, Sections 3.3, 3.4); the two variances are inferred.

    features: "linear" for φ(x) = (1, x), "quadratic" for (1, x, x²), or a function of a point (d,) that is traceable. The rest
        is as for `surrogates.gp`, of which this is the one with the kernel `gp.basis(features)`.
    """
    if not callable(features) and features not in FEATURES:
        raise ValueError(f"features are one of {', '.join(FEATURES)}, or a function of a point; got {features!r}")
    phi = FEATURES[features] if isinstance(features, str) else features
    return gp(gaussian.basis(phi), noise=noise, infer=infer, samples=samples, steps=steps)
