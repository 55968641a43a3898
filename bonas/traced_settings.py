"""Numbers as settings: Python numbers, or traced arrays over which `jax.vmap` may map."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array


@dataclass(frozen=True, eq=False)
class TracedSetting:
    """A hashable wrapper of a traced array, for use as a setting.

    Settings must be hashable, but arrays are not. This object is hashed and compared by identity.
    It is valid only within the trace of its array.
    """

    value: Array


# A number as a field of a strategy; `setting_value` returns what it stands for.
Setting = float | TracedSetting


def as_setting(name: str, value: Any) -> Setting:
    """Convert a number to a hashable setting, a float or a `TracedSetting`.

    Args:
        name: The name of the setting in an error message.
        value: A number, or an array of shape (), which may be traced.

    Raises:
        ValueError: If it is an array of more than one number.
    """
    if isinstance(value, TracedSetting):
        return value
    if jnp.ndim(value):
        raise ValueError(
            f"{name} must be one number; got an array of shape {jnp.shape(value)}: use jax.vmap "
            "over a function that makes and runs the search"
        )
    if not isinstance(value, jax.core.Tracer):
        return float(value)
    return TracedSetting(weak(value.astype(float)))


def as_hashable(value: Any) -> Any:
    """Convert a setting of any type to a hashable one.

    Arrays of shape () become Python numbers, and traced arrays a `TracedSetting`. Other values are
    returned unchanged.
    """
    if isinstance(value, jax.core.Tracer):
        return TracedSetting(weak(value))
    is_number = hasattr(value, "dtype") and jnp.ndim(value) == 0
    return value.item() if is_number else value


def setting_value(setting: Any) -> Any:
    """Return the number or the traced array of a setting."""
    return setting.value if isinstance(setting, TracedSetting) else setting


def setting_values(settings: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the values of (name, setting) pairs as a dict."""
    return {name: setting_value(setting) for name, setting in settings}


def weak(value: Array) -> Array:
    """Return a weakly typed copy of an array, which promotes like a Python number.

    A product with a float32 array, for example, remains float32.
    """
    convert = jax.lax.convert_element_type_p.bind  # no function of JAX does this
    weak_array: Array = convert(
        value, new_dtype=value.dtype, weak_type=True, sharding=None
    )
    return weak_array
