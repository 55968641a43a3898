"""Spaces that are a box: numbers without conditions."""

from bonas.search.checks import check_space
from bonas.spaces import Float, Space, TableSpace


def check_box(space: Space, reason: str) -> None:
    """Raise a ValueError unless all parameters are numbers without conditions."""
    check_space(space)
    has_options = any(space.categories)
    if has_options or space.conditions or isinstance(space, TableSpace):
        raise ValueError(
            f"{reason}: expected a space of numbers without conditions; got {space}"
        )


def unit_cube(d: int, prefix: str = "y") -> Space:
    """Return the space [0, 1]^d."""
    return Space(**{f"{prefix}{i}": Float(0.0, 1.0) for i in range(1, d + 1)})
