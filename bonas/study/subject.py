"""What a study is about, as far as it knows: the table that was searched on, what a value is, and what a trial is."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bonas.study.parts import in_parts
from bonas.study.study import Study
from bonas.tabular.look import NAMES

NOTE = "table"  # under which a search on a table notes its data, target, task and score


class Subject(NamedTuple):
    """Words for a report; text of users is not escaped."""

    value: str = "value"  # what is told of a trial, such as "validation RMSE of price"
    score: str = "value"  # the same in short
    table: Mapping[str, str] = {}  # settings of a search on a table
    parts: bool = False  # whether a trial is one part of a network's training
    seconds: bool = False  # whether costs are seconds, and nothing else

    @property
    def thing(self) -> str:
        """What has a configuration: a trial, or a network that several trials train."""
        return "network" if self.parts else "trial"


UNKNOWN = Subject()


def subject(study: Study) -> Subject:
    """What is known of a study: from its job, and from what its search has noted."""
    job = _mapping(_mapping(study.about.get("extra")).get("job"))
    if not job:
        return UNKNOWN
    known = job | _mapping(study.notes.get("result")) | _mapping(study.notes.get(NOTE))
    names = {"data set": "data", "target": "target", "task": "task", "networks": "space", "method": "method"}
    table = {name: str(known[key]) for name, key in names.items() if known.get(key)}
    score = NAMES.get(str(known.get("score")), "value")
    of = f" of {known['target']}" if known.get("target") else ""
    value = "value" if score == "value" else f"validation {score}{of}"
    return Subject(value, score, table, in_parts(study.about), seconds=True)


def _mapping(given: Any) -> dict[str, Any]:
    return dict(given) if isinstance(given, Mapping) else {}
