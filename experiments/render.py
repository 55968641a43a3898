"""Write the page of results, notebooks/site/results.md, from experiments/results and tables.toml.

tables.toml defines the tables of a script. A cell is a template such as "{mean:3} ± {error:2}":
a path into the row, and a format. Paths: `a/b` in the row, `^a` in the node of `each`, `/a` in the
file; `$0`, `$1` are the keys of the row, `$*` the key of a repeated column. A cell with a missing
field is empty. Formats: `3` or `+3` significant digits (`3*1000` times a factor), `n` rounded,
`%` or `%1` percent; none for words. `{a±b}` is a mean with its standard error, `{a÷b:2}` a ratio.

    python -m experiments.render
"""

import argparse
import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from experiments.number_format import number, with_error

HOME = Path(__file__).parent
RESULTS = HOME / "results"
PAGE = HOME.parent / "notebooks" / "site" / "results.md"
OPENING = """# Results

The numbers of every experiment. `make page` writes this page from the files in
`experiments/results`; [Findings](findings.md) says what follows from them, and
[Experiments](experiments.md) lists the scripts. Times depend on the machine.
"""


class Place(NamedTuple):
    """A row: its nodes in the JSON tree, and the keys on the path to it."""

    row: Any
    keys: tuple[str, ...] = ()
    group: Any = None
    root: Any = None
    column: str = ""


def page(folder: Path) -> str:
    """Return the whole page for the result files of a folder."""
    sources = tomllib.loads((HOME / "tables.toml").read_text(encoding="utf-8"))
    lines = [OPENING]
    absent = []
    for source, scripts in sources.items():
        lines.append(f"## {source.capitalize()}\n")
        for script, spec in scripts.items():
            files = sorted(folder.glob(f"{source}_{script}.json"))
            files += sorted(folder.glob(f"{source}_{script}_[0-9].json"))
            if not files:
                absent.append(f"{source}.{script}")
                continue
            lines += [f"### {source}.{script}\n", f"**{question(source, script)}**\n"]
            if "published" in spec:
                lines.append(f"*Published:* {spec['published']}\n")
            for file in files:
                lines += section(file, spec.get("tables", []))
    if absent:
        lines.append(f"## Missing\n\nNo results in this folder: {', '.join(absent)}.\n")
    return "\n".join(lines)


def question(source: str, script: str) -> str:
    """Return the first paragraph of a script's docstring."""
    text = (HOME / source / f"{script}.py").read_text(encoding="utf-8")
    doc = ast.get_docstring(ast.parse(text)) or ""
    return doc.split("\n\n")[0].replace("\n", " ")


def section(file: Path, specs: list[dict]) -> Iterator[str]:
    """Yield the command of a result file and its tables."""
    record = json.loads(file.read_text(encoding="utf-8"))
    if "command" not in record:
        raise ValueError(f"{file.name} has no command; run its script again")
    yield f"`{record['command']}`: [{file.name}](../../experiments/results/{file.name})\n"
    for spec in specs:
        for keys, group in matches(record, spec.get("each", "")):
            caption = fill(spec.get("caption", ""), Place(group, keys, group, record))
            for name, rows in rows_of(spec, group, record).items():
                yield from (
                    f"{text}\n" for text in (caption, name, table(rows, spec)) if text
                )


def matches(node: Any, pattern: str, keys: tuple[str, ...] = ()) -> Iterator[tuple]:
    """Yield (keys, node) for every node that a path with wildcards leads to."""
    step, _, rest = pattern.partition("/")
    if not step:
        yield keys, node
    elif step == "*":
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, child in items:
            yield from matches(child, rest, (*keys, str(key)))
    elif (child := find(node, step)) is not None:
        yield from matches(child, rest, keys)


def find(node: Any, path: str) -> Any:
    """Return the node at a path such as "a/b/0", or None."""
    for step in path.split("/"):
        if isinstance(node, dict):
            node = node.get(step)
        elif isinstance(node, list) and step.isdigit() and int(step) < len(node):
            node = node[int(step)]
        else:
            return None
    return node


def rows_of(spec: dict, group: Any, root: Any) -> dict[str, list[Place]]:
    """Return the rows of a table, filtered and sorted; one list per value of `split`."""
    rows = [Place(row, keys, group, root) for keys, row in matches(group, spec["rows"])]
    if "where" in spec:
        rows = [place for place in rows if find(place.row, spec["where"]) is not None]
    if "sort" in spec:
        rows.sort(key=lambda place: find(place.row, spec["sort"]))
    parts: dict[str, list[Place]] = {}
    for place in rows:
        parts.setdefault(fill(spec.get("split", ""), place), []).append(place)
    return parts


def table(rows: list[Place], spec: dict) -> str:
    """Return a Markdown table; columns without any content are left out."""
    label = spec.get("label", "$0" if "*" in spec["rows"] else "")
    # by label of the row, then by head of the column
    cells: dict[str, dict[str, str]] = {}
    for place in rows:
        line = cells.setdefault(fill(label, place), {})
        for head, template in spec["columns"].items():
            for key in place.row if head == "*" else [""]:
                named = place._replace(column=key)
                text = fill(template, named)
                if text:
                    line[key or fill(head, named)] = text
    heads = list(dict.fromkeys(head for line in cells.values() for head in line))
    lines = [[spec.get("corner", ""), *heads], ["---"] * (1 + len(heads))]
    lines += [
        [name, *(line.get(head, "") for head in heads)] for name, line in cells.items()
    ]
    return "\n".join(
        "| " + " | ".join(line).replace("\n", " ") + " |" for line in lines
    )


def fill(template: str, place: Place) -> str:
    """Fill in a template; return an empty string if a field is missing."""
    for i, key in enumerate(place.keys):
        template = template.replace(f"${i}", key)
    template = template.replace("$*", place.column)
    fields = re.findall(r"\{([^{}:]+):?([^{}]*)\}", template)
    texts = [show(path, style, place) for path, style in fields]
    if not all(texts):
        return ""
    parts = iter(texts)
    return re.sub(r"\{[^{}]+\}", lambda _: next(parts), template)


def show(path: str, style: str, place: Place) -> str:
    """Return one field of a template as text."""
    starts = {"^": place.group, "/": place.root}
    paths = re.split("[±÷]", path)
    value, *rest = (find(starts.get(p[0], place.row), p.lstrip("^/")) for p in paths)
    if value is None:
        return ""
    if "±" in path:
        return with_error(value, rest[0], style)
    if "÷" in path:
        return number(value / rest[0], style)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not style:
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    if style == "n":
        return f"{value:,.0f}"
    if style.startswith("%"):
        return f"{value:.{style[1:] or 0}%}"
    digits, _, factor = style.partition("*")
    return number(value * float(factor or 1), digits)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the page of results.")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE")
    args = parser.parse_args()
    args.page.write_text(page(args.results), encoding="utf-8")
    print(f"wrote {args.page}")


if __name__ == "__main__":
    main()
