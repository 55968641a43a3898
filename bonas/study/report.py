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
from bonas.study import figures, found, model, pages
from bonas.study.drawing import Scale
from bonas.study.figures import legend, value_of
from bonas.study.pages import counted
from bonas.study.parts import networks
from bonas.study.places import check_report
from bonas.study.store import Record
from bonas.study.study import DIRECTIONS, Study
from bonas.study.subject import Subject, subject

_NOTHING = "<p>No trial has been told yet.</p>"
_SCALES = {  # on which a model sees values
    "plain": "",
    "log": " on a logarithmic scale",
    "tails": ", of which those worse than the median are on a logarithmic scale, so that a few bad ones do not decide the fit",
}


class Facts(NamedTuple):
    """What the figures are made of."""

    space: Space
    about: Subject
    records: list[Record]
    told: list[Record]  # by number
    things: list[Record]  # those, or the last part of each network where a trial is a part
    best: Record  # of the told ones
    found: Record  # that, or the last part of its network
    sign: float  # a value times this is to be small
    scale: Scale  # of values
    seed: int


def write_report(study: Study, path: str | os.PathLike | None = None) -> Path:
    """The path of the report that was written: by default beside the study, with the ending .html.

    A ValueError where something else than a former report is there.
    """
    target = Path(path) if path is not None else study.path.with_suffix(".html")
    check_report(target, study.path)
    target.write_text(page(study), encoding="utf-8")
    return target


def page(study: Study) -> str:
    """The HTML of the report."""
    records, best, about = study.trials, study.best, subject(study)
    sections = [*_figures(study, records, best, about), *_texts(study, records, about)]
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
<body><header>{pages.headline(study, records, best, about)}<nav>{links}</nav></header>
<main>{bodies}</main>
<script>{script}</script></body></html>
"""


def _figures(study: Study, records: list[Record], best: Record | None, about: Subject) -> list[tuple[str, str, str]]:
    """Sections whose figures need values; each is a sentence where there are too few."""
    made = {"progress": "Progress", "coordinates": f"All {about.thing}s at once", "slices": "One parameter at a time"}
    later = {"importance": "Importance", "curves": "Learning curves", "posterior": "The model", "calibration": "Calibration"}
    told = [record for record in records if record.state == "told"]
    if best is None or not told:
        return [(name, title, _NOTHING) for name, title in {**made, **later}.items()]
    sign = DIRECTIONS[study.direction]
    scale = figures.value_scale([value_of(record) for record in told], sign)
    things = networks(told) if about.parts else told
    last = next(record for record in things if record.config == best.config) if about.parts else best
    facts = Facts(study.space, about, records, told, things, best, last, sign, scale, study.seed)
    whole = pages.is_whole_space(study)
    enough = whole and len(things) >= model.FEWEST
    fitted = model.fit(study.space, *_seen(facts), sign=sign, seed=study.seed) if enough else None
    why = "" if fitted else _why_no_model(whole, about)
    bodies = {
        "progress": _progress(facts),
        "coordinates": _coordinates(facts),
        "slices": _slices(facts),
        "importance": why or _importance(study.importance(), about),
        "curves": _curves(facts),
        "posterior": _posterior(facts, fitted) if fitted else why,
        "calibration": (_calibration(facts, fitted) if fitted else why) + found.calibration(study.notes),
    }
    return [(name, title, bodies[name]) for name, title in {**made, **later}.items()]


def _seen(facts: Facts) -> tuple[list, list]:
    return [record.u for record in facts.things], [value_of(record) for record in facts.things]


def _why_no_model(whole: bool, about: Subject) -> str:
    if whole:
        return f"<p>A model is fitted from {model.FEWEST} {'networks' if about.parts else 'values'} on.</p>"
    return (
        "<p>The space of this study has conditions or options that a file cannot keep. Opened with its space, as in "
        "<code>Study(path, space)</code>, this section is a model of the values.</p>"
    )


def _figure(name: str, *parts: str) -> str:
    return f'<figure id="figure-{name}">{"".join(parts)}</figure>'


def _beyond(n: int) -> str:
    """A sentence about so many values that the axis leaves out."""
    return f" {counted(n, 'value')} far from the others {'is' if n == 1 else 'are'} drawn at the edge." if n else ""


def _progress(facts: Facts) -> str:
    keys = [("line", "best so far"), ("dot", "trial"), ("best", "the best")]
    keys += [("failed", "failed")] if any(record.state == "failed" for record in facts.records) else []
    aim = "Lower" if facts.sign > 0 else "Higher"
    what = "Each trial trains one part of a network. " if facts.about.parts else ""
    drawn = figures.progress(facts.records, facts.best, facts.scale, facts.sign, facts.about.value)
    text = f"<p>{what}{aim} is better.{_beyond(figures.beyond(facts.told, facts.scale))}</p>"
    return text + _figure("progress", drawn, legend(*keys))


def _coordinates(facts: Facts) -> str:
    drawn = figures.coordinates(facts.things, facts.space, facts.scale, facts.sign, facts.about.score)
    good = figures.standing_out(len(facts.things))
    keys = [("best-line", "the best"), *([("good", f"the next {good}")] if good else []), ("other", "all others")]
    last = ", with the value after its last part" if facts.about.parts else ""
    return f"<p>Every line is a {facts.about.thing}{last}.</p>" + _figure("coordinates", drawn, legend(*keys))


def _slices(facts: Facts) -> str:
    drawn = figures.slices(facts.things, facts.found, facts.space, facts.scale)
    thing, value = facts.about.thing, escape(facts.about.value)
    text = f"<p>{value[0].upper()}{value[1:]} against each parameter; {thing}s in which it is inactive are left out.</p>"
    return text + _figure("slices", figures.grid(drawn), legend(("dot", thing), ("best", "the best")))


def _importance(shares: dict[str, float], about: Subject) -> str:
    text = (
        "<p>How much of the variation of the value over the whole space each parameter accounts for, interactions included, by "
        f"a Gaussian process fitted to the {about.thing}s.</p>"
    )
    return text + _figure("importance", figures.importance(shares))


def _curves(facts: Facts) -> str:
    about = facts.about
    label = "reported value" if about.value == "value" else about.value
    drawn, shown, n = figures.curves(facts.things, facts.found, facts.sign, label)
    if not shown:
        return "<p>No trial reported intermediate values.</p>"
    who = f"{'the best ' * (shown < len(facts.things))}{counted(shown, about.thing)}"
    text = f"<p>Values that {who} reported while {'training' if about.parts else 'running'}.{_beyond(n)}</p>"
    return text + _figure("curves", drawn, legend(("best-line", "the best"), ("curve", about.thing)))


def _posterior(facts: Facts, fitted: model.Model) -> str:
    thing = facts.about.thing
    along = model.along(fitted, facts.best.u)
    drawn = figures.posterior(along, facts.best, facts.space, facts.scale)
    some = f", the better half and the latest of {len(facts.things)}" if len(fitted.rows) < len(facts.things) else ""
    absent = [escape(name) for name in facts.space.names if name not in along]
    text = (
        f"A Gaussian process of the values{_SCALES[fitted.scale]}, fitted to {len(fitted.rows)} {thing}s{some}: along each "
        "parameter, through the best point."
    )
    text += f" Inactive there: {', '.join(absent)}." if absent else ""
    keys = legend(("line", "median"), ("band", "95% of the function"), ("best", f"the best {thing}"))
    return f"<p>{text}</p>" + _figure("posterior", figures.grid(drawn), keys)


def _calibration(facts: Facts, fitted: model.Model) -> str:
    residuals, predicted = model.left_out(fitted)
    seen, thing = [facts.things[i] for i in fitted.rows], facts.about.thing
    held, spread = float((abs(residuals) <= 1.96).mean()), float((residuals**2).mean() ** 0.5)
    drawn = figures.calibration(seen, residuals, predicted, facts.scale, thing)
    text = (
        f"Each {thing} predicted from the others by that model: its 95% interval held {held:.0%} of {len(seen)} values. "
        f"Residuals are {spread:.2f} times as large as it expected; above 1 is overconfident."
    )
    keys = legend(("dot", thing), ("line", "found; the straight line is perfect calibration"))
    return f"<h3>The model of the search</h3><p>{text}</p>" + _figure("calibration", figures.grid(drawn), keys)


def _texts(study: Study, records: list[Record], about: Subject) -> list[tuple[str, str, str]]:
    sections = [("network", "The network", found.network(study.notes))] if "result" in study.notes else []
    sections += [
        ("failures", "Failed trials", pages.failures(records)),
        ("trials", "Trials", pages.table(records, study.space, about)),
        ("settings", "Settings", pages.settings(study, about)),
    ]
    return sections
