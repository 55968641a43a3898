"""Check that the search of a study can use the noise variance of an outcome."""

import jax
import jax.numpy as jnp

from bonas.search import Search, make_observation
from bonas.spaces import Space
from bonas.study.default_search import default_search
from bonas.study.trial import Outcome


def check_noise(
    search: Search | None, space: Space, outcome: Outcome, *, is_custom: bool
) -> Outcome:
    """Return the outcome, or a failure if the search rejects its noise variance or needs one.

    As in `bonas.run`, searches without a model ignore a noise variance.

    Args:
        search: The search that was passed to the study, if any.
        space: The space of the study.
        outcome: The outcome of a trial.
        is_custom: Whether the study was created with a custom search. Without that search, nothing
            is checked.
    """
    has_noise = outcome.noise is not None
    if search is None and has_noise and not is_custom:
        search = default_search(space)
    if search is None or outcome.value is None or has_noise == search.uses_known_noise:
        return outcome
    state = jax.eval_shape(lambda: search.init(jax.random.key(0), 1))
    x = jnp.zeros(space.dim)
    observation = make_observation(x, 0.0, 0.0, ok=True, noise=outcome.noise)
    try:
        jax.eval_shape(search.tell, state, observation)
    except ValueError as problem:
        return outcome._replace(
            value=None, noise=None, pruned_step=None, error=str(problem), invalid=True
        )
    return outcome
