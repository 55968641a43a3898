"""Read parameters of any type from JSON."""

from collections.abc import Iterator, Mapping
from typing import Any

from bonas.spaces.conditions import When
from bonas.spaces.parameters import Parameter


def parameter_from_json(written: Mapping[str, Any], when: When = None) -> Parameter:
    """Create a parameter of any type from the output of its `to_json` and a condition."""
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
