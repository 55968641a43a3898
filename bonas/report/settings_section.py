"""The section of a report on the settings of the study; all text from users is escaped."""

import json
import time
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from bonas.report.html_tables import html_table, html_value
from bonas.report.study_facts import StudyFacts

_COMPARISONS = {"==": "is", "!=": "is not", ">=": "≥", "<=": "≤"}


def settings(facts: StudyFacts) -> str:
    """Render the table, the space, and the settings that determine the points of the search."""
    about = dict(facts.study.about)
    space = about.pop("space", {})
    versions = about.pop("versions", {})
    extra = about.pop("extra", {})
    created = about.pop("created", None)
    about = {"file": str(facts.study.path), **about}
    if created is not None:
        about["created"] = time.strftime(
            "%Y-%m-%d %H:%M:%S %Z", time.localtime(created)
        )
    table = _pairs("Table", facts.subject.table) if facts.subject.table else ""
    folded = _folded("settings given at creation", extra) + _folded(
        "notes", facts.notes
    )
    return (
        table
        + _space(space)
        + _pairs("Study", about)
        + _pairs("Versions", versions)
        + folded
    )


def _pairs(title: str, values: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{html_value(value)}</td></tr>"
        for name, value in values.items()
    )
    return f"<h3>{title}</h3>" + html_table("", rows)


def _folded(title: str, value: Any) -> str:
    if not value:
        return ""
    content = f"<pre>{escape(json.dumps(value, indent=1))}</pre>"
    return f"<details><summary>{title}</summary>{content}</details>"


def _space(space: Mapping[str, Any]) -> str:
    head = "<tr><th>parameter</th><th>kind</th><th>values</th><th>when</th></tr>"
    rows = []
    for name, each in space.items():
        cells = [escape(each["kind"]), _range(each), _condition(each, space)]
        data = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f"<tr><th>{escape(name)}</th>{data}</tr>")
    return "<h3>Space</h3>" + html_table(head, "".join(rows))


def _range(parameter: Mapping[str, Any]) -> str:
    if "options" in parameter:
        return ", ".join(_option(option) for option in parameter["options"])
    text = f"{html_value(parameter['low'])} to {html_value(parameter['high'])}"
    return f"{text}, logarithmic" if parameter["log"] else text


def _option(option: Any) -> str:
    return escape(json.dumps(option) if isinstance(option, Mapping) else str(option))


def _condition(parameter: Mapping[str, Any], space: Mapping[str, Any]) -> str:
    """Describe the condition of a parameter."""
    when = parameter.get("when")
    if not isinstance(when, Sequence) or isinstance(when, str):
        return "by a function" if when else ""
    terms = []
    for name, comparison, value in when:
        options = space[name].get("options")
        text = html_value(value) if options is None else _option(options[int(value)])
        terms.append(
            f"{escape(name)} {_COMPARISONS.get(comparison, escape(comparison))} {text}"
        )
    return " and ".join(terms)
