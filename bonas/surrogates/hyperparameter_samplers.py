"""Samplers of the hyperparameters of a Gaussian process, with their settings."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, get_args

from jaxtyping import Array

from bonas.infer import Info, hmc, nuts, slice_sample

# How hyperparameters are inferred.
Infer = Literal["map", "slice", "hmc", "nuts"]
METHODS = get_args(Infer)
# (key, log density, start) -> samples (s, ...) and diagnostics
Sampler = Callable[..., tuple[Any, Info]]


def choose_sampler(
    method: str, width: Array, samples: int, burn: int | None
) -> Sampler:
    """Return the sampler "slice", "hmc" or "nuts" with its settings.

    Args:
        method: The name of the sampler.
        width: Widths of slice sampling, one for each hyperparameter.
        samples: Number of samples.
        burn: Samples to discard first. Default: 2 sweeps of "slice", `samples` for "hmc" and four
            times as many for "nuts".
    """
    samplers: dict[str, tuple[Sampler, int]] = {
        "slice": (partial(slice_sample, width=width), 2),
        "hmc": (partial(hmc, step_size=0.05), samples),
        "nuts": (nuts, 4 * samples),
    }
    sampler, default_burn = samplers[method]
    return partial(
        sampler, samples=samples, burn=default_burn if burn is None else burn
    )
