"""The docstrings of bonas as Sphinx reads them: plain text with code in backticks, and settings as `name: what it is`."""

import inspect
import re
from collections.abc import Callable, Iterable

Resolve = Callable[[str], str | None]  # what stands in backticks -> the name that it is documented under, if any

_ITEM = re.compile(r"((?:[a-z_]\w*)(?:, [a-z_]\w*)*): (.*)")
_LIKE_A_LIST = re.compile(r"(\(?\w{1,3}[.)]|[-+*])\s")  # what reStructuredText would take for the first item of one
_CODE = re.compile(r"`([^`]+)`")


def to_rst(lines: Iterable[str], names: Iterable[str], resolve: Resolve) -> list[str]:
    """The lines of a docstring as reStructuredText; `names` are the settings that it may explain."""
    known, out = set(names), []
    for paragraph in "\n".join(lines).strip("\n").split("\n\n"):
        for block in _divided(paragraph.strip("\n").split("\n")):
            out += [*_block(block, known, resolve), ""]
    return out


def _divided(lines: list[str]) -> list[list[str]]:
    """A paragraph without the list in it, and the list: in docstrings no empty line need stand between them."""
    blocks: list[list[str]] = [[]]
    for line in lines:
        inside = bool(blocks[-1]) and blocks[-1][0].startswith("- ")
        begins, ends = line.startswith("- ") and not inside, inside and not line.startswith(("- ", " "))
        if blocks[-1] and (begins or ends):
            blocks.append([])
        blocks[-1].append(line)
    return blocks


def settings_of(thing: object) -> list[str]:
    """The parameters of a function or the fields of a class: what a docstring explains one by one."""
    fields = list(inspect.get_annotations(thing)) if inspect.isclass(thing) else []
    try:
        return fields + list(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return fields


def item(name: str, text: str, resolve: Resolve) -> list[str]:
    """One setting and what it is."""
    return [f"``{name}``", f"    {inline(text, resolve)}"]


def inline(text: str, resolve: Resolve) -> str:
    """Text with its code, and with nothing else that means something to reStructuredText."""
    parts = _CODE.split(text)
    for i, part in enumerate(parts):
        parts[i] = _code(part, resolve) if i % 2 else re.sub(r"([\\*|_])", r"\\\1", part)
    made = "".join(parts)
    return "\\" + made if _LIKE_A_LIST.match(made) else made


def _code(text: str, resolve: Resolve) -> str:
    found = resolve(text)
    # An escaped blank lets code stand beside a letter, as in a plural.
    return f"\\ :py:obj:`{text} <{found}>`\\ " if found else f"\\ ``{text}``\\ "


def _block(lines: list[str], names: set[str], resolve: Resolve) -> list[str]:
    if all(line.startswith("    ") for line in lines):
        return ["::", "", *lines]
    if lines[0].startswith("|"):
        return _table(lines, resolve)
    if lines[0].startswith("- "):
        return [
            inline(line[2:], resolve).join(["- ", ""]) if line.startswith("- ") else inline(line, resolve) for line in lines
        ]
    out, text = [], []
    for line in lines:
        begun = _ITEM.fullmatch(line)
        if begun and set(begun[1].split(", ")) <= names:
            out.append(("", " ".join(text)))
            out.append((begun[1], begun[2]))
            text = []
        elif out and not text and (line.startswith(" ") or not out[-1][1].endswith(".")):
            out[-1] = (out[-1][0], f"{out[-1][1]} {line.strip()}")
        else:
            text.append(line.strip())
    made = []
    for name, told in [*out, ("", " ".join(text))]:
        made += [] if not told else item(name, told, resolve) if name else ["", inline(told, resolve), ""]
    return made


def _table(lines: list[str], resolve: Resolve) -> list[str]:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not set(line) <= set("|- ")]
    made = [".. list-table::", "    :header-rows: 1", ""]
    for row in rows:
        for i, cell in enumerate(row):
            made.append(f"    {'* -' if i == 0 else '  -'} {inline(cell, resolve)}")
    return made
