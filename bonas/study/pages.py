"""The parts of a report that are text and tables. Everything that is not ours is escaped here."""

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from bonas.spaces import Choice, Space
from bonas.study.drawing import number
from bonas.study.parts import part_numbers
from bonas.study.store import Record
from bonas.study.study import Study
from bonas.study.subject import UNKNOWN, Subject
from bonas.study.written import is_whole, write_space

_ROWS = 2000  # trials that the table has
_REASONS, _TRACE = 200, 5000  # reasons of failure, and letters from the end of a traceback, that are shown
_DAY, _HOUR, _MINUTE = 86400, 3600, 60


def counted(n: int, thing: str) -> str:
    """A number of things, in words: 1 trial, 2 trials."""
    return f"{n} {thing}{'s' * (n != 1)}"


def said(value: Any) -> str:
    """A value of a user's, as HTML."""
    return escape(number(value))


def is_whole_space(study: Study) -> bool:
    """Whether the study has its conditions: from the file, or because the space was given again."""
    return is_whole(study.about["space"]) or write_space(study.space) == study.about["space"]


def headline(study: Study, records: Sequence[Record], best: Record | None, about: Subject) -> str:
    """The best value and where it is."""
    states = [record.state for record in records]
    waiting = len(records) - states.count("told") - states.count("failed")
    counts = [counted(states.count("told"), "trial") + " told"]
    counts += [f"{n} {what}" for n, what in ((states.count("failed"), "failed"), (waiting, "under way or queued")) if n]
    counts += [f"{study.direction}d", f"seed {study.seed}", *_lasted(records)]
    title = f'<p class="eyebrow">bonas study</p><h1>{escape(study.path.stem)}</h1>'
    if best is None:
        found = '<p class="lead">No trial has been told yet.</p>'
    else:
        chips = "".join(f"<div><dt>{escape(name)}</dt><dd>{said(value)}</dd></div>" for name, value in best.config.items())
        found = f'<p class="value">{said(best.value)}</p><p class="lead">the best {escape(about.value)}, trial {best.number}'
        found += f"{_in_words(study.notes, best)}</p><dl class='config'>{chips}</dl>"
    return title + found + f'<p class="counts">{" · ".join(counts)}</p>'


def _in_words(notes: Mapping[str, Any], best: Record) -> str:
    """The words that were noted for a configuration, if they are of this trial: a better one may have come since."""
    result = notes.get("result")
    noted = result.get("best") if isinstance(result, Mapping) else None
    if not isinstance(noted, Mapping) or noted.get("number") != best.number or not isinstance(noted.get("in_words"), str):
        return ""
    return f": {escape(noted['in_words'])}"


def _lasted(records: Iterable[Record]) -> list[str]:
    """How long the study has taken, where that is known."""
    begun = [record.asked for record in records if record.asked is not None]
    ended = [record.ended for record in records if record.ended is not None]
    return [f"{_duration(max(ended) - min(begun))} in all"] if begun and ended else []


def _duration(seconds: float) -> str:
    if seconds >= _DAY:
        return f"{seconds / _DAY:.1f} days"
    if seconds >= _HOUR:
        return f"{seconds / _HOUR:.1f} hours"
    return f"{seconds / _MINUTE:.1f} minutes" if seconds >= _MINUTE else f"{seconds:.1f} seconds"


def failures(records: Sequence[Record]) -> str:
    """Failed trials by reason, to unfold with what they tried and where it happened."""
    failed = [record for record in records if record.state == "failed"]
    if not failed:
        return "<p>No trial failed.</p>"
    alike: dict[tuple[str, str], list[Record]] = {}
    for record in failed:
        alike.setdefault((record.error, record.traceback), []).append(record)
    shown = list(alike.items())[:_REASONS]
    more = f"<p>{counted(len(alike) - _REASONS, 'other reason')} not shown.</p>" if len(alike) > _REASONS else ""
    return (
        f"<p>{counted(len(failed), 'trial')} of {len(records)} failed.</p>"
        + "".join(_failure(error, trace, group) for (error, trace), group in shown)
        + more
    )


def _failure(error: str, trace: str, group: Sequence[Record]) -> str:
    who = f"trial {group[0].number}" if len(group) == 1 else counted(len(group), "trial")
    lines = [
        f"<li>trial {record.number}: " + ", ".join(f"{escape(k)} {said(value)}" for k, value in record.config.items()) + "</li>"
        for record in group
    ]
    where = f"<pre>{escape(trace[-_TRACE:])}</pre>" if trace else ""
    return f'<details><summary><b>{who}</b> {escape(error)}</summary>{where}<ul class="muted">{"".join(lines)}</ul></details>'


def table(records: Sequence[Record], space: Space, about: Subject = UNKNOWN) -> str:
    """All trials; a click on a column sorts by it."""
    if not records:
        return "<p>There are no trials yet.</p>"
    shown = records[-_ROWS:]
    columns = [
        *(("trial", "n"), ("state", ""), (about.score, "n")),
        *([("part", "n")] if about.parts else []),
        *((name, "n" * (not isinstance(p, Choice))) for name, p in space.parameters.items()),
        ("seconds" if about.seconds else "cost", "n"),
    ]
    parts = part_numbers(records) if about.parts else {}
    head = "".join(f'<th class="{kind}"><button type="button">{escape(name)}</button></th>' for name, kind in columns)
    rows = "".join(_row(record, space.names, parts) for record in shown)
    some = (
        f"The latest {_ROWS} of {len(records)}; <code>study.csv(path)</code> writes all. " if len(shown) < len(records) else ""
    )
    whole = f'<table class="sortable"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    cost = "" if about.seconds else " Costs are seconds, unless another was told."
    return f'<p>{some}A click on the name of a column sorts by it.{cost}</p><div class="scroll tall">{whole}</div>'


def _row(record: Record, names: Sequence[str], parts: Mapping[int, int]) -> str:
    part = [parts[record.number]] if parts else []
    cells = [record.number, record.state, record.value, *part, *(record.config.get(name) for name in names), record.cost]
    return "<tr>" + "".join(map(_cell, cells)) + "</tr>"


def _cell(value: Any) -> str:
    """Numbers keep all their digits, to be sorted by."""
    if value is None:
        return "<td></td>"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return f"<td>{escape(str(value))}</td>"
    text = number(value)
    exact = f' data-value="{value!r}"' if repr(value) != text and math.isfinite(value) else ""
    return f'<td class="n"{exact}>{text}</td>'


def settings(study: Study, searched: Subject) -> str:
    """The table, the space, and everything that decides which points were asked."""
    about = dict(study.about)
    space, versions, extra = about.pop("space", {}), about.pop("versions", {}), about.pop("extra", {})
    created = about.pop("created", None)
    plain = {"file": str(study.path), **about}
    if created is not None:
        plain["created"] = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(created))
    notes = {name: value for name, value in {"settings given at creation": extra, "notes": study.notes}.items() if value}
    folded = "".join(
        f"<details><summary>{name}</summary><pre>{escape(json.dumps(value, indent=1))}</pre></details>"
        for name, value in notes.items()
    )
    table = _pairs("Table", searched.table) if searched.table else ""
    return table + _space(space) + _pairs("Study", plain) + _pairs("Versions", versions) + folded


def _pairs(title: str, values: Mapping[str, Any]) -> str:
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{said(value)}</td></tr>" for name, value in values.items())
    return f'<h3>{title}</h3><div class="scroll"><table><tbody>{rows}</tbody></table></div>'


def _space(space: Mapping[str, Any]) -> str:
    head = "<thead><tr><th>parameter</th><th>kind</th><th>values</th><th>when</th></tr></thead>"
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(each['kind'])}</td><td>{_range(each)}</td><td>{_when(each, space)}</td></tr>"
        for name, each in space.items()
    )
    return f'<h3>Space</h3><div class="scroll"><table>{head}<tbody>{rows}</tbody></table></div>'


def _range(parameter: Mapping[str, Any]) -> str:
    if "options" in parameter:
        return ", ".join(_option(option) for option in parameter["options"])
    return f"{said(parameter['low'])} to {said(parameter['high'])}" + ", logarithmic" * parameter["log"]


def _option(written: Any) -> str:
    return escape(json.dumps(written) if isinstance(written, Mapping) else str(written))


def _when(parameter: Mapping[str, Any], space: Mapping[str, Any]) -> str:
    """The condition of a parameter in words."""
    when = parameter.get("when")
    if not isinstance(when, Sequence) or isinstance(when, str):
        return "by a function" if when else ""
    signs = {"==": "is", "!=": "is not", ">=": "≥", "<=": "≤"}
    terms = []
    for other, comparison, value in when:
        options = space[other].get("options")
        what = said(value) if options is None else _option(options[int(value)])
        terms.append(f"{escape(other)} {signs.get(comparison, escape(comparison))} {what}")
    return " and ".join(terms)
