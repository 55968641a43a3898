"""Convert docstrings (Google style, code in single backticks) to reStructuredText."""

import inspect
import re
from collections.abc import Callable, Iterable

# The documented name that a piece of code refers to, if any.
Resolve = Callable[[str], str | None]

_ITEM = re.compile(r"((?:[a-z_]\w*)(?:, [a-z_]\w*)*): (.*)")
_ARGUMENT = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: \([^)]*\))?:(?: (.*)|$)")
_SECTION = re.compile(
    r"(Args|Arguments|Attributes|Returns|Yields|Raises|Example|Examples|Note):"
)
# reStructuredText would start a list
_LIKE_A_LIST = re.compile(r"(\(?\w{1,3}[.)]|[-+*])\s")
_CODE = re.compile(r"`+([^`]+)`+")


def to_rst(lines: Iterable[str], names: Iterable[str], resolve: Resolve) -> list[str]:
    """Convert the lines of a docstring; `names` are the arguments and fields it may describe."""
    known = set(names)
    out: list[str] = []
    text = inspect.cleandoc("\n".join(lines)).split("\n")
    i = 0
    while i < len(text):
        heading = _SECTION.fullmatch(text[i].strip())
        end = i + 1
        while end < len(text) and (not text[end].strip() or text[end].startswith(" ")):
            end += 1
        if heading and end > i + 1:
            out += ["", *_section(heading[1], text[i + 1 : end], resolve), ""]
            i = end
            continue
        stop = i
        while stop < len(text) and not _SECTION.fullmatch(text[stop].strip()):
            stop += 1
        stop = max(stop, i + 1)
        for paragraph in "\n".join(text[i:stop]).strip("\n").split("\n\n"):
            for block in _divided(paragraph.strip("\n").split("\n")):
                out += [*_block(block, known, resolve), ""]
        i = stop
    return out


def _section(name: str, lines: list[str], resolve: Resolve) -> list[str]:
    """Convert one section of a Google-style docstring."""
    body = inspect.cleandoc("\n".join(lines)).split("\n")
    if name in ("Example", "Examples"):
        return ["::", "", *(f"    {line}" for line in body)]
    if name in ("Returns", "Yields"):
        return [f":returns: {inline(' '.join(line.strip() for line in body), resolve)}"]
    if name == "Note":
        return [inline(" ".join(line.strip() for line in body), resolve)]
    items: list[tuple[str, list[str]]] = []
    for line in body:
        begin = _ARGUMENT.match(line) if not line.startswith(" ") else None
        if begin:
            items.append((begin[1], [begin[2] or ""]))
        elif items and line.strip():
            items[-1][1].append(line.strip())
    field = "raises" if name == "Raises" else "param"
    out = []
    for title, text in items:
        words = inline(" ".join(part for part in text if part), resolve)
        if field == "raises" or name == "Attributes":
            out += [f"``{title}``", f"    {words}"]
        else:
            escaped = title.replace("*", r"\*").replace(", ", ",")
            out.append(f":param {escaped}: {words}")
    return out


def _divided(lines: list[str]) -> list[list[str]]:
    """Split a paragraph into text and lists; docstrings need no empty line between them."""
    blocks: list[list[str]] = [[]]
    for line in lines:
        inside = bool(blocks[-1]) and blocks[-1][0].startswith("- ")
        begins = line.startswith("- ") and not inside
        ends = inside and not line.startswith(("- ", " "))
        if blocks[-1] and (begins or ends):
            blocks.append([])
        blocks[-1].append(line)
    return blocks


def arguments_of(thing: object) -> list[str]:
    """Return the parameters of a function or the fields of a class."""
    fields = list(inspect.get_annotations(thing)) if inspect.isclass(thing) else []
    try:
        return fields + list(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return fields


def item(name: str, text: str, resolve: Resolve) -> list[str]:
    """Describe one field."""
    return [f"``{name}``", f"    {inline(text, resolve)}"]


def inline(text: str, resolve: Resolve) -> str:
    """Convert code in backticks and escape everything else that reStructuredText would read."""
    parts = _CODE.split(text)
    for i, part in enumerate(parts):
        parts[i] = (
            _code(part, resolve) if i % 2 else re.sub(r"([\\*|_])", r"\\\1", part)
        )
    made = "".join(parts)
    return "\\" + made if _LIKE_A_LIST.match(made) else made


def _code(text: str, resolve: Resolve) -> str:
    found = resolve(text)
    # An escaped space lets code stand next to a letter, as in a plural.
    return f"\\ :py:obj:`{text} <{found}>`\\ " if found else f"\\ ``{text}``\\ "


def _block(lines: list[str], names: set[str], resolve: Resolve) -> list[str]:
    if all(line.startswith("    ") for line in lines):
        return ["::", "", *lines]
    if lines[0].startswith("|"):
        return _table(lines, resolve)
    if lines[0].startswith("- "):
        return [_list_line(line, resolve) for line in lines]
    return _paragraph(lines, names, resolve)


def _list_line(line: str, resolve: Resolve) -> str:
    if line.startswith("- "):
        return f"- {inline(line[2:], resolve)}"
    return f"  {inline(line.strip(), resolve)}"


def _paragraph(lines: list[str], names: set[str], resolve: Resolve) -> list[str]:
    """Convert text in which `name: description` lines describe arguments."""
    out: list[tuple[str, str]] = []
    text: list[str] = []
    for line in lines:
        begin = _ITEM.fullmatch(line)
        if begin and set(begin[1].split(", ")) <= names:
            out.append(("", " ".join(text)))
            out.append((begin[1], begin[2]))
            text = []
        elif (
            out and not text and (line.startswith(" ") or not out[-1][1].endswith("."))
        ):
            out[-1] = (out[-1][0], f"{out[-1][1]} {line.strip()}")
        else:
            text.append(line.strip())
    made: list[str] = []
    for name, words in [*out, ("", " ".join(text))]:
        if words and name:
            made += item(name, words, resolve)
        elif words:
            made += ["", inline(words, resolve), ""]
    return made


def _table(lines: list[str], resolve: Resolve) -> list[str]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rows = [
        row
        for row, line in zip(cells, lines, strict=True)
        if not set(line) <= set("|- ")
    ]
    made = [".. list-table::", "    :header-rows: 1", ""]
    for row in rows:
        for i, cell in enumerate(row):
            made.append(f"    {'* -' if i == 0 else '  -'} {inline(cell, resolve)}")
    return made
