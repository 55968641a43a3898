"""The settings of a study: stored when it is created, and checked when it is opened again."""

import json
import math
import platform
import secrets
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import jax

from bonas.configuration import precision_error
from bonas.search import Search, check_seed
from bonas.spaces import Space
from bonas.study.database import Database, StudyError
from bonas.study.serialize import space_from_json, space_to_json
from bonas.study.storage import read_values, write_values
from bonas.study.stored_trials import is_time, shorten

# The directions of a search, and the signs that convert their values to values to minimize.
DIRECTIONS = {"minimize": 1.0, "maximize": -1.0}

# The stored names of the default search, and of one that the user passed.
DEFAULT_SEARCH = "bonas.bayes(space)"
CUSTOM_SEARCH = "custom"

# The largest capacity that the first state of a search can have.
_LARGEST_CAPACITY = 2**20
# Exceptions raised when a space is built from invalid JSON.
_ERRORS_OF_SPACES = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


def new_settings(
    space: Space,
    *,
    seed: int | None,
    direction: str | None,
    is_custom: bool,
    capacity: int,
    extra: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the settings of a new study.

    Args:
        space: The space to search.
        seed: Seed of the search, an integer from 0 to 2^63 - 1; 0 by default.
        direction: "minimize" (the default) or "maximize".
        is_custom: Whether the user passed a search.
        capacity: Points that the first state of the search can hold.
        extra: Additional settings of the user, as JSON.
    """
    direction = direction or "minimize"
    if direction not in DIRECTIONS:
        raise ValueError(
            f'direction must be "minimize" or "maximize"; got {direction!r}'
        )
    return {
        "id": secrets.token_hex(8),
        "space": space_to_json(space),
        "seed": 0 if seed is None else check_seed(seed),
        "direction": direction,
        "search": CUSTOM_SEARCH if is_custom else DEFAULT_SEARCH,
        "capacity": capacity,
        "created": time.time(),
        "versions": versions(),
        "extra": dict(extra or {}),
    }


def open_settings(
    database: Database,
    space: Space | None,
    *,
    seed: int | None,
    direction: str | None,
    **more: Any,
) -> dict[str, Any]:
    """Return the settings of a study, and store them first if the study is new.

    Args:
        database: File of the study.
        space: Space of the study; required for a new study.
        seed: Expected seed, or None.
        direction: Expected direction, or None.
        **more: Other arguments of `new_settings`.

    Raises:
        StudyError: If the stored settings are invalid or differ from the arguments.
    """
    if space is not None and not database.readonly:
        _store(database, new_settings(space, seed=seed, direction=direction, **more))
    settings = read_values(database)
    if settings:
        check_stored_settings(database.path, settings)
    else:  # a process was killed while it created the study
        raise StudyError(
            f"{database.path} is empty; pass a space to create a study there"
        )
    check_settings(database.path, settings, space, seed=seed, direction=direction)
    return settings


def check_stored_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """Raise a StudyError unless all stored settings are present and have the right type."""
    expected: dict[str, tuple[str, Callable[[Any], bool]]] = {
        "id": ("a string", lambda value: isinstance(value, str)),
        "space": ("parameters by name", _is_space),
        "seed": ("an integer", _is_seed),
        "direction": (
            " or ".join(DIRECTIONS),
            lambda value: value in tuple(DIRECTIONS),
        ),
        "search": ("a string", lambda value: isinstance(value, str)),
        "capacity": (
            f"an integer from 1 to {_LARGEST_CAPACITY}",
            lambda value: type(value) is int and 1 <= value <= _LARGEST_CAPACITY,
        ),
        "created": ("a Unix time", is_time),
        "versions": ('versions by name, and "precision"', _is_versions),
        "extra": ("a JSON object", lambda value: isinstance(value, dict)),
    }
    for name, (description, is_expected) in expected.items():
        value = settings.get(name)
        if not is_expected(value):
            raise StudyError(
                f"{path}: setting {name!r}: expected {description}; got {shorten(value)}"
            )
    try:
        space_from_json(settings["space"])
    except _ERRORS_OF_SPACES as problem:
        raise StudyError(f"{path}: setting 'space': {problem}") from problem


def _is_seed(value: Any) -> bool:
    # Negative seeds were once allowed.
    return type(value) is int and -(2**63) <= value < 2**63


def _is_space(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(each, dict) for each in value.values()
    )


def _is_versions(value: Any) -> bool:
    texts = value.values() if isinstance(value, dict) else [None]
    return all(isinstance(each, str) for each in texts) and "precision" in value


def _store(database: Database, settings: dict[str, Any]) -> None:
    """Store the settings of a study, unless it already has some."""
    with database.write_transaction() as db:
        if not read_values(database):
            write_values(database, settings)
            db.execute(
                "INSERT INTO search (asks, observed, capacity, points) VALUES (0, 0, 0, 0)"
            )


def check_settings(
    path: Path, settings: Mapping[str, Any], space: Space | None, **expected: Any
) -> None:
    """Raise a StudyError if stored settings differ from the given space or expected values."""
    for name, value in expected.items():
        if value is not None and value != settings[name]:
            raise StudyError(
                f"{path} was created with {name}={settings[name]!r}, not {value!r}; use the same "
                "value or another file"
            )
    if space is None:
        return
    if json.loads(json.dumps(space_to_json(space))) != settings["space"]:
        raise StudyError(
            f"{path} was created with another space, {space_from_json(settings['space'])}; use "
            "that one, or another file"
        )


def check_can_ask(
    path: Path, settings: Mapping[str, Any], space: Space, search: Search | None
) -> None:
    """Raise a StudyError unless this process can continue a study with the given search.

    It needs the custom search that the study was created with, if any, and the same precision.
    """
    if search is None and settings["search"] == CUSTOM_SEARCH:
        raise StudyError(
            f"{path} was created with a custom search; pass it as search= to ask for more "
            "trials"
        )
    stored = settings["versions"]["precision"]
    current = _precision()
    if stored != current:
        raise StudyError(precision_error(f"{path} was created"))
    if search is not None and search.space != space:
        raise StudyError(
            "the search and the study have different spaces; make the search for the study's space"
        )


def check_limits(*, trials: Any, seconds: Any, trial_seconds: Any) -> None:
    """Raise a ValueError unless each limit is a positive number (an integer for trials) or None."""
    is_integer = isinstance(trials, Integral) and not isinstance(trials, bool)
    if trials is not None and not (is_integer and trials >= 1):
        raise ValueError(f"trials must be an integer of at least 1; got {trials!r}")
    for name, value in (("seconds", seconds), ("trial_seconds", trial_seconds)):
        if value is not None and not (
            isinstance(value, Real) and 0.0 < float(value) < math.inf
        ):
            raise ValueError(f"{name} must be a positive number; got {value!r}")


def versions() -> dict[str, str]:
    """Return the package versions and the precision that determine the points of a search."""
    packages = {
        name: version(name) for name in ("bonas", "jax", "jaxlib", "numpy", "numpyro")
    }
    return {"python": platform.python_version(), **packages, "precision": _precision()}


def _precision() -> str:
    return str(jax.dtypes.canonicalize_dtype(float))
