"""Sections of a report with figures: each function returns HTML for the complete trials."""

from collections.abc import Mapping
from html import escape
from typing import Any

from bonas.report import figures, parallel_coordinates
from bonas.report.drawing import grid, legend
from bonas.report.fitted_model import MIN_TRIALS, leave_one_out, slice_model
from bonas.report.study_facts import StudyFacts, Values
from bonas.report.text_sections import BONAS, is_score_table, plural
from bonas.tabular import INTERVALS_NOTE, RESULT_NOTE

# The output scale of the model, in words.
_SCALES = {
    "plain": "",
    "log": " on a logarithmic scale",
    "tails": (
        ", with those worse than the median on a logarithmic scale, so that a few bad values do "
        "not dominate the fit"
    ),
}


def progress(facts: StudyFacts, values: Values) -> str:
    """Render the values by trial number."""
    keys = [("line", "best so far"), ("dot", "trial"), ("best", "the best")]
    if any(trial.state == "failed" for trial in facts.trials):
        keys.append(("failed", "failed"))
    figure = figures.progress(
        facts.trials, values.best, values.scale, values.sign, facts.subject.value
    )
    partial = (
        "Each trial trains one part of a network. " if facts.subject.partial else ""
    )
    better = "Lower" if values.sign > 0 else "Higher"
    outside = _outside_note(figures.count_outside(values.complete, values.scale))
    text = f"<p>{partial}{better} is better.{outside}</p>"
    return text + _figure("progress", figure, legend(*keys))


def coordinates(facts: StudyFacts, values: Values) -> str:
    """Render all trials in parallel coordinates."""
    noun = facts.subject.noun
    figure = parallel_coordinates.coordinates(
        values.items, facts.study.space, values.scale, values.sign, facts.subject.score
    )
    keys = [("best-line", "the best")]
    if n_good := parallel_coordinates.count_highlighted(len(values.items)):
        keys.append(("good", f"the next {n_good}"))
    keys.append(("other", "all others"))
    last = ", with the value after its last part" if facts.subject.partial else ""
    return f"<p>Every line is a {noun}{last}.</p>" + _figure(
        "coordinates", figure, legend(*keys)
    )


def slices(facts: StudyFacts, values: Values) -> str:
    """Render the value against each parameter."""
    noun = facts.subject.noun
    value = escape(facts.subject.value)
    figure = figures.slices(
        values.items, values.best_item, facts.study.space, values.scale
    )
    text = (
        f"<p>{value[0].upper()}{value[1:]} against each parameter; {noun}s in which it is "
        "inactive are left out.</p>"
    )
    keys = legend(("dot", noun), ("best", "the best"))
    return text + _figure("slices", grid(figure), keys)


def importance(facts: StudyFacts, values: Values) -> str:
    """Render the importance of each parameter."""
    if values.model is None:
        return _no_model(facts)
    text = (
        "<p>The share of the variation of the value over the whole space that each parameter "
        "accounts for, interactions included, by a Gaussian process fitted to the "
        f"{facts.subject.noun}s.</p>"
    )
    return text + _figure(
        "importance", figures.importance(facts.study.importance(values.items))
    )


def curves(facts: StudyFacts, values: Values) -> str:
    """Render the learning curves."""
    subject = facts.subject
    label = "reported value" if subject.value == "value" else subject.value
    figure, n_shown, n_outside = figures.curves(
        values.items, values.best_item, values.sign, label
    )
    if not n_shown:
        return "<p>No trial reported intermediate values.</p>"
    best = "the best " if n_shown < len(values.items) else ""
    when = "training" if subject.partial else "running"
    text = (
        f"<p>Values that {best}{plural(n_shown, subject.noun)} reported while {when}."
        f"{_outside_note(n_outside)}</p>"
    )
    keys = legend(("best-line", "the best"), ("curve", subject.noun))
    return text + _figure("curves", figure, keys)


def posterior(facts: StudyFacts, values: Values) -> str:
    """Render the model along each parameter."""
    model = values.model
    if model is None:
        return _no_model(facts)
    noun = facts.subject.noun
    n = len(values.items)
    found = slice_model(model, values.best.u)
    figure = figures.posterior(found, values.best, facts.study.space, values.scale)
    subset = f", the better half and the latest of {n}" if len(model.rows) < n else ""
    text = (
        f"A Gaussian process of the values{_SCALES[model.scale]}, fitted to {len(model.rows)} "
        f"{noun}s{subset}: along each parameter, through the best point."
    )
    if inactive := [
        escape(name) for name in facts.study.space.names if name not in found
    ]:
        text += f" Inactive there: {', '.join(inactive)}."
    keys = legend(
        ("line", "median"),
        ("band", "95% of the function"),
        ("best", f"the best {noun}"),
    )
    return f"<p>{text}</p>" + _figure("posterior", grid(figure), keys)


def calibration(facts: StudyFacts, values: Values) -> str:
    """Render the calibration of the model of the search and of the final networks."""
    return _model_calibration(facts, values) + _network_calibration(facts.notes)


def _model_calibration(facts: StudyFacts, values: Values) -> str:
    model = values.model
    if model is None:
        return _no_model(facts)
    noun = facts.subject.noun
    items = [values.items[i] for i in model.rows]
    residuals, predicted = leave_one_out(model)
    covered = float((abs(residuals) <= 1.96).mean())
    ratio = float((residuals**2).mean() ** 0.5)
    figure = figures.calibration(items, residuals, predicted, values.scale, noun)
    text = (
        f"Each {noun} predicted from the others by that model: its 95% interval contains "
        f"{covered:.0%} of {len(items)} values. Residuals are {ratio:.2f} times as large as "
        "predicted; above 1 is overconfident."
    )
    keys = legend(
        ("dot", noun), ("line", "observed; the straight line is perfect calibration")
    )
    return f"<h3>The model of the search</h3><p>{text}</p>" + _figure(
        "calibration", grid(figure), keys
    )


def _network_calibration(notes: Mapping[str, Any]) -> str:
    """Render the coverage of the networks' intervals on the test rows, if the study has it."""
    result = notes.get(RESULT_NOTE)
    test = result.get("test") if isinstance(result, Mapping) else None
    scores = (
        test.get(BONAS) if isinstance(test, Mapping) and is_score_table(test) else None
    )
    share = scores.get("within_90") if scores else None
    if not isinstance(share, (int, float)):
        return ""
    title = "<h3>The final networks</h3>"
    text = f"The 90% intervals contain {share:.0%} of the test values."
    levels = _interval_levels(notes.get(INTERVALS_NOTE))
    if not levels:
        return f"{title}<p>{text}</p>"
    text += " Above the straight line intervals are too wide, below it too narrow."
    figure = figures.coverage(
        [(0.0, 0.0), *levels, (100.0, 100.0)], "test values within, %"
    )
    return f"{title}<p>{text}</p>" + _figure("intervals", grid([figure]))


def _interval_levels(intervals: Any) -> list[tuple[float, float]]:
    """Return pairs of nominal and actual coverage in percent; empty if the note is malformed."""
    shares = intervals.get("held") if isinstance(intervals, Mapping) else None
    if not isinstance(shares, Mapping):
        return []
    if not all(isinstance(share, (int, float)) for share in shares.values()):
        return []
    try:
        return sorted((float(level), 100.0 * share) for level, share in shares.items())
    except ValueError:
        return []


def _no_model(facts: StudyFacts) -> str:
    if facts.has_full_space:
        nouns = "networks" if facts.subject.partial else "values"
        return f"<p>A model needs at least {MIN_TRIALS} {nouns}.</p>"
    return (
        "<p>The space of this study has conditions or options that the file cannot store. Open it "
        "with its space, as in <code>Study(path, space)</code>, to fit a model of the values.</p>"
    )


def _figure(name: str, *parts: str) -> str:
    return f'<figure id="figure-{name}">{"".join(parts)}</figure>'


def _outside_note(n: int) -> str:
    if not n:
        return ""
    verb = "is" if n == 1 else "are"
    return f" {plural(n, 'value')} far from the others {verb} drawn at the edge."
