"""Spaces and configurations as JSON, and back: what a study keeps of them.

Options of a Choice may be any hashable value. Plain ones (None, truth values, numbers, text and tuples of them) come back as
they were; of others, and of conditions that are functions, only a name can be kept, and whoever goes on has to bring them.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bonas.spaces import Choice, Float, Int, Listed, Space
from bonas.spaces.conditions import Terms, read_condition
from bonas.spaces.parameters import Parameter
from bonas.study.file import StudyError


def write_option(value: Any) -> Any:
    """A value as JSON: a tuple is {"tuple": [...]}, and what cannot be kept {"name": ...}."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is tuple:
        return {"tuple": [write_option(part) for part in value]}
    return {"name": getattr(value, "__qualname__", None) or repr(value)}


def read_option(written: Any) -> Any:
    """The value again; the name alone of one that could not be kept."""
    if isinstance(written, dict):
        return tuple(map(read_option, written["tuple"])) if "tuple" in written else written["name"]
    return written


def write_config(config: Mapping[str, Any]) -> str:
    """A configuration as text."""
    return json.dumps({name: write_option(value) for name, value in config.items()})


def write_space(space: Space) -> dict[str, Any]:
    """A space as JSON."""
    if isinstance(space, Listed):
        raise StudyError("a study does not keep a Listed space; search it by bonas.minimise or bonas.run")
    return {name: _write_parameter(name, p, space.parameters) for name, p in space.parameters.items()}


def _write_parameter(name: str, parameter: Parameter, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    written: dict[str, Any] = {"kind": type(parameter).__name__}
    if isinstance(parameter, Choice):
        written["options"] = [write_option(option) for option in parameter.names]
    else:
        low, high = (np.asarray(end).item() for end in (parameter.low, parameter.high))
        written |= {"low": low, "high": high, "log": bool(parameter.log)}
    if parameter.when is not None:
        condition = read_condition(name, parameter.when, parameters)
        written["when"] = [list(term) for term in condition.terms] if isinstance(condition, Terms) else "function"
    return written


def is_whole(written: Mapping[str, Any]) -> bool:
    """Whether a space can be made again of what was kept: no condition is a function, and every option is plain."""
    return all(p.get("when") != "function" and all(map(_kept, p.get("options", ()))) for p in written.values())


def _kept(option: Any) -> bool:
    return not isinstance(option, dict) or ("tuple" in option and all(map(_kept, option["tuple"])))


def read_space(written: Mapping[str, Any]) -> Space:
    """The space again; conditions that were functions are left out."""
    return Space(**{name: _read_parameter(p, written) for name, p in written.items()})


def _read_parameter(written: Mapping[str, Any], others: Mapping[str, Any]) -> Parameter:
    when = written.get("when")
    when = None if when in (None, "function") else _read_when(when, others)
    if written["kind"] == "Choice":
        return Choice(*map(read_option, written["options"]), when=when)
    kind: type[Float] | type[Int] = Float if written["kind"] == "Float" else Int
    return kind(written["low"], written["high"], log=written["log"], when=when)


def _read_when(terms: list, others: Mapping[str, Any]):
    """The dict that was given; Terms where one parameter is compared twice, which no dict can say."""
    if len({other for other, _, _ in terms}) < len(terms):
        return Terms(tuple((other, comparison, number) for other, comparison, number in terms))
    return {other: (comparison, _compared(others[other], number)) for other, comparison, number in terms}


def _compared(parent: Mapping[str, Any], number: float):
    return read_option(parent["options"][int(number)]) if parent["kind"] == "Choice" else number


def check_conditions(space: Space, records: Iterable[Any]) -> None:
    """A StudyError where parameters of a trial are active that its configuration does not have, or the other way round."""
    known = list(records)
    if not known:
        return
    active = np.asarray(space.active(np.array([record.u for record in known])))
    for record, on in zip(known, active, strict=True):
        there = {name for name, is_on in zip(space.names, on, strict=True) if is_on}
        if there != set(record.config):
            raise StudyError(
                f"the space has other conditions than the study's: at trial {record.number}, {record.config}, it has {there}"
            )


class Configs:
    """Reads configurations: options that could not be kept are looked up in the space by their names."""

    def __init__(self, space: Space):
        self._options = {
            name: {json.dumps(write_option(option)): option for option in parameter.names}
            for name, parameter in space.parameters.items()
            if isinstance(parameter, Choice)
        }

    def read(self, text: str) -> dict[str, Any]:
        """The configuration that a text holds."""
        return {name: self._value(name, value) for name, value in json.loads(text).items()}

    def _value(self, name: str, written: Any) -> Any:
        options = self._options.get(name)
        if options is None:
            return written
        return options.get(json.dumps(written), read_option(written))
