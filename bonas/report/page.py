"""Render the report of a study as one self-contained HTML file.

Text from users (names, options, errors, notes) is escaped. The page's content security policy
allows only its own script, by its hash, and no requests.

To add a section, write a function in text_sections.py or figure_sections.py, or in a file of its
own, and list it in `SECTIONS`.
"""

import base64
import hashlib
import os
from collections.abc import Callable
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from bonas.report import figure_sections, text_sections
from bonas.report.study_facts import StudyFacts, Values, read_facts
from bonas.study import Study
from bonas.tabular import model_path

# Number of first bytes that identify a report.
_HEAD_BYTES = 4096
_TITLE_END = ": a bonas study</title>"
_NO_VALUES = "<p>No trial is complete yet.</p>"


class TextSection(NamedTuple):
    """A section with text, which is omitted if `render` returns an empty string."""

    name: str
    title: str
    render: Callable[[StudyFacts], str]


class FigureSection(NamedTuple):
    """A section with figures of the complete trials.

    In the title, `{nouns}` is replaced by "trials" or "networks".
    """

    name: str
    title: str
    render: Callable[[StudyFacts, Values], str]


SECTIONS: tuple[TextSection | FigureSection, ...] = (
    FigureSection("progress", "Progress", figure_sections.progress),
    FigureSection("coordinates", "All {nouns} at once", figure_sections.coordinates),
    FigureSection("slices", "One parameter at a time", figure_sections.slices),
    FigureSection("importance", "Importance", figure_sections.importance),
    FigureSection("curves", "Learning curves", figure_sections.curves),
    FigureSection("posterior", "The model", figure_sections.posterior),
    FigureSection("calibration", "Calibration", figure_sections.calibration),
    TextSection("network", "The network", text_sections.network),
    TextSection("failures", "Failed trials", text_sections.failures),
    TextSection("trials", "Trials", text_sections.trials),
    TextSection("settings", "Settings", text_sections.settings),
)


def write_report(study: Study, path: str | os.PathLike | None = None) -> Path:
    """Write the report of a study as one self-contained HTML file.

    Args:
        study: The study.
        path: The file to write; by default, the path of the study with the suffix `.html`.

    Returns:
        The path of the report.

    Raises:
        ValueError: If the file exists and is not a report.
    """
    target = Path(path) if path is not None else study.path.with_suffix(".html")
    check_report_path(target, study.path)
    target.write_text(render_page(study), encoding="utf-8")
    return target


def check_report_path(out: Path, study: Path) -> None:
    """Raise a ValueError if a report would overwrite a file that is not a report.

    Args:
        out: The path of the report. An empty file may be overwritten.
        study: The path of the study, which must not be overwritten, nor its networks.
    """
    is_input = any(_is_same_file(out, path) for path in (study, model_path(study)))
    if is_input or (out.is_file() and not _is_report(out)):
        raise ValueError(
            f"{out} is not a report and would be overwritten; choose another path"
        )


def _is_same_file(one: Path, other: Path) -> bool:
    if one.resolve() == other.resolve():
        return True
    return one.exists() and other.exists() and one.samefile(other)


def _is_report(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(_HEAD_BYTES)
    return not start or (
        start.startswith(b"<!DOCTYPE html>") and _TITLE_END.encode() in start
    )


def render_page(study: Study) -> str:
    """Return the report of a study as HTML."""
    facts = read_facts(study)
    links = []
    bodies = []
    for section in SECTIONS:
        content = _render_section(section, facts)
        if content:
            title = section.title.format(nouns=f"{facts.subject.noun}s")
            links.append(f'<a href="#{section.name}">{title}</a>')
            bodies.append(
                f'<section id="{section.name}"><h2>{title}</h2>{content}</section>'
            )
    style = files("bonas.report").joinpath("page.css").read_text("utf-8")
    script = files("bonas.report").joinpath("page.js").read_text("utf-8")
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(study.path.stem)}{_TITLE_END}
<meta http-equiv="Content-Security-Policy" content="{_security_policy(script)}">
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<style>{style}</style></head>
<body><header>{text_sections.headline(facts)}<nav>{"".join(links)}</nav></header>
<main>{"".join(bodies)}</main>
<script>{script}</script></body></html>
"""


def _render_section(section: TextSection | FigureSection, facts: StudyFacts) -> str:
    if isinstance(section, TextSection):
        return section.render(facts)
    if facts.values is None:
        return _NO_VALUES
    return section.render(facts, facts.values)


def _security_policy(script: str) -> str:
    """Allow inline styles and this script only."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; img-src data:"
    )
