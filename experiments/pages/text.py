"""Cells and tables of the results page: a cell says where in a record its number is, and how to write it."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

log = logging.getLogger(__name__)
Cell = Callable[[Any], str]
Rows = Mapping[str, Any] | Iterable[tuple[str, Any]]
MANY = 1e6  # from here on, powers of ten


def at(node: Any, path: str) -> Any:
    """What is at "a/b/0" in a tree of dicts and lists; None where there is nothing."""
    for step in path.split("/"):
        if isinstance(node, dict):
            node = node.get(step)
        elif isinstance(node, list) and int(step) < len(node):
            node = node[int(step)]
        else:
            return None
    return node


def written(value: float | None, digits: int = 3, *, sign: bool = False) -> str:
    """A number with so many digits that count, and at least its whole ones; nothing where there is none."""
    if not value:
        return "" if value is None else "0"
    plain = 10**digits <= abs(value) < MANY
    text = f"{value:{'+' if sign else ''}{',.0f' if plain else f'#.{digits}g'}}".rstrip(".")
    return text.replace("-", "−", 1) if text.startswith("-") else text


def number(path: str, digits: int = 3, *, times: float = 1.0, sign: bool = False) -> Cell:
    """The number at a path, in other units where `times` says so."""

    def cell(row: Any) -> str:
        found = at(row, path)
        return "" if found is None else written(times * found, digits, sign=sign)

    return cell


def whole(path: str) -> Cell:
    """The number at a path, rounded, thousands apart."""

    def cell(row: Any) -> str:
        found = at(row, path)
        return "" if found is None else f"{found:,.0f}"

    return cell


def percent(path: str, decimals: int = 0) -> Cell:
    """The share at a path, in per cent."""

    def cell(row: Any) -> str:
        found = at(row, path)
        return "" if found is None else f"{found:.{decimals}%}"

    return cell


def word(path: str) -> Cell:
    """The text at a path; of a truth value, yes or no; of a list, its parts."""

    def cell(row: Any) -> str:
        found = at(row, path)
        if isinstance(found, bool):
            return "yes" if found else "no"
        return ", ".join(map(str, found)) if isinstance(found, list) else "" if found is None else str(found)

    return cell


def joined(between: str, *cells: Cell) -> Cell:
    """Several cells as one; nothing where one of them is empty."""

    def cell(row: Any) -> str:
        parts = [each(row) for each in cells]
        return between.join(parts) if all(parts) else ""

    return cell


def with_error(path: str, error: str, *, sign: bool = False) -> Cell:
    """A mean ± its standard error, which has two digits that count and says how many the mean has."""

    def cell(row: Any) -> str:
        mean, spread = at(row, path), at(row, error)
        if mean is None or not spread:
            return written(mean, sign=sign)
        decimals = max(0, 1 - math.floor(math.log10(spread)))
        return f"{mean:{'+' if sign else ''}.{decimals}f} ± {spread:.{decimals}f}".replace("-", "−", 1)

    return cell


def won(path: str) -> Cell:
    """Wins to losses over seeds."""
    return joined(":", whole(f"{path}/wins"), whole(f"{path}/losses"))


def interval(path: str, digits: int = 2, *, times: float = 1.0) -> Cell:
    """Both ends of an interval."""
    return joined(" to ", *(number(f"{path}/{end}", digits, times=times, sign=True) for end in (0, 1)))


def table(corner: str, rows: Rows, columns: Mapping[str, Cell]) -> str:
    """A Markdown table of one line a row; columns that are empty throughout are left out, and a warning says so."""
    named = list(rows.items() if isinstance(rows, Mapping) else rows)
    made = {head: [cell(row) for _, row in named] for head, cell in columns.items()}
    shown = {head: cells for head, cells in made.items() if any(cells)}
    for head in made.keys() - shown.keys():  # perhaps the file has another name for it now
        log.warning("nothing is known of %r by %r, and the column is left out", head, corner)
    lines = [[corner, *shown], ["---"] * (1 + len(shown))]
    lines += [[name, *(cells[i] for cells in shown.values())] for i, (name, _) in enumerate(named)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
