"""Save and load finished runs: a History, or a Result of `bonas.minimize`."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np

from bonas.search.objectives import direction_sign
from bonas.search.run_files import (
    Arrays,
    PathLike,
    read_run,
    restore_array,
    restore_info,
    restore_state,
    state_arrays,
    write_run,
)
from bonas.search.search import Search
from bonas.spaces import Space, option_from_json, option_to_json

_T = TypeVar("_T")
# The fields of an Evaluation that may be None.
_OPTIONAL = ("cost", "noise")


def save_history(path: PathLike, fields: dict[str, Any]) -> None:
    """Write the fields of a History."""
    plain = ("x", "y", "best", "cost", "sign")
    arrays = {name: fields[name] for name in plain if fields[name] is not None}
    header, more = _pack_state(fields["state"])
    records: list[Any] = []
    header["record"] = _structure(fields["record"], records)
    info = {} if fields["info"] is None else fields["info"]._asdict()
    arrays |= more | {f"info.{name}": array for name, array in info.items()}
    arrays |= {f"record.{i}": array for i, array in enumerate(records)}
    write_run(path, "History", header, arrays)


def load_history(path: PathLike, search: Search | None) -> dict[str, Any]:
    """Return the fields of a saved History."""
    header, arrays = read_run(path, "History")

    def build() -> dict[str, Any]:
        fields: dict[str, Any] = {
            name: restore_array(arrays[name]) if name in arrays else None
            for name in ("x", "y", "best", "cost", "sign")
        }
        x, y = fields["x"], fields["y"]
        if x.shape[:-1] != y.shape:
            raise KeyError("x and y have different lengths")
        if "info.acquisition" in arrays:
            fields["info"] = restore_info(arrays)
        else:
            fields["info"] = None
        if search is not None:
            _check_points(search.space, x.reshape(-1, x.shape[-1]))
        runs = y.shape[:-1]
        fields["state"] = _unpack_state(search, header, arrays, runs)
        fields["record"] = _restore(header["record"], arrays)
        return fields

    return _build(path, build)


def save_result(path: PathLike, fields: dict[str, Any]) -> None:
    """Write the fields of a Result."""
    evaluations = fields["evaluations"]
    header, arrays = _pack_state(fields["state"])
    header["direction"] = fields["direction"]
    header["configs"] = [_config_to_json(each.config) for each in evaluations]
    header["errors"] = [each.error for each in evaluations]
    infos = jax.tree.map(
        lambda *leaves: np.stack(leaves), *(e.info for e in evaluations)
    )
    arrays |= {f"info.{name}": array for name, array in infos._asdict().items()}
    arrays["value"] = np.array([each.value for each in evaluations], float)
    arrays["seconds"] = np.array([each.seconds for each in evaluations], float)
    for name in _OPTIONAL:
        column = [getattr(each, name) for each in evaluations]
        if any(value is not None for value in column):
            arrays[name] = np.array(column, float)  # NaN for None
    write_run(path, "Result", header, arrays)


def load_result(
    path: PathLike, search: Search | None
) -> tuple[list[dict[str, Any]], str, Any]:
    """Return the fields of each saved evaluation, the direction and the state."""
    header, arrays = read_run(path, "Result")

    def build() -> tuple[list[dict[str, Any]], str, Any]:
        infos = restore_info(arrays)
        direction_sign(header["direction"])
        columns = (arrays["value"], arrays["seconds"], header["errors"])
        if {len(column) for column in columns} != {len(header["configs"])}:
            raise KeyError("columns of different lengths")
        space = None if search is None else search.space
        evaluations = [
            {
                "config": _config_from_json(config, space),
                "value": float(value),
                "seconds": float(seconds),
                "error": error,
                "info": jax.tree.map(lambda leaf, i=i: leaf[i], infos),
                **_optional(arrays, i),
            }
            for i, (config, value, seconds, error) in enumerate(
                zip(header["configs"], *columns, strict=True)
            )
        ]
        return evaluations, header["direction"], _unpack_state(search, header, arrays)

    return _build(path, build)


def _optional(arrays: Arrays, i: int) -> dict[str, float]:
    """Return the cost and the noise of an evaluation, unless they are unknown."""
    found = {name: float(arrays[name][i]) for name in _OPTIONAL if name in arrays}
    return {name: value for name, value in found.items() if not np.isnan(value)}


def _build(path: PathLike, build: Callable[[], _T]) -> _T:
    """Return what is built from a file, with errors that name the file."""
    try:
        return build()
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from problem
    except (AttributeError, IndexError, KeyError, TypeError) as problem:
        raise ValueError(
            f"{path} is damaged ({problem!r}); save the run again"
        ) from problem


def _pack_state(state: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the part of the header about a state, and its arrays."""
    paths, arrays = state_arrays(state)
    return {"state": paths}, arrays


def _unpack_state(
    search: Search | None,
    header: dict[str, Any],
    arrays: Arrays,
    runs: tuple[int, ...] = (),
) -> Any:
    if search is None or not header["state"]:
        return None
    return restore_state(search, header["state"], arrays, runs=runs)


def _check_points(space: Space, x: Any) -> None:
    if x.shape[1] != space.dim:
        raise ValueError(
            f"the run was of a space of {x.shape[1]} parameters; the search has {space.dim}"
        )
    space.check(np.asarray(x), "saved point", exists=True)


def _structure(tree: Any, leaves: list[Any]) -> Any:
    """Return nested dicts, lists and tuples as JSON, and append their arrays to `leaves`."""
    if tree is None:
        return None
    if type(tree) is dict and all(isinstance(name, str) for name in tree):
        return {"dict": {name: _structure(part, leaves) for name, part in tree.items()}}
    if type(tree) in (list, tuple):
        return {type(tree).__name__: [_structure(part, leaves) for part in tree]}
    if not hasattr(tree, "shape"):
        raise ValueError(
            "a history can be saved if its record is made of arrays in dicts, lists and tuples; "
            f"it has a {type(tree).__name__}. Save history._replace(record=...) in such a form"
        )
    leaves.append(tree)
    return len(leaves) - 1


def _restore(structure: Any, arrays: Arrays) -> Any:
    """Return what `_structure` took apart."""
    if structure is None:
        return None
    if isinstance(structure, int):
        return restore_array(arrays[f"record.{structure}"])
    if "dict" in structure:
        parts = structure["dict"].items()
        return {name: _restore(part, arrays) for name, part in parts}
    kind = tuple if "tuple" in structure else list
    return kind(_restore(part, arrays) for part in structure[kind.__name__])


def _config_to_json(config: dict[str, Any]) -> dict[str, Any]:
    return {name: option_to_json(value) for name, value in config.items()}


def _config_from_json(written: dict[str, Any], space: Space | None) -> dict[str, Any]:
    """Return a configuration; options that JSON cannot hold are looked up in the space."""
    config = {}
    for name, value in written.items():
        parameter = None if space is None else space.parameters.get(name)
        options = () if parameter is None else parameter.choices or ()
        same = [option for option in options if option_to_json(option) == value]
        config[name] = same[0] if same else option_from_json(value)
    if space is not None:
        space.encode(config)  # raises a ValueError if it is not in the space
    return config
