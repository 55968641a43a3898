"""Convert spaces and configurations to JSON, and states of a search to bytes, for a study file.

Functions as conditions, and options other than None, booleans, numbers, strings and tuples of
these, are stored only by name. To continue a study of such a space, pass the space again.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from bonas.spaces import (
    COMPARISONS,
    Parameter,
    Space,
    TableSpace,
    Terms,
    When,
    is_complete,
    option_from_json,
    option_to_json,
    parameter_from_json,
    read_condition,
)
from bonas.study.compiled_search import CompiledSearch, State
from bonas.study.database import StudyError
from bonas.study.records import TrialRecord

# bytes stored together: with its key, a chunk fills one page of the file
CHUNK_SIZE = 4000
OTHER_SEARCH = (
    "the study was created with another search; pass that search as search=, with the same "
    "settings"
)


def config_to_json(config: Mapping[str, Any]) -> str:
    """Convert a configuration to JSON text."""
    return json.dumps({name: option_to_json(value) for name, value in config.items()})


def exact_config(
    space: Space, u: np.ndarray, config: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the active parameters of a configuration, with floats unchanged.

    Decoding a point of the unit cube may round floats.

    Args:
        space: The space.
        u: The point (d,) that encodes the configuration.
        config: The configuration.
    """
    return {
        name: float(config[name]) if isinstance(value, float) else value
        for name, value in space.decode(u).items()
    }


def space_to_json(space: Space) -> dict[str, Any]:
    """Convert a space to a JSON-serializable dict; raise a StudyError for a TableSpace."""
    if isinstance(space, TableSpace):
        raise StudyError(
            "a study cannot store a TableSpace; search it with bonas.minimize or bonas.run"
        )
    return {
        name: _parameter_to_json(name, parameter, space.parameters)
        for name, parameter in space.parameters.items()
    }


def _parameter_to_json(
    name: str, parameter: Parameter, parameters: Mapping[str, Parameter]
) -> dict[str, Any]:
    written = parameter.to_json()
    if parameter.when is not None:
        condition = read_condition(name, parameter.when, parameters)
        if isinstance(condition, Terms):
            written["when"] = [list(term) for term in condition.terms]
        else:
            written["when"] = "function"
    return written


def is_restorable(written: Mapping[str, Any]) -> bool:
    """Return whether a space can be restored from JSON without loss.

    It cannot if a condition is a function or an option is stored only by name.

    Args:
        written: Result of `space_to_json`.
    """
    return all(
        parameter.get("when") != "function"
        and all(map(is_complete, parameter.get("options", ())))
        for parameter in written.values()
    )


def space_from_json(written: Mapping[str, Any]) -> Space:
    """Restore a space from JSON, without conditions that were functions."""
    return Space(
        **{
            name: _parameter_from_json(parameter, written)
            for name, parameter in written.items()
        }
    )


def _parameter_from_json(
    written: Mapping[str, Any], space: Mapping[str, Any]
) -> Parameter:
    terms = written.get("when")
    when = None if terms in (None, "function") else _condition_from_json(terms, space)
    return parameter_from_json(written, when)


def _condition_from_json(
    terms: list[tuple[str, str, float]], space: Mapping[str, Any]
) -> When:
    """Restore a condition as a dict, or as Terms if it compares one parameter twice."""
    for parent, comparison, number in terms:
        if (
            parent not in space
            or comparison not in COMPARISONS
            or isinstance(number, str)
        ):
            raise ValueError(
                f"a stored condition has an invalid term {[parent, comparison, number]}; "
                "expected (parameter, comparison, number)"
            )
    if len({parent for parent, _, _ in terms}) < len(terms):
        return Terms(tuple((name, sign, number) for name, sign, number in terms))
    return {
        parent: (comparison, _compared_value(space[parent], number))
        for parent, comparison, number in terms
    }


def _compared_value(parent: Mapping[str, Any], number: float) -> Any:
    return (
        option_from_json(parent["options"][int(number)])
        if "options" in parent
        else number
    )


def check_conditions(space: Space, trials: Iterable[TrialRecord]) -> None:
    """Raise a StudyError unless the conditions of a space match the stored trials."""
    records = list(trials)
    if not records:
        return
    masks = np.asarray(space.active(np.array([record.u for record in records])))
    for record, mask in zip(records, masks, strict=True):
        active = {
            name for name, is_active in zip(space.names, mask, strict=True) if is_active
        }
        if active != set(record.config):
            raise StudyError(
                "the conditions of the space differ from the stored ones: trial "
                f"{record.number} has {sorted(record.config)}, but {sorted(active)} are active"
            )


class ConfigParser:
    """A parser of stored configurations, which looks up options stored by name in the space."""

    def __init__(self, space: Space):
        self._parameters = space.parameters
        self._options = {
            name: {
                json.dumps(option_to_json(option)): option
                for option in parameter.choices
            }
            for name, parameter in space.parameters.items()
            if parameter.choices
        }

    def parse(self, written: Mapping[str, Any]) -> dict[str, Any]:
        """Restore a configuration from JSON; raise a ValueError if it is invalid."""
        return {name: self._value(name, value) for name, value in written.items()}

    def _value(self, name: str, written: Any) -> Any:
        if name not in self._parameters:
            raise ValueError(
                f"unknown parameter {name!r}; expected one of {', '.join(self._parameters)}"
            )
        options = self._options.get(name)
        value = written
        if options is not None:
            value = options.get(json.dumps(written), option_from_json(written))
        self._parameters[name].number(name, value)  # raises a ValueError if not allowed
        return value


# The state of a search: an ask writes the chunks that changed


def leaf_bytes(persistent: tuple[bool, ...], state: State) -> dict[int, np.ndarray]:
    """Return views of the persistent leaves as bytes, (k,), by their position."""
    leaves = zip(persistent, state, strict=True)
    return {
        i: np.asarray(leaf).reshape(-1).view(np.uint8)
        for i, (is_persistent, leaf) in enumerate(leaves)
        if is_persistent
    }


def changed_chunks(
    new: Mapping[int, np.ndarray], old: Mapping[int, np.ndarray]
) -> list[tuple[int, int, bytes]]:
    """Return the chunks (leaf, chunk, content) of new leaves that differ from the old ones."""
    chunks = []
    for leaf, content in new.items():
        for chunk in _differing_chunks(content, old.get(leaf)):
            start = chunk * CHUNK_SIZE
            chunks.append((leaf, chunk, content[start : start + CHUNK_SIZE].tobytes()))
    return chunks


def _differing_chunks(new: np.ndarray, old: np.ndarray | None) -> list[int]:
    if old is None or len(old) != len(new):
        return list(range(max(1, -(-len(new) // CHUNK_SIZE))))
    # Compare eight bytes at once where they fit.
    dtype = np.dtype(np.uint64 if len(new) % 8 == 0 else np.uint8)
    positions = np.flatnonzero(new.view(dtype) != old.view(dtype))
    chunks: list[int] = np.unique(positions * dtype.itemsize // CHUNK_SIZE).tolist()
    return chunks


def restore_state(
    compiled: CompiledSearch, init_key: PRNGKeyArray, stored: Mapping[int, bytes]
) -> State:
    """Restore a search state from its stored leaves, and initialize the others.

    Leaves that are not stored do not affect later points.
    """
    leaves = compiled.init(init_key)
    expected = {
        i: leaf.nbytes
        for i, (leaf, kept) in enumerate(zip(leaves, compiled.persistent, strict=True))
        if kept
    }
    if expected != {i: len(content) for i, content in stored.items()}:
        raise StudyError(OTHER_SEARCH)
    return tuple(
        jnp.asarray(np.frombuffer(stored[i], leaf.dtype).reshape(leaf.shape))
        if compiled.persistent[i]
        else leaf
        for i, leaf in enumerate(leaves)
    )
