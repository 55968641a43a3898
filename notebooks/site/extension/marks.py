"""Marks such as T-X3 lead to where the page of their source speaks of them; one that no page knows is a warning."""

import re
from functools import cache

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from . import house

log = logging.getLogger(__name__)

SOURCES = {"T": "twist", "G": "agrawal", "R": "raiders", "W": "wilton", "H": "hutchinson"}
_MARK = re.compile(r"\b([TGRWH]-[ADEFSX]\d+[a-z]?)\b")


def link(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Every mark of a page as a link; on its own page the first one is what the others lead to."""
    here: set[str] = set()
    for text in list(tree.findall(nodes.Text)):
        parts = _MARK.split(text.astext())
        if len(parts) == 1 or isinstance(text.parent, (nodes.literal, nodes.literal_block, nodes.reference, nodes.title)):
            continue
        made = [_marked(app, page, part, here) if i % 2 else nodes.Text(part) for i, part in enumerate(parts)]
        text.parent.replace(text, made)


def _marked(app: Sphinx, page: str, mark: str, here: set[str]) -> nodes.Node:
    home, anchor = f"sources/{SOURCES[mark[0]]}", mark.lower()
    if mark not in known(home):
        log.warning("%s is cited, and %s.md does not speak of it", mark, home, location=page)
    if page == home:
        first, _ = anchor not in here, here.add(anchor)
        return nodes.inline(text=mark, classes=["mark"], ids=[anchor] if first else [])
    return nodes.reference(text=mark, refuri=f"{app.builder.get_relative_uri(page, home)}#{anchor}", classes=["mark"])


@cache
def known(home: str) -> frozenset[str]:
    """The marks that a source's page speaks of."""
    return frozenset(_MARK.findall((house.ROOT / "notebooks/site" / f"{home}.md").read_text(encoding="utf-8")))
