"""What a search on a table came to: the networks that are kept, beside the rivals, in numbers and in words."""

import math
import shutil
from typing import Any

import numpy as np

import bonas
from bonas.study.job import Job, best_configurations, trainer
from bonas.study.store import Record
from bonas.study.study import Study
from bonas.tabular import kept, look
from bonas.tabular.columns import Columns
from bonas.tabular.committee import Committee, committee
from bonas.tabular.look import Answer
from bonas.tabular.rivals import NAMES, RIVALS, answers
from bonas.tabular.spaces import in_words
from bonas.tabular.training import in_units

_DECIMALS = 6  # at most: beyond, powers of ten are easier to read


def finish(study: Study, job: Job) -> dict[str, Any]:
    """Train and keep the networks of the best configurations, compare them, and note the result with the study."""
    made = trainer(job)
    table, best = made.prepared, best_of(study)
    chosen = best_configurations(study)
    found = committee(made, chosen)
    columns, test = table.columns, table.whole.test
    y = in_units(table.whole, test.y)
    rows = test.x * table.whole.scaling.x_scale + table.whole.scaling.x_centre
    scores = {"bonas": _both(columns, found.validation, made.held_out, kept.answer_of(columns.task, found.groups, rows), y)}
    for rival in RIVALS:
        held, tested = answers(rival, table, job.seed)
        scores[rival] = _both(columns, held, made.held_out, tested, y)
    longest = made.family.checkpoints[-1]
    result = {
        "task": columns.task,
        "target": columns.target,
        "trials": ended(study),
        "rows": {"train_and_validation": len(table.whole.train.x), "folds": len(table.folds), "test": len(y)},
        "best": {"number": best.number, "config": best.config, "value": best.value, "in_words": in_words(best.config)},
        "score": made.family.score,
        "networks": _networks(found, made.family.unit),
        "still_falling": f"{longest} {made.family.unit}" if chosen[0].until == longest else None,
        "validation": {name: each[0] for name, each in scores.items()},
        "test": {name: each[1] for name, each in scores.items()},
    }
    about = {**result, "data": job.data, "space": job.space, "seed": job.seed, "bonas": bonas.__version__}
    kept.save(kept.path_of(study.path), kept.Found(about, columns, found.groups))
    study.note("result", result)
    return result


def ended(study: Study) -> dict[str, int]:
    """How many trials were told, and how many have failed."""
    states = [record.state for record in study.trials]
    return {state: states.count(state) for state in ("told", "failed")}


def finished(study: Study) -> dict[str, Any] | None:
    """The result of a study whose networks are kept, if no trial has ended since; otherwise None."""
    result = study.notes.get("result", {})
    there = kept.path_of(study.path).is_file() and result.get("trials") == ended(study)
    return result if there and "in_words" in result["best"] else None  # not one that another bonas has noted


def best_of(study: Study) -> Record:
    """The best trial; a ValueError where there is none."""
    best = study.best
    if best is None:
        failed = [record for record in study.trials if record.state == "failed"]
        why = f": {failed[-1].error}" if failed else ""
        raise ValueError(f"none of the {len(study.trials)} trials has succeeded{why}")
    return best


def _networks(found: Committee, unit: str) -> dict[str, Any]:
    return {
        "in_all": sum(len(group.biases[-1]) for group in found.groups),
        "architectures": [{"in_words": in_words(each.config), unit: each.until} for each in found.chosen],
    }


def _both(columns: Columns, held: Answer, held_y: np.ndarray, tested: Answer, y: np.ndarray) -> list[dict[str, float]]:
    return [metrics(columns, held, held_y), metrics(columns, tested, y)]


def metrics(columns: Columns, answer: Answer, y: np.ndarray) -> dict[str, float]:
    """The scores of an answer, each with its standard error where that is easily had."""
    if columns.task == "classification":
        right = look.accuracy(answer, y)
        return {
            "accuracy": right,
            "accuracy_error": float(np.sqrt(right * (1.0 - right) / len(y))),
            "log_loss": look.log_loss(answer, y),
        }
    squares = (answer.mean - y) ** 2
    root = look.rmse(answer, y)
    # the standard error of a mean of squares, by way of the derivative of the root
    error = float(squares.std() / np.sqrt(len(y)) / (2.0 * root)) if root else 0.0
    total = float(np.sum((y - y.mean()) ** 2))
    found = {"rmse": root, "rmse_error": error, "r2": 1.0 - float(squares.sum()) / total if total else 0.0}
    if answer.std is not None:
        found |= {"within_90": look.coverage(answer, y), "nats": look.nats(answer, y)}
    return found


def lines(result: dict[str, Any], width: int | None = None) -> list[str]:
    """The result for people, in a terminal of so many columns; None: of as many as this one has."""
    best, networks = result["best"], result["networks"]
    said = [
        f"Best architecture (trial {best['number']}, validation {look.NAMES[result['score']]} {plain(best['value'])}):",
        f"  {best['in_words']}",
        *_falling(result),
        f"Kept: {_kept(networks['in_all'])} of the {_count(len(networks['architectures']))}.",
        "",
        *_comparison(result, shutil.get_terminal_size().columns if width is None else width),
    ]
    if "within_90" in result["test"]["bonas"]:
        covered = result["test"]["bonas"]["within_90"]
        said += ["", f"Calibration: intervals that should hold 90% of the test values hold {covered:.0%}."]
    return said


def _falling(result: dict[str, Any]) -> list[str]:
    longest = result.get("still_falling")
    said = f"  at its last checkpoint, after {longest}, it was still getting better: trained for longer it might do better yet"
    return [said] if longest else []


def _comparison(result: dict[str, Any], width: int) -> list[str]:
    """The found networks and their rivals, a line each; where it is narrow, first on the rows held out, then on the test's."""
    task, rows = result["task"], result["rows"]
    main, second = ("accuracy", "log_loss") if task == "classification" else ("rmse", "r2")
    folds = f"{rows['folds']} folds" if rows["folds"] > 1 else "one row in five"
    names = {"validation": f"validation ({folds})", "test": f"test ({rows['test']} rows)"}
    title = f"{look.NAMES[main]} and {look.NAMES[second]}"
    columns = {part: [_cell(result[part][name], main, second) for name in ("bonas", *RIVALS)] for part in names}
    labels = ["  found by bonas", *(f"  {NAMES[name, task]}" for name in RIVALS)]
    wide = _aligned([title, *labels], *([names[part], *cells] for part, cells in columns.items()))
    if max(map(len, wide)) <= width:
        return wide
    return [line for part, cells in columns.items() for line in _aligned([names[part], *labels], [title, *cells])]


def _cell(scores: dict[str, float], main: str, second: str) -> str:
    return f"{with_error(scores[main], scores[f'{main}_error'])}  {scores[second]:6.3f}"


def _aligned(labels: list[str], *columns: list[str]) -> list[str]:
    """Lines of a table: labels to the left, columns to the right of their place."""
    widths = [max(map(len, column)) for column in columns]
    left = max(map(len, labels))
    cells = zip(*([f"{cell:>{width}}" for cell in column] for column, width in zip(columns, widths, strict=True)), strict=True)
    return ["   ".join([f"{label:<{left}}", *row]) for label, row in zip(labels, cells, strict=True)]


def with_error(value: float, error: float) -> str:
    """A number of four digits and its standard error, with as many decimals."""
    decimals = max(3 - math.floor(math.log10(abs(value))), 0) if value else 0
    if decimals > _DECIMALS or max(abs(value), error) >= 1e6:
        return f"{value:.4g} ± {error:.2g}"
    return f"{value:.{decimals}f} ± {error:.{decimals}f}"


def plain(value: float, digits: int = 4) -> str:
    """A number with so many significant digits; all of those before the point are written out, up to a million."""
    return f"{value:.0f}" if 10.0 ** (digits - 1) <= abs(value) < 1e6 else f"{value:.{digits}g}"


def _kept(networks: int) -> str:
    return "1 network" if networks == 1 else f"the average of {networks} networks"


def _count(architectures: int) -> str:
    return "best architecture" if architectures == 1 else f"{architectures} best architectures"
