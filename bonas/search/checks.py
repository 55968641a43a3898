"""Check the arguments of searches."""

import math
from dataclasses import fields, is_dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from bonas.acquire import (
    Acquisition,
    JointEI,
    Maximizer,
    check_hashable,
    check_pending,
)
from bonas.configuration import warn_about_single_precision
from bonas.gp import Kernel, Prediction
from bonas.search.search import Search
from bonas.spaces import Parameter, Space, TableSpace
from bonas.static_settings import check_counts, check_static
from bonas.surrogates import Surrogate


def check_search(search: Any) -> None:
    """Raise a ValueError unless the argument is a search."""
    if not isinstance(search, Search):
        raise ValueError(
            "expected a search, such as bonas.bayes(space) or search.random(space); "
            f"got {_describe(search)}"
        )
    check_space(search.space)
    check_hashable(search, type(search).__name__)
    check_precision()


def check_precision() -> None:
    """Warn once if searches run in float32 because `bonas.configure` was not called."""
    if jnp.result_type(float) == jnp.float32:
        warn_about_single_precision()


def check_space(space: Any) -> None:
    """Raise a ValueError unless the argument is a space."""
    if not isinstance(space, Space):
        raise ValueError(
            "expected a space, such as bonas.Space(rate=bonas.Float(0.0, 1.0)); "
            f"got {_describe(space)}"
        )
    for name, parameter in space.parameters.items():
        _check_bounds(name, parameter)


def _check_bounds(name: str, parameter: Parameter) -> None:
    """Raise a ValueError if the precision of JAX cannot represent the bounds of a parameter."""
    low = parameter.low
    high = parameter.high
    if parameter.size < math.inf:
        dtype = jnp.result_type(int)
        least = 0.0
        largest = float(jnp.iinfo(dtype).max)
    else:
        dtype = jnp.result_type(float)
        least = float(jnp.finfo(dtype).tiny)
        largest = float(jnp.finfo(dtype).max)
    is_tiny = parameter.log and low < least
    if max(abs(low), abs(high)) > largest or is_tiny:
        expected = f"low >= {least:.3g}" if is_tiny else f"bounds within ±{largest:.3g}"
        raise ValueError(
            f"parameter {name!r}: expected {expected} in {dtype}; got {low} and {high}; "
            "use narrower bounds, or 64 bits by bonas.configure()"
        )


def check_box(space: Space, reason: str) -> None:
    """Raise a ValueError unless all parameters are numbers without conditions."""
    check_space(space)
    has_options = any(space.categories)
    if has_options or space.conditions or isinstance(space, TableSpace):
        raise ValueError(
            f"{reason}: expected a space of numbers without conditions; got {space}"
        )


def check_key(key: Any) -> None:
    """Raise a ValueError unless the argument is one random key."""
    check_keys(key)
    is_typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    if key.ndim != (0 if is_typed else 1):
        raise ValueError(
            f"expected one key, such as jax.random.key(0); got keys of shape {key.shape}. For one "
            "run per key, use bonas.run_many"
        )


def check_keys(key: Any) -> None:
    """Raise a ValueError unless the argument is a random key or an array of keys."""
    dtype = getattr(key, "dtype", None)
    if dtype is None or not (
        jnp.issubdtype(dtype, jax.dtypes.prng_key) or dtype == jnp.uint32
    ):
        raise ValueError(
            f"expected a key, such as jax.random.key(0); got {_describe(key)}"
        )


def check_surrogate(surrogate: Any, known_noise: bool = False) -> None:
    """Raise a ValueError unless the argument is a surrogate that can use known noise if needed."""
    check_static("known_noise", known_noise)
    if isinstance(surrogate, Kernel):
        raise ValueError(
            "expected a surrogate; got a kernel: use surrogates.gp(kernel)"
        )
    if not isinstance(surrogate, Surrogate):
        raise ValueError(
            f"expected a surrogate, such as surrogates.gp(); got {_describe(surrogate)}"
        )
    check_hashable(surrogate, type(surrogate).__name__)
    if known_noise and not surrogate.uses_known_noise:
        raise ValueError(
            f"{type(surrogate).__name__} cannot use the noise of each observation; expected a "
            "Gaussian process with known_noise=True, such as surrogates.gp()"
        )


def check_settings(
    initial: Any,
    batch: int,
    acquisition: Acquisition,
    maximizer: Any,
    pending: Any,
    failures: Any,
) -> None:
    """Raise a ValueError unless the settings of a Bayesian search are valid."""
    k = initial if isinstance(initial, int) else len(initial)
    check_counts(initial=k, batch=batch)
    check_static("failures", failures)
    if not isinstance(maximizer, Maximizer):
        raise ValueError(
            f"expected a maximizer, such as acquire.gradient_ascent(space); got {maximizer!r}"
        )
    check_pending(pending)
    if failures not in ("worst", "model"):
        raise ValueError(f'failures must be "worst" or "model"; got {failures!r}')
    planned = _points_planned_together(acquisition) - {batch}
    if batch > 1 and planned:
        raise ValueError(
            f"the acquisition must plan batches of {batch} points, the batch of the search; "
            f"got batches of {planned.pop()}: use acquire.joint_ei({batch}), or another batch"
        )


def _points_planned_together(acquisition: Any) -> set[int]:
    """Return the batch sizes of an acquisition and of those that it combines."""
    if isinstance(acquisition, tuple):
        return set().union(*map(_points_planned_together, acquisition))
    if not isinstance(acquisition, Acquisition) or not is_dataclass(acquisition):
        return set()
    if isinstance(acquisition, JointEI):
        return {acquisition.batch}
    parts = (getattr(acquisition, field.name) for field in fields(acquisition))
    return set().union(*map(_points_planned_together, parts))


def initial_rows(space: Space, initial: ArrayLike) -> tuple[tuple[float, ...], ...]:
    """Check initial points and return them as tuples, which are hashable."""
    check_static("initial", initial)
    points = np.asarray(initial)
    if points.ndim != 2 or points.shape[1] != space.dim:
        raise ValueError(
            f"expected initial points of shape (k, {space.dim}); got {points.shape}"
        )
    space.check(points, "initial point", exists=True)
    return tuple(map(tuple, points.tolist()))


def check_output(scales: tuple[Any, ...], names: Any, model: Surrogate) -> None:
    """Raise a ValueError for invalid output scales, or several for a model without evidence."""
    check_static("output", scales)
    for one in scales:
        if not callable(one) and not (isinstance(one, str) and one in names):
            raise ValueError(
                f"output must be one of {', '.join(names)}, a function of a "
                f"Dataset, or a tuple of these; got {one!r}"
            )
    if not scales:
        raise ValueError("output must have at least one scale; got ()")
    if len(scales) > 1 and not model.has_evidence:
        raise ValueError(
            "this surrogate has no evidence to compare output scales; pass a single output scale"
        )


def check_fitted(old: Any, new: Any) -> None:
    """Raise a ValueError unless the states of `fit` and `init` have equal structure and shapes."""
    message = "a surrogate's fit must return a state like that of its init"
    before, tree = jax.tree_util.tree_flatten_with_path(old)
    after, new_tree = jax.tree_util.tree_flatten_with_path(new)
    if str(tree) != str(new_tree):
        raise ValueError(f"{message}, {tree}; got {new_tree}")
    for (path, leaf), (_, fitted) in zip(before, after, strict=True):
        expected, found = _describe_array(leaf), _describe_array(fitted)
        if expected != found:
            name = jax.tree_util.keystr(path) or "the state"
            raise ValueError(f"{message}: {name} must be {expected}; got {found}")


def check_prediction(prediction: Any, points: int) -> None:
    """Raise a ValueError unless a surrogate predicts mean (s, m) and std (s, m) at m points."""
    if isinstance(prediction, Prediction):
        mean, std = map(jnp.shape, prediction)
        if len(mean) == 2 and mean[1] == points and mean == std:
            return
        found = f"shapes {mean} and {std}"
    else:
        found = _describe(prediction)
    raise ValueError(
        f"a surrogate must predict gp.Prediction(mean, std) of shape (s, {points}) at "
        f"{points} points, s being 1 or the number of hyperparameter samples; got {found}"
    )


def _describe_array(array: Any) -> str:
    return f"{jnp.result_type(array).name}{list(jnp.shape(array))}"


def _describe(value: Any) -> str:
    """Return the representation of a value if it is short, else its type."""
    text = repr(value)
    return text if len(text) <= 40 else f"a {type(value).__name__}"
