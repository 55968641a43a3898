"""Searches that move through the unit cube as a whole need a space that fills it."""

from bonas.spaces import Choice, Listed, Space


def check_box(space: Space, why: str) -> None:
    """A ValueError, which begins with the reason, where a space has options, conditions, or a list of its points."""
    if isinstance(space, Listed) or any(isinstance(p, Choice) or p.when is not None for p in space.parameters.values()):
        raise ValueError(f"{why}: it needs a space of numbers without conditions; got {space}")
