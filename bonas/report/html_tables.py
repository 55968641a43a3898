"""Values and tables as HTML; the text of values is escaped."""

from html import escape
from typing import Any

from bonas.report.drawing import format_value


def html_value(value: Any) -> str:
    """Return a formatted and escaped value."""
    return escape(format_value(value))


def html_table(head: str, body: str) -> str:
    """Return a table that scrolls if it is wide."""
    content = (f"<thead>{head}</thead>" if head else "") + f"<tbody>{body}</tbody>"
    return f'<div class="scroll"><table>{content}</table></div>'
