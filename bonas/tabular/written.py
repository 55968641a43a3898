"""Predictions as a CSV file: one line for each row, in the order of the rows."""

import csv
import sys
from pathlib import Path

from bonas.tabular.kept import Found, Predictions


def write_predictions(path: Path | None, found: Found, predictions: Predictions) -> None:
    """Write the value and its uncertainty: a standard deviation, or the probability of every class.

    Without a path they go to the standard output.
    """
    header, rows = _rows(found, predictions)
    if path is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows([header, *rows])
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def _rows(found: Found, predictions: Predictions) -> tuple[list[str], list[list]]:
    target = found.columns.target
    if predictions.probabilities is None:
        pairs = zip(predictions.value, predictions.std, strict=True)  # type: ignore[arg-type]
        return [target, f"{target}_std"], [[f"{value:.7g}", f"{std:.7g}"] for value, std in pairs]
    rows = zip(predictions.value, predictions.probabilities, strict=True)
    header = [target, *(f"probability={name}" for name in found.classes)]
    return header, [[value, *(f"{chance:.6f}" for chance in chances)] for value, chances in rows]
