"""Sections of a report with text and tables; all text from users is escaped."""

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from bonas.report.drawing import format_value
from bonas.report.study_facts import StudyFacts, Subject
from bonas.spaces import Space
from bonas.study import TrialRecord
from bonas.tabular import (
    REFERENCE_NAMES,
    RESULT_NOTE,
    SCORE_NAMES,
    format_number,
    part_numbers,
)

# The name of the final networks among the models with scores.
BONAS = "bonas"
# Number of rows of the table of trials.
_MAX_ROWS = 2000
# Number of distinct reasons of failure, and of characters from the end of a traceback.
_MAX_REASONS = 200
_MAX_TRACEBACK = 5000
_DURATIONS = ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))
_SCORES = SCORE_NAMES | {"within_90": "in 90% intervals"}
_COMPARISONS = {"==": "is", "!=": "is not", ">=": "≥", "<=": "≤"}


def plural(n: int, noun: str) -> str:
    """Return a count with its noun: 1 trial, 2 trials."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _html(value: Any) -> str:
    return escape(format_value(value))


# Headline


def headline(facts: StudyFacts) -> str:
    """Render the best value and its configuration."""
    study = facts.study
    title = f'<p class="eyebrow">bonas study</p><h1>{escape(study.path.stem)}</h1>'
    counts = [*_count_states(facts.trials), f"{study.direction}d", f"seed {study.seed}"]
    counts += _total_time(facts.trials)
    footer = f'<p class="counts">{" · ".join(counts)}</p>'
    best = study.best
    if best is None:
        return f'{title}<p class="lead">No trial is complete yet.</p>{footer}'
    settings = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{_html(value)}</dd></div>"
        for name, value in best.config.items()
    )
    lead = f"the best {escape(facts.subject.value)}, trial {best.number}"
    lead += _network_words(facts.notes, best)
    found = f'<p class="value">{_html(best.value)}</p><p class="lead">{lead}</p>'
    return f"{title}{found}<dl class='config'>{settings}</dl>{footer}"


def _count_states(trials: Sequence[TrialRecord]) -> list[str]:
    states = [trial.state for trial in trials]
    counts = [f"{plural(states.count('complete'), 'trial')} complete"]
    for state in ("pruned", "failed", "running", "waiting"):
        if state in states:
            counts.append(f"{states.count(state)} {state}")
    return counts


def _network_words(notes: Mapping[str, Any], best: TrialRecord) -> str:
    """Describe the best network, if the note is about this trial and not an earlier one."""
    result = notes.get(RESULT_NOTE)
    noted = result.get("best") if isinstance(result, Mapping) else None
    if not isinstance(noted, Mapping) or noted.get("number") != best.number:
        return ""
    words = noted.get("in_words")
    return f": {escape(words)}" if isinstance(words, str) else ""


def _total_time(trials: Iterable[TrialRecord]) -> list[str]:
    starts = [trial.asked_time for trial in trials if trial.asked_time is not None]
    ends = [trial.end_time for trial in trials if trial.end_time is not None]
    if not starts or not ends:
        return []
    seconds = max(ends) - min(starts)
    unit, name = next(
        (each for each in _DURATIONS if seconds >= each[0]), _DURATIONS[-1]
    )
    return [f"{seconds / unit:.1f} {name} in total"]


# The network


def network(facts: StudyFacts) -> str:
    """Render the scores of the final networks and the reference models, if the study has them."""
    if RESULT_NOTE not in facts.notes:
        return ""
    result = facts.notes[RESULT_NOTE]
    if not isinstance(result, Mapping):
        return f"<pre>{escape(json.dumps(result, indent=1))}</pre>"
    return "".join(
        f"<h3>{part.capitalize()}</h3>"
        + _score_table(result[part], str(result.get("task")))
        for part in ("validation", "test")
        if is_score_table(result.get(part))
    )


def is_score_table(value: Any) -> bool:
    """Return whether a note is a table of scores by model; notes may have any form."""
    if not isinstance(value, Mapping) or not value:
        return False
    return all(isinstance(row, Mapping) for row in value.values())


def _score_table(scores: Mapping[str, Mapping[str, Any]], task: str) -> str:
    """Render scores with standard errors, one row per model."""
    names = dict.fromkeys(name for row in scores.values() for name in row)
    shown = [name for name in names if not name.endswith("_error")]
    titles = [_SCORES.get(name, name.replace("_", " ")) for name in shown]
    head = "".join(f'<th class="n">{escape(title)}</th>' for title in titles)
    rows = []
    for model, row in scores.items():
        label = (
            "found by bonas"
            if model == BONAS
            else REFERENCE_NAMES.get((model, task), model)
        )
        cells = "".join(
            f'<td class="n">{_score_cell(row, name)}</td>' for name in shown
        )
        rows.append(f"<tr><th>{escape(label)}</th>{cells}</tr>")
    return _table(f"<tr><th></th>{head}</tr>", "".join(rows))


def _score_cell(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name, "")
    if name == "within_90" and isinstance(value, (int, float)):
        return f"{value:.0%}"
    error = row.get(f"{name}_error")
    if isinstance(error, (int, float)):
        return f"{_html(value)} ± {format_number(error, 2)}"
    return _html(value)


def _table(head: str, body: str) -> str:
    content = (f"<thead>{head}</thead>" if head else "") + f"<tbody>{body}</tbody>"
    return f'<div class="scroll"><table>{content}</table></div>'


# Failed trials


def failures(facts: StudyFacts) -> str:
    """Render failed trials by reason, with their configurations and tracebacks."""
    failed = [trial for trial in facts.trials if trial.state == "failed"]
    if not failed:
        return "<p>No trial failed.</p>"
    reasons: dict[tuple[str, str], list[TrialRecord]] = {}
    for trial in failed:
        reasons.setdefault((trial.error, trial.traceback), []).append(trial)
    shown = list(reasons.items())[:_MAX_REASONS]
    text = f"<p>{plural(len(failed), 'trial')} of {len(facts.trials)} failed.</p>"
    text += "".join(_failure(error, trace, trials) for (error, trace), trials in shown)
    if hidden := len(reasons) - len(shown):
        text += f"<p>{plural(hidden, 'other reason')} not shown.</p>"
    return text


def _failure(error: str, traceback: str, trials: Sequence[TrialRecord]) -> str:
    n = len(trials)
    title = f"trial {trials[0].number}" if n == 1 else plural(n, "trial")
    items = []
    for trial in trials:
        config = ", ".join(
            f"{escape(name)} {_html(value)}" for name, value in trial.config.items()
        )
        items.append(f"<li>trial {trial.number}: {config}</li>")
    where = f"<pre>{escape(traceback[-_MAX_TRACEBACK:])}</pre>" if traceback else ""
    summary = f"<summary><b>{title}</b> {escape(error)}</summary>"
    return f'<details>{summary}{where}<ul class="muted">{"".join(items)}</ul></details>'


# Trials


def trials(facts: StudyFacts) -> str:
    """Render all trials in a sortable table."""
    return trial_table(facts.trials, facts.study.space, facts.subject)


def trial_table(records: Sequence[TrialRecord], space: Space, subject: Subject) -> str:
    """Render a table of trials, which a click on a column sorts."""
    if not records:
        return "<p>There are no trials yet.</p>"
    columns = [("trial", "n"), ("state", ""), (subject.score, "n")]
    if subject.partial:
        columns.append(("part", "n"))
    columns += [
        (name, "n" if each.numeric else "") for name, each in space.parameters.items()
    ]
    columns.append(("seconds" if subject.seconds else "cost", "n"))
    head = "".join(
        f'<th class="{kind}"><button type="button">{escape(name)}</button></th>'
        for name, kind in columns
    )
    shown = records[-_MAX_ROWS:]
    parts = part_numbers(records) if subject.partial else {}
    rows = "".join(_trial_row(trial, space.names, parts) for trial in shown)
    text = "Click on a column to sort by it."
    if len(shown) < len(records):
        latest = f"The latest {_MAX_ROWS} of {len(records)}"
        text = f"{latest}; <code>study.csv(path)</code> writes all. {text}"
    if not subject.seconds:
        text += " Costs are seconds unless the objective returns others."
    content = f'<table class="sortable"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<p>{text}</p><div class="scroll tall">{content}</div>'


def _trial_row(
    trial: TrialRecord, names: Sequence[str], parts: Mapping[int, int]
) -> str:
    cells = [trial.number, trial.state, trial.value]
    if parts:
        cells.append(parts[trial.number])
    cells += [trial.config.get(name) for name in names]
    cells.append(trial.cost)
    return "<tr>" + "".join(map(_trial_cell, cells)) + "</tr>"


def _trial_cell(value: Any) -> str:
    """Render a cell; shortened numbers keep all digits as data, for sorting."""
    if value is None:
        return "<td></td>"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return f"<td>{escape(str(value))}</td>"
    text = format_value(value)
    is_short = repr(value) != text and math.isfinite(value)
    exact = f' data-value="{value!r}"' if is_short else ""
    return f'<td class="n"{exact}>{text}</td>'


# Settings


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
        f"<tr><th>{escape(name)}</th><td>{_html(value)}</td></tr>"
        for name, value in values.items()
    )
    return f"<h3>{title}</h3>" + _table("", rows)


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
    return "<h3>Space</h3>" + _table(head, "".join(rows))


def _range(parameter: Mapping[str, Any]) -> str:
    if "options" in parameter:
        return ", ".join(_option(option) for option in parameter["options"])
    text = f"{_html(parameter['low'])} to {_html(parameter['high'])}"
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
        text = _html(value) if options is None else _option(options[int(value)])
        terms.append(
            f"{escape(name)} {_COMPARISONS.get(comparison, escape(comparison))} {text}"
        )
    return " and ".join(terms)
