"""Convert parameters and their options to and from JSON.

An option may be any hashable value. None, booleans, numbers, strings and tuples of these are
restored exactly. For other objects, such as classes, only the name is stored.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bonas.spaces.conditions import When
from bonas.spaces.parameter import Parameter


def parameter_from_json(written: Mapping[str, Any], when: When = None) -> Parameter:
    """Create a parameter of any type from the output of its `to_json`.

    Args:
        written: The output of `Parameter.to_json`.
        when: The condition of the parameter, which is stored separately.

    Raises:
        ValueError: If no imported subclass of `Parameter` has the stored type name.
    """
    for kind in _subclasses(Parameter):  # type: ignore[type-abstract]
        if kind.__name__ == written["kind"]:
            return kind.from_json(written, when)
    raise ValueError(
        f"unknown parameter type {written['kind']!r}; import the module that defines it first"
    )


def _subclasses(kind: type[Parameter]) -> Iterator[type[Parameter]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def option_to_json(option: Any) -> Any:
    """Convert an option of a parameter to a value that JSON can represent.

    A tuple becomes {"tuple": [...]}. Objects that JSON cannot represent become {"name": ...}.
    """
    if isinstance(option, np.generic):
        option = option.item()
    if option is None or type(option) in (bool, int, float, str):
        return option
    if type(option) is tuple:
        return {"tuple": [option_to_json(part) for part in option]}
    return {"name": getattr(option, "__qualname__", None) or repr(option)}


def option_from_json(written: Any) -> Any:
    """Restore an option from the output of `option_to_json`.

    For an option of which only the name was stored, return the name.
    """
    if not isinstance(written, dict):
        return written
    if "tuple" in written:
        return tuple(map(option_from_json, written["tuple"]))
    return written["name"]


def is_complete(written: Any) -> bool:
    """Return whether the output of `option_to_json` restores the option, not only its name."""
    if not isinstance(written, dict):
        return True
    return "tuple" in written and all(map(is_complete, written["tuple"]))
