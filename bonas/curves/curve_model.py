"""The interface of learning-curve models, and the fit that they have in common."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from bonas.data import Dataset
from bonas.half_capacity import call_on_half
from bonas.infer import Info, Target, all_finite, choose, maximize
from bonas.surrogates import FitInfo


class PartialCurves(NamedTuple):
    """The observed beginnings of the learning curves of m networks."""

    y: Array  # (m, c) values at the checkpoints
    mask: Array  # (m, c) bool: observed; False from the first missing checkpoint on


class CurveModel:
    """Base class of models of learning curves: values of networks at c checkpoints of training.

    A curve model is a frozen dataclass: its settings are fields and its behavior is methods. It is
    static, equal and hashable by value, and may be passed to any jitted function; subclasses are
    registered with JAX automatically.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        jax.tree_util.register_static(cls)

    def init(
        self,
        capacity: int,
        d: int,
        times: Float[Array, " c"],
    ) -> Any:
        """Return the initial state, without data.

        Args:
            capacity: The number of rows of the data, one per network.
            d: The number of columns of x.
            times: The share of the whole training at each checkpoint, from 0 to 1.
        """
        raise NotImplementedError

    def fit(
        self,
        key: PRNGKeyArray,
        data: Dataset,
        state: Any,
    ) -> tuple[Any, FitInfo]:
        """Fit the model to curves, starting from the last state.

        Args:
            key: A random key.
            data: Networks x (n, d) and their curves y (n, c), masked where not observed.
            state: The state of the last fit, or the initial one.

        Returns:
            The fitted state and diagnostics.
        """
        raise NotImplementedError

    def sample(
        self,
        key: PRNGKeyArray,
        state: Any,
        x: Float[Array, "m d"],
        observed: PartialCurves,
        k: int,
    ) -> Float[Array, "k m c"]:
        """Draw k continuations of the curves of m networks, jointly and without noise.

        Args:
            key: A random key.
            state: The fitted state.
            x: The networks.
            observed: The observed beginnings of their curves, which must have been among the data
                of the last fit.
            k: The number of draws.
        """
        raise NotImplementedError


def fit_parameters(
    key: PRNGKeyArray,
    posterior_of: Callable[..., Target],
    data: Dataset,
    last: Any,
    steps: int,
    *rest: Any,
) -> tuple[Any, FitInfo]:
    """Maximize a posterior density over parameters, starting from the last ones.

    Args:
        key: A random key.
        posterior_of: A function of the data and `rest` that returns the posterior of the
            parameters.
        data: Learning curves, or values derived from them.
        last: The unconstrained parameters of the last fit.
        steps: The number of density evaluations.
        *rest: Further arguments of `posterior_of`.

    Returns:
        The new unconstrained parameters, and a report. The last parameters are kept if the new ones
        or their density are not finite.
    """

    def optimize(
        data: Dataset, key: PRNGKeyArray, last: Any, *rest: Any
    ) -> tuple[Any, Info]:
        return maximize(key, posterior_of(data, *rest).maximizing, last, steps=steps)

    z, info = call_on_half(
        optimize,
        data,
        key,
        last,
        *rest,
    )
    finite = all_finite((z, info.log_density))
    z = choose(finite, jax.tree.map(lambda leaf: leaf[0], z), last)
    report = FitInfo(
        log_density=info.log_density.mean(),
        converged=finite & (info.accept > 0.0).all(),
        finite=finite,
        jitter=jnp.zeros((), info.log_density.dtype),
    )
    return z, report


def has_gap(mask: Bool[Array, "n p"]) -> Bool[Array, " n"]:
    """Return which rows of a mask have an observed output after one that was not observed."""
    return (mask[:, 1:] & ~mask[:, :-1]).any(axis=1)


def check_no_gaps(mask: Bool[Array, "n p"], advice: str) -> None:
    """Raise a ValueError if an output is observed without the previous one.

    Under `jit` nothing is checked.

    Args:
        mask: The observed outputs of each row.
        advice: The end of the message.
    """
    if isinstance(mask, jax.core.Tracer):
        return
    bad = np.asarray(has_gap(mask))
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"row {row} has a gap: the observed outputs must come first; "
            f"got mask {np.asarray(mask)[row].tolist()}; {advice}"
        )
