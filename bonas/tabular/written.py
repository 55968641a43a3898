"""Predictions as a CSV file: one line for each row, in the order of the rows, by whose number they are told apart."""

import csv
import sys
from pathlib import Path

from bonas.tabular.kept import Found, Predictions


def write_predictions(path: Path | None, found: Found, predictions: Predictions) -> None:
    """Write the number of each row, from 1, its value, and how sure that is: a standard deviation, or a chance of each class.

    Without a path they go to the standard output.
    """
    header, rows = _rows(found, predictions)
    first = "row" if found.columns.target != "row" else "row_number"
    lines = [[first, *header], *([number, *row] for number, row in enumerate(rows, start=1))]
    if path is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows(lines)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)


def _rows(found: Found, predictions: Predictions) -> tuple[list[str], list[list]]:
    target = found.columns.target
    if predictions.probabilities is None:
        pairs = zip(predictions.value, predictions.std, strict=True)  # type: ignore[arg-type]
        return [target, f"{target}_std"], [[f"{value:.7g}", f"{std:.7g}"] for value, std in pairs]
    rows = zip(predictions.value, predictions.probabilities, strict=True)
    header = [target, *(f"probability={name}" for name in found.classes)]
    return header, [[value, *(f"{chance:.6f}" for chance in chances)] for value, chances in rows]
