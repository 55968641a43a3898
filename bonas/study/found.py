"""The parts of a report about the networks that a search on a table found: their scores, and their calibration."""

import json
from collections.abc import Mapping
from html import escape
from typing import Any

from bonas.study import figures
from bonas.study.drawing import number
from bonas.study.intervals import NOTE
from bonas.study.result import plain
from bonas.tabular.look import NAMES
from bonas.tabular.rivals import NAMES as RIVALS

_OURS = "bonas"  # who found the networks, among those that were scored
_SCORES = NAMES | {"within_90": "held by 90% intervals"}


def network(notes: Mapping[str, Any]) -> str:
    """What was found, beside its rivals, where the study has a note of it."""
    result = notes.get("result")
    if not isinstance(result, Mapping):
        return f"<pre>{escape(json.dumps(result, indent=1))}</pre>"
    parts = [(part, result[part]) for part in ("validation", "test") if _is_table(result.get(part))]
    return "".join(f"<h3>{part.capitalize()}</h3>" + _scores(scores, str(result.get("task"))) for part, scores in parts)


def _is_table(given: Any) -> bool:
    return isinstance(given, Mapping) and bool(given) and all(isinstance(row, Mapping) for row in given.values())


def _scores(scores: Mapping[str, Mapping[str, Any]], task: str) -> str:
    """One row for each who was scored; a standard error stands beside its score."""
    names = list(dict.fromkeys(name for row in scores.values() for name in row if not name.endswith("_error")))
    head = "".join(f'<th class="n">{escape(_SCORES.get(name, name.replace("_", " ")))}</th>' for name in names)
    rows = []
    for who, row in scores.items():
        label = "found by bonas" if who == _OURS else RIVALS.get((who, task), who)
        cells = "".join(f'<td class="n">{_score(row, name)}</td>' for name in names)
        rows.append(f"<tr><th>{escape(label)}</th>{cells}</tr>")
    return f'<div class="scroll"><table><thead><tr><th></th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _score(row: Mapping[str, Any], name: str) -> str:
    value, error = row.get(name, ""), row.get(f"{name}_error")
    if name == "within_90" and isinstance(value, (int, float)):
        return f"{value:.0%}"
    return escape(number(value)) + (f" ± {plain(error, 2)}" if isinstance(error, (int, float)) else "")


def calibration(notes: Mapping[str, Any]) -> str:
    """How well the uncertainties of the found networks hold on the test rows, where the study has a note of it."""
    result, intervals = notes.get("result"), notes.get(NOTE)
    test = result.get("test") if isinstance(result, Mapping) else None
    ours = test.get(_OURS) if _is_table(test) else None  # type: ignore[union-attr]
    share = ours.get("within_90") if ours else None
    if not isinstance(share, (int, float)):
        return ""
    text = f"Intervals that should hold 90% of the test values hold {share:.0%}."
    held = _levels(intervals)
    if not held:
        return f"<h3>The networks that were found</h3><p>{text}</p>"
    drawn = figures.grid([figures.held([(0.0, 0.0), *held, (100.0, 100.0)], "test values within, %")])
    text += " Above the straight line they are wider than need be, below it too narrow."
    return f'<h3>The networks that were found</h3><p>{text}</p><figure id="figure-intervals">{drawn}</figure>'


def _levels(intervals: Any) -> list[tuple[float, float]]:
    """Pairs of what intervals should hold and what they hold, in per cent."""
    held = intervals.get("held") if isinstance(intervals, Mapping) else None
    if not isinstance(held, Mapping) or not all(isinstance(share, (int, float)) for share in held.values()):
        return []
    try:
        return sorted((float(level), 100.0 * share) for level, share in held.items())
    except ValueError:
        return []
