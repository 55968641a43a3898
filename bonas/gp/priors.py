"""Priors of kernel parameters and of the noise variance.

Priors of kernels are functions of the number of columns, priors of the noise variance functions
without arguments. They suit points in the unit cube and values of mean 0 and variance 1.
"""

import numpyro.distributions as dist

from bonas.gp.default_priors import Middle as Middle
from bonas.gp.default_priors import Priors as Priors
from bonas.gp.default_priors import log_normal as log_normal
from bonas.gp.default_priors import log_normal_noise as log_normal_noise
from bonas.gp.published_priors import Horseshoe as Horseshoe
from bonas.gp.published_priors import dimension_scaled as dimension_scaled
from bonas.gp.published_priors import dimension_scaled_noise as dimension_scaled_noise
from bonas.gp.published_priors import half_cauchy as half_cauchy
from bonas.gp.published_priors import half_cauchy_noise as half_cauchy_noise
from bonas.gp.published_priors import spearmint as spearmint
from bonas.gp.published_priors import spearmint_noise as spearmint_noise


def flat_angles(d: int) -> Priors:
    """Return a uniform prior of angles for `gp.arc` and `gp.wedge`, for many data or sampling."""
    return {"rho": dist.Uniform(0.0, 1.0).expand([d])}
