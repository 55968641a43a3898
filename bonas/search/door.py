"""What searches are given, checked where it comes in: a ValueError in the caller's words."""

from typing import Any

import jax
import jax.numpy as jnp

from bonas.gp import Kernel, Prediction
from bonas.search.types import Search
from bonas.surrogates import Surrogate


def check_search(search: Any) -> None:
    """Whether this is a search, and not the name of one or the function that makes it."""
    if not isinstance(search, Search):
        raise ValueError(f"expected a search, such as bonas.bayes(space) or search.random(space); got {_said(search)}")


def check_key(key: Any) -> None:
    """Whether this is one key, and not the number that it is made of."""
    dtype = getattr(key, "dtype", None)
    if dtype is None or not (jnp.issubdtype(dtype, jax.dtypes.prng_key) or dtype == jnp.uint32):
        raise ValueError(f"expected a key, such as jax.random.key(0); got {_said(key)}")


def check_surrogate(surrogate: Any) -> None:
    """Whether this is a surrogate, and not a kernel for one."""
    if isinstance(surrogate, Kernel):
        raise ValueError("a kernel is not a surrogate yet: write surrogate=surrogates.gp(kernel)")
    if not isinstance(surrogate, Surrogate):
        raise ValueError(f"expected a surrogate, such as surrogates.gp(); got {_said(surrogate)}")


def check_fitted(old: Any, new: Any) -> None:
    """Whether a surrogate's fit returns a state as its init does: a search keeps it in arrays that do not change."""
    before, after = (jax.tree_util.tree_flatten_with_path(tree) for tree in (old, new))
    if str(before[1]) != str(after[1]):
        raise ValueError(f"a surrogate's fit must return a state as its init does, {before[1]}; got {after[1]}")
    for (path, leaf), (_, other) in zip(before[0], after[0], strict=True):
        was, now = (f"{jnp.result_type(each).name}{list(jnp.shape(each))}" for each in (leaf, other))
        if was != now:
            place = jax.tree_util.keystr(path) or "it"
            raise ValueError(f"a surrogate's fit must return a state as its init does: {place} was {was} and became {now}")


def check_prediction(found: Any, points: int) -> None:
    """Whether a surrogate predicts means and deviations (s, m), a row a sample of its hyperparameters."""
    mean, std = (jnp.shape(part) for part in (found if isinstance(found, Prediction) else (found, found)))
    if not isinstance(found, Prediction) or len(mean) != 2 or mean[1] != points or std != mean:
        said = f"shapes {mean} and {std}" if isinstance(found, Prediction) else _said(found)
        raise ValueError(
            f"a surrogate predicts gp.Prediction(mean, std), each of shape (s, {points}) at {points} points, where s is 1 or "
            f"the number of samples of its hyperparameters; got {said}"
        )


def _said(given: Any) -> str:
    """The thing itself if it is short, else what it is."""
    text = repr(given)
    return text if len(text) <= 40 else f"a {type(given).__name__}"
