"""Trials that each train one part of a network, as those of a search on learning curves do, and the networks they make up."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bonas.study.store import Record


def in_parts(about: Mapping[str, Any]) -> bool:
    """Whether the settings of a study say that its trials are parts of networks."""
    extra = about.get("extra")
    job = extra.get("job") if isinstance(extra, Mapping) else None
    return isinstance(job, Mapping) and job.get("method") == "curves"


def part_numbers(records: Iterable[Record]) -> dict[int, int]:
    """Which part of its network's training a trial is, from 1, by the number of the trial."""
    trained: dict[str, int] = {}
    numbers = {}
    for record in records:
        name = _name(record)
        numbers[record.number] = trained.get(name, 0) + 1
        trained[name] = trained.get(name, 0) + (record.state == "told")
    return numbers


def networks(told: Iterable[Record]) -> list[Record]:
    """The last part of every network, in the order they were begun, with what all of its parts reported."""
    parts: dict[str, list[Record]] = {}
    for record in told:
        parts.setdefault(_name(record), []).append(record)
    return [replace(each[-1], reports=_joined(each)) for each in parts.values()]


def _joined(parts: Sequence[Record]) -> tuple[tuple[int, float], ...]:
    return tuple(sorted({step: value for part in parts for step, value in part.reports}.items()))


def _name(record: Record) -> str:
    return repr(sorted(record.config.items()))
