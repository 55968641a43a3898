"""Ordinal: a parameter with a list of ordered values."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bonas.spaces.choice import ListedParameter
from bonas.spaces.conditions import When, is_number
from bonas.spaces.parameter import Parameter
from bonas.spaces.parameter_json import option_from_json


@dataclass(frozen=True)
class Ordinal(ListedParameter):
    """A parameter with a list of ordered values, such as `Ordinal((16, 32, 64, 128))`.

    Neighboring values are equally far apart. Conditions compare positions in the list:
    {"width": (">=", 64)} holds for 64 and the values after it.

    Args:
        choices: The values in their order, of any hashable type, such as "low", "middle", "high".
        when: Condition under which the parameter is active (see `Space`); None if it always is.
    """

    choices: tuple[Hashable, ...]
    when: When = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.choices, str) or not hasattr(self.choices, "__iter__"):
            raise TypeError(
                "Ordinal takes its values as one sequence, as in Ordinal((16, 32, 64)); "
                f"got {self.choices!r}"
            )
        object.__setattr__(self, "choices", tuple(self.choices))

    @property
    def numeric(self) -> bool:  # type: ignore[override]
        return all(map(is_number, self.choices))

    @classmethod
    def from_json(cls, written: Mapping[str, Any], when: When = None) -> "Parameter":
        return cls(tuple(map(option_from_json, written["options"])), when=when)
