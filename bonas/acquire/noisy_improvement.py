"""Expected improvement over the unknown minimum of noisy evaluations."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from bonas.acquire.acquisition import Acquisition, Context
from bonas.acquire.maximize import Score
from bonas.acquire.monte_carlo import draw_latent, even_normals
from bonas.static_settings import check_counts


@dataclass(frozen=True)
class NoisyEI(Acquisition):
    """Expected improvement over draws of the latent minimum; see `noisy_ei`."""

    draws: int

    def score(
        self, key: PRNGKeyArray, context: Context, memory: Any
    ) -> tuple[Score, Any]:
        at = context.data.x
        succeeded = context.data.mask[:, 0] & ~context.failed
        # values without noise would make the covariance of their latent values 0
        jitter = float(jnp.finfo(at.dtype).eps) ** 0.6
        drawn = draw_latent(
            context,
            at,
            succeeded | context.pending,
            even_normals(key, self.draws, len(at)).astype(at.dtype),
            jitter=jitter,
        )
        return drawn.log_gain, memory


def noisy_ei(draws: int = 32) -> Acquisition:
    """Create noisy expected improvement (Letham et al. 2019, eq. 9, for minimization).

    With noise, the values of the latent function at the evaluated points are not known, and neither
    is their minimum, the incumbent. The values at evaluated and pending points are drawn jointly
    from the posterior. Each draw gives an expected improvement in closed form, over the minimum of
    the draw and with the model conditioned on it. The score is the logarithm of the average.
    Without noise this is close to `log_ei`.

    Args:
        draws: Number of quasi-Monte Carlo draws for each hyperparameter sample. The cost of an ask
            grows with this number and with the cube of the capacity.
    """
    check_counts(draws=draws)
    return NoisyEI(draws)
