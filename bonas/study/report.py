"""A study as one HTML file that needs nothing else: what was found, how, and what to make of it.

Whatever comes from a user (names, options, errors, notes) goes through `html.escape`; and the page allows no script but its
own, by its hash, and no request to anywhere.
"""

import base64
import hashlib
import os
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from bonas.spaces import Space
from bonas.study import figures, model, pages
from bonas.study.drawing import Scale
from bonas.study.figures import legend, value_of
from bonas.study.pages import counted
from bonas.study.store import Record
from bonas.study.study import DIRECTIONS, Study

_NOTHING = "<p>No trial has been told yet.</p>"


class Facts(NamedTuple):
    """What the figures are made of."""

    space: Space
    records: list[Record]
    told: list[Record]  # by number
    best: Record  # of those
    sign: float  # a value times this is to be small
    scale: Scale  # of values
    seed: int


def write_report(study: Study, path: str | os.PathLike | None = None) -> Path:
    """The path of the report that was written: by default beside the study, with the ending .html."""
    target = Path(path) if path is not None else study.path.with_suffix(".html")
    target.write_text(page(study), encoding="utf-8")
    return target


def page(study: Study) -> str:
    """The HTML of the report."""
    records, best = study.trials, study.best
    sections = [*_figures(study, records, best), *_texts(study, records)]
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title, _ in sections)
    bodies = "".join(f'<section id="{name}"><h2>{title}</h2>{body}</section>' for name, title, body in sections)
    style, script = (files("bonas.study").joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(study.path.stem)}: a bonas study</title>
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<style>{style}</style></head>
<body><header>{pages.headline(study, records, best)}<nav>{links}</nav></header>
<main>{bodies}</main>
<script>{script}</script></body></html>
"""


def _figures(study: Study, records: list[Record], best: Record | None) -> list[tuple[str, str, str]]:
    """Sections whose figures need values; each is a sentence where there are too few."""
    made = {"progress": "Progress", "coordinates": "All trials at once", "slices": "One parameter at a time"}
    later = {"importance": "Importance", "curves": "Learning curves", "posterior": "The model", "calibration": "Calibration"}
    told = [record for record in records if record.state == "told"]
    if best is None or not told:
        return [(name, title, _NOTHING) for name, title in {**made, **later}.items()]
    sign = DIRECTIONS[study.direction]
    scale = figures.value_scale([value_of(record) for record in told], sign)
    facts = Facts(study.space, records, told, best, sign, scale, study.seed)
    whole = pages.is_whole_space(study)
    fitted = model.fit(study.space, *_seen(facts), sign=sign, seed=study.seed) if whole and len(told) >= model.FEWEST else None
    why = "" if fitted else _why_no_model(whole)
    bodies = {
        "progress": _progress(facts),
        "coordinates": _coordinates(facts),
        "slices": _slices(facts),
        "importance": why or _importance(study.importance()),
        "curves": _curves(facts),
        "posterior": _posterior(facts, fitted) if fitted else why,
        "calibration": (_calibration(facts, fitted) if fitted else why) + pages.network_calibration(study.notes),
    }
    return [(name, title, bodies[name]) for name, title in {**made, **later}.items()]


def _seen(facts: Facts) -> tuple[list, list]:
    return [record.u for record in facts.told], [value_of(record) for record in facts.told]


def _why_no_model(whole: bool) -> str:
    if whole:
        return f"<p>A model is fitted from {model.FEWEST} values on.</p>"
    return (
        "<p>The space of this study has conditions or options that a file cannot keep. Opened with its space, as in "
        "<code>Study(path, space)</code>, this section is a model of the values.</p>"
    )


def _figure(name: str, *parts: str) -> str:
    return f'<figure id="figure-{name}">{"".join(parts)}</figure>'


def _grid(panels: list[str]) -> str:
    return '<div class="grid">' + "".join(f"<div>{panel}</div>" for panel in panels) + "</div>"


def _beyond(facts: Facts) -> str:
    """A sentence about values that the axis leaves out."""
    n = figures.beyond(facts.told, facts.scale)
    return f" {counted(n, 'value')} far from the others {'is' if n == 1 else 'are'} drawn at the edge." if n else ""


def _progress(facts: Facts) -> str:
    keys = [("line", "best so far"), ("dot", "trial"), ("best", "the best")]
    keys += [("failed", "failed")] if any(record.state == "failed" for record in facts.records) else []
    aim = "Lower" if facts.sign > 0 else "Higher"
    drawn = figures.progress(facts.records, facts.best, facts.scale, facts.sign)
    return f"<p>{aim} is better.{_beyond(facts)}</p>" + _figure("progress", drawn, legend(*keys))


def _coordinates(facts: Facts) -> str:
    drawn = figures.coordinates(facts.told, facts.space, facts.scale, facts.sign)
    good = figures.standing_out(len(facts.told))
    keys = [("best-line", "the best"), *([("good", f"the next {good}")] if good else []), ("other", "all others")]
    return "<p>Every line is a trial.</p>" + _figure("coordinates", drawn, legend(*keys))


def _slices(facts: Facts) -> str:
    drawn = figures.slices(facts.told, facts.best, facts.space, facts.scale)
    text = "<p>Value against each parameter; trials in which it is inactive are left out.</p>"
    return text + _figure("slices", _grid(drawn), legend(("dot", "trial"), ("best", "the best")))


def _importance(shares: dict[str, float]) -> str:
    text = (
        "<p>How much of the variation of the value over the whole space each parameter accounts for, interactions included, by "
        "a Gaussian process fitted to the trials.</p>"
    )
    return text + _figure("importance", figures.importance(shares))


def _curves(facts: Facts) -> str:
    drawn, shown = figures.curves(facts.told, facts.best, facts.sign)
    if not shown:
        return "<p>No trial reported intermediate values.</p>"
    text = f"<p>Values that {'the best ' * (shown < len(facts.told))}{counted(shown, 'trial')} reported while running.</p>"
    return text + _figure("curves", drawn, legend(("best-line", "the best"), ("curve", "trial")))


def _posterior(facts: Facts, fitted: model.Model) -> str:
    found = model.along(fitted, facts.best.u)
    drawn = figures.posterior(found, facts.best, facts.space, facts.scale)
    scale = {"plain": "", "log": " on a logarithmic scale", "tails": " with large ones drawn in"}[fitted.scale]
    some = f", the better half and the latest of {len(facts.told)}" if len(fitted.rows) < len(facts.told) else ""
    absent = [escape(name) for name in facts.space.names if name not in found]
    text = (
        f"A Gaussian process of the values{scale}, fitted to {len(fitted.rows)} trials{some}: along each parameter, through "
        "the best point."
    )
    text += f" Inactive there: {', '.join(absent)}." if absent else ""
    keys = legend(("line", "median"), ("band", "95% of the function"), ("best", "the best trial"))
    return f"<p>{text}</p>" + _figure("posterior", _grid(drawn), keys)


def _calibration(facts: Facts, fitted: model.Model) -> str:
    residuals, predicted = model.left_out(fitted)
    seen = [facts.told[i] for i in fitted.rows]
    held, spread = float((abs(residuals) <= 1.96).mean()), float((residuals**2).mean() ** 0.5)
    drawn = figures.calibration(seen, residuals, predicted, facts.scale)
    text = (
        f"Each trial predicted from the others by that model: its 95% interval held {held:.0%} of {len(seen)} values. "
        f"Residuals are {spread:.2f} times as large as it expected; above 1 is overconfident."
    )
    keys = legend(("dot", "trial"), ("line", "found; the straight line is perfect calibration"))
    return f"<p>{text}</p>" + _figure("calibration", _grid(drawn), keys)


def _texts(study: Study, records: list[Record]) -> list[tuple[str, str, str]]:
    sections = [("network", "The network", pages.network(study.notes))] if "result" in study.notes else []
    sections += [
        ("failures", "Failed trials", pages.failures(records)),
        ("trials", "Trials", pages.table(records, study.space)),
        ("settings", "Settings", pages.settings(study)),
    ]
    return sections
