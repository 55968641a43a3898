"""Bayesian linear regression as a surrogate, as a baseline."""

from collections.abc import Callable

from jaxtyping import Array

from bonas import gp as gaussian
from bonas.gp import Noise, priors
from bonas.static_settings import check_static
from bonas.surrogates.gaussian_process import GaussianProcess, gp
from bonas.surrogates.hyperparameter_samplers import Infer

FEATURES: dict[str, Callable[[Array], Array]] = {
    "linear": gaussian.affine_features,
    "quadratic": gaussian.quadratic_features,
}


def linear(
    features: str | Callable[[Array], Array] = "linear",
    *,
    noise: Noise = priors.log_normal_noise,
    infer: Infer = "map",
    samples: int = 16,
    steps: int = 10,
) -> GaussianProcess:
    """Model the objective by Bayesian linear regression on features of a point.

    The model is y = w·φ(x) + noise with w ~ N(0, variance I), whose posterior has a closed form
    (Twist, Sections 3.3 and 3.4). The variances of weights and noise are inferred. This is
    `surrogates.gp` with the kernel `gp.basis(features)`.

    Args:
        features: "linear" for φ(x) = (1, x), "quadratic" for (1, x, x²), or a traceable function of
            a point (d,).
        noise: The noise variance, as in `surrogates.gp`.
        infer: How the variances are inferred: "map", "slice", "hmc" or "nuts".
        samples: The number of samples of the variances, unless `infer` is "map".
        steps: The number of density evaluations per fit with "map".
    """
    check_static("features", features)
    if not callable(features) and features not in FEATURES:
        raise ValueError(
            f"features must be one of {', '.join(FEATURES)}, or a function of a point; "
            f"got {features!r}"
        )
    phi = FEATURES[features] if isinstance(features, str) else features
    return gp(
        gaussian.basis(phi), noise=noise, infer=infer, samples=samples, steps=steps
    )
