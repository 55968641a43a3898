"""Check the arguments of acquisitions and searches."""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import jax
from jax import ShapeDtypeStruct as Shape

from bonas.static_settings import check_all_static
from bonas.traced_settings import as_hashable


def check_closed_form(function: Any, settings: dict[str, Any]) -> None:
    """Raise a ValueError unless a function maps mean, std and best to scores.

    The most frequent mistake is to pass a function such as `acquire.thompson` without calling it.

    Args:
        function: The function to check.
        settings: The keyword arguments with which it will be called.
    """
    expected = "expected an acquisition, or a function of mean, std and best such as bonas.log_ei"
    if isinstance(function, type) or not callable(function):
        hint = ": pass an instance" if isinstance(function, type) else ""
        raise ValueError(f"{expected}; got {function!r}{hint}")
    if _returns(function, "Acquisition"):
        hint = "got a function that creates one"
        raise ValueError(f"{expected}; {hint}: {_call(function)}")
    if not _accepts(function, 3, settings):
        given = f" with the settings {', '.join(settings)}" if settings else ""
        raise ValueError(
            f"{expected}; cannot call {_describe(function)} with three arrays{given}. If it "
            f"creates an acquisition, {_call(function)}"
        )
    pair = Shape((2, 3), float)
    scores = jax.eval_shape(
        lambda *args: function(*args, **settings), pair, pair, Shape((2, 1), float)
    )
    if not isinstance(scores, Shape):
        raise ValueError(
            f"{_name(function)} must return scores, one for each point; got {scores!r}"
        )


def ascent_settings(
    d: int, candidates: int | None, near: int | None, starts: int | None, steps: int
) -> tuple[int, int, int]:
    """Check the settings of `gradient_ascent`; return `candidates`, `near` and `starts`.

    None is replaced by the default for d columns.
    """
    check_all_static(candidates=candidates, near=near, starts=starts, steps=steps)
    far = min(64 * d, 1024) if candidates is None else candidates
    near = max(far // 4, 1) if near is None else near
    starts = min(max(2 * d, 4), 10) if starts is None else starts
    if min(far, near, starts, steps) < 1 or starts > far:
        raise ValueError(
            "candidates, near, starts and steps must be at least 1, and starts at most candidates; "
            f"got {far}, {near}, {starts} and {steps}"
        )
    return far, near, starts


def check_pending(pending: Any) -> None:
    """Raise a ValueError unless the argument can be called as a pending strategy."""
    expected = (
        "pending must be a callable with signature (key, model, state, data), such as "
        "acquire.believer"
    )
    if not callable(pending):
        raise ValueError(f"{expected}; got {pending!r}")
    if not _accepts(pending, 4, {}):
        raise ValueError(
            f"{expected}; got {_describe(pending)}. If it creates such a function, {_call(pending)}"
        )


def hashable_settings(settings: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Convert settings by name, which may be traced, to hashable pairs sorted by name."""
    found = {name: as_hashable(value) for name, value in settings.items()}
    for name, value in found.items():
        check_hashable(value, name)
    return tuple(sorted(found.items()))


def check_hashable(value: Any, name: str) -> None:
    """Raise a TypeError that names the field at fault if a value is not hashable.

    Args:
        value: The value to check; of a dataclass, also the fields are checked.
        name: The name of the value in the message.
    """
    try:
        hash(value)
    except TypeError as error:
        for field in fields(value) if is_dataclass(value) else ():
            check_hashable(getattr(value, field.name), f"{name}.{field.name}")
        if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value)):
            raise TypeError(
                f"settings of a search must be static; got a tracer as {name}: pass a number that "
                "is not an argument of a transformed function, or list it in static_argnames"
            ) from error
        raise TypeError(
            f"{name} must be hashable, such as a number, string or tuple; "
            f"got {type(value).__name__}"
        ) from error


def _accepts(function: Callable[..., Any], n: int, settings: dict[str, Any]) -> bool:
    """Return whether a function can be called with n positional arguments and the settings."""
    try:
        inspect.signature(function).bind(*(None,) * n, **settings)
    except TypeError:
        return False
    except ValueError:  # it has no signature
        pass
    return True


def _returns(function: Callable[..., Any], name: str) -> bool:
    """Return whether a function is annotated to return a class of this name."""
    found = getattr(function, "__annotations__", {}).get("return")
    return name in (found, getattr(found, "__name__", None))


def _call(function: Callable[..., Any]) -> str:
    arguments = "" if _accepts(function, 0, {}) else "..."
    return f"call it, as in {_name(function)}({arguments})"


def _describe(function: Callable[..., Any]) -> str:
    """Return the name of a function with its arguments."""
    return f"{_name(function)}({', '.join(inspect.signature(function).parameters)})"


def _name(function: Callable[..., Any]) -> str:
    """Return the name under which users know a function."""
    name: str = getattr(function, "__name__", repr(function))
    is_ours = getattr(function, "__module__", "").startswith("bonas.acquire")
    return f"acquire.{name}" if is_ours else name
