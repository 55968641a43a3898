"""The result of a search on a table: the final networks compared with reference models."""

import math
import shutil
from typing import Any

import numpy as np
from jaxtyping import Shaped

import bonas
from bonas.study import Study, StudyError, TrialRecord
from bonas.tabular import scores
from bonas.tabular.columns import Columns
from bonas.tabular.job import Job, job_trainer
from bonas.tabular.network_family import describe_network
from bonas.tabular.objectives import best_configurations
from bonas.tabular.saved_model import SavedModel, model_path, predict_groups, save
from bonas.tabular.scores import SCORE_NAMES, Predictive
from bonas.tabular.training import (
    REFERENCE_NAMES,
    REFERENCES,
    ChosenConfig,
    FinalEnsemble,
    Trainer,
    reference_predictions,
    targets_in_units,
    train_final_ensemble,
)

# The note of a study with the result of its search.
RESULT_NOTE = "result"
# The note of a study with the coverage of prediction intervals on the test rows.
INTERVALS_NOTE = "intervals"
# Numbers with more decimals are written with an exponent.
_MAX_DECIMALS = 6


def finish_search(study: Study, job: Job) -> dict[str, Any]:
    """Train and save the final networks, and compare them with the reference models.

    Args:
        study: The study, with at least one complete trial.
        job: The job of the study.

    Returns:
        The result, which is also stored in the notes of the study under `RESULT_NOTE`.
    """
    trainer = job_trainer(job)
    chosen = best_configurations(study)
    best = best_trial(study)
    ensemble = train_final_ensemble(trainer, chosen)
    table = trainer.table
    test = table.development.test
    scaling = table.development.scaling
    y = targets_in_units(table.development, test.y)
    rows = test.x * scaling.x_scale + scaling.x_center
    predicted = predict_groups(table.columns.task, ensemble.groups, rows)
    predictions = {"bonas": (ensemble.validation, predicted)}
    for name in REFERENCES:
        predictions[name] = reference_predictions(name, table, job.seed)
    result = {
        **_describe_search(study, trainer, best),
        "networks": _describe_ensemble(ensemble, trainer.family.unit),
        "still_falling": _describe_last_checkpoint(trainer, chosen[0]),
        "validation": {
            name: compute_scores(table.columns, each, trainer.validation_targets)
            for name, (each, _) in predictions.items()
        },
        "test": {
            name: compute_scores(table.columns, each, y)
            for name, (_, each) in predictions.items()
        },
    }
    settings = {
        "data": job.data,
        "space": job.space,
        "seed": job.seed,
        "bonas": bonas.__version__,
    }
    model = SavedModel({**result, **settings}, table.columns, ensemble.groups)
    save(model_path(study.path), model)
    study.note(RESULT_NOTE, result)
    if predicted.std is not None:
        intervals = scores.interval_coverage(predicted, y)
        study.note(INTERVALS_NOTE, {"rows": len(y), "held": intervals})
    return result


def count_trials(study: Study) -> dict[str, int]:
    """Count the trials that have ended, by state."""
    states = [trial.state for trial in study.trials]
    return {state: states.count(state) for state in ("complete", "pruned", "failed")}


def stored_result(study: Study) -> dict[str, Any] | None:
    """Return the stored result of a study, or None if it is missing or out of date.

    It is out of date if the networks are not saved or trials have ended since.
    """
    result = study.notes.get(RESULT_NOTE)
    if result is None or not model_path(study.path).is_file():
        return None
    done = sum(count_trials(study).values())
    try:
        # Early versions counted pruned trials as complete, and did not describe the best trial.
        is_current = sum(result["trials"].values()) == done
        if not is_current or "in_words" not in result["best"]:
            return None
        result_lines(result)
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        raise StudyError(
            f"{study.path}: note {RESULT_NOTE!r} is not the result of a search: {error!r}"
        ) from error
    return dict(result)


def best_trial(study: Study) -> TrialRecord:
    """Return the best trial; raise a ValueError if no trial is complete."""
    best = study.best
    if best is not None:
        return best
    failed = [trial for trial in study.trials if trial.state == "failed"]
    reason = f": {failed[-1].error}" if failed else ""
    raise ValueError(f"none of the {len(study.trials)} trials is complete{reason}")


def _describe_search(
    study: Study, trainer: Trainer, best: TrialRecord
) -> dict[str, Any]:
    table = trainer.table
    return {
        "task": table.columns.task,
        "target": table.columns.target,
        "trials": count_trials(study),
        "rows": {
            "train_and_validation": len(table.development.train.x),
            "folds": len(table.folds),
            "test": len(table.development.test.y),
        },
        "best": {
            "number": best.number,
            "config": best.config,
            "value": best.value,
            "in_words": describe_network(best.config),
        },
        "score": trainer.family.score,
    }


def _describe_ensemble(ensemble: FinalEnsemble, unit: str) -> dict[str, Any]:
    return {
        "in_all": sum(len(group.biases[-1]) for group in ensemble.groups),
        "architectures": [
            {"in_words": describe_network(each.config), unit: each.until}
            for each in ensemble.chosen
        ],
    }


def _describe_last_checkpoint(trainer: Trainer, best: ChosenConfig) -> str | None:
    """Describe the last checkpoint, if the loss of the best configuration was still improving."""
    last = trainer.family.checkpoints[-1]
    return f"{last} {trainer.family.unit}" if best.until == last else None


def compute_scores(
    columns: Columns, predicted: Predictive, y: Shaped[np.ndarray, " n"]
) -> dict[str, float]:
    """Score predictions for the true values or labels y, with an error of the main score.

    Returns:
        Scores by name: accuracy, its standard error and log loss for classification; RMSE, its
        standard error and R² for regression, with coverage and density if predictions have a
        standard deviation.
    """
    n = len(y)
    if columns.task == "classification":
        accuracy = scores.accuracy(predicted, y)
        return {
            "accuracy": accuracy,
            "accuracy_error": float(np.sqrt(accuracy * (1.0 - accuracy) / n)),
            "log_loss": scores.log_loss(predicted, y),
        }
    squares = scores.residuals(predicted, y) ** 2
    rmse = scores.rmse(predicted, y)
    # The standard error of the mean of squares, times the derivative of the square root.
    error = float(squares.std() / np.sqrt(n) / (2.0 * rmse)) if rmse else 0.0
    values = y.astype(np.float64)
    total = float(np.sum((values - values.mean()) ** 2))
    r2 = 1.0 - float(squares.sum()) / total if total else 0.0
    computed = {"rmse": rmse, "rmse_error": error, "r2": r2}
    if predicted.std is not None:
        computed["within_90"] = scores.coverage(predicted, y)
        computed["nats"] = scores.negative_log_density(predicted, y)
    return computed


# The result as text


def result_lines(result: dict[str, Any], width: int | None = None) -> list[str]:
    """Format a result as lines of text; the default width is that of the terminal."""
    best = result["best"]
    score = SCORE_NAMES[result["score"]]
    lines = [
        f"Best architecture (trial {best['number']}, validation {score} "
        f"{format_number(best['value'])}):",
        f"  {best['in_words']}",
    ]
    if last := result.get("still_falling"):
        lines.append(
            f"  its loss was still falling at the last checkpoint, after {last}: "
            "longer training might improve it"
        )
    lines += [_describe_kept(result["networks"]), ""]
    lines += _comparison_table(result, width or shutil.get_terminal_size().columns)
    if "within_90" in result["test"]["bonas"]:
        covered = result["test"]["bonas"]["within_90"]
        lines += [
            "",
            f"Calibration: the 90% intervals contain {covered:.0%} of the test values.",
        ]
    return lines


def _describe_kept(networks: dict[str, Any]) -> str:
    n = networks["in_all"]
    kept = "1 network" if n == 1 else f"the average of {n} networks"
    architectures = len(networks["architectures"])
    best = (
        "best architecture"
        if architectures == 1
        else f"{architectures} best architectures"
    )
    return f"Saved: {kept} of the {best}."


def _comparison_table(result: dict[str, Any], width: int) -> list[str]:
    """Format the scores, one line per model; in a narrow terminal, validation above test."""
    task = result["task"]
    rows = result["rows"]
    main, second = (
        ("accuracy", "log_loss") if task == "classification" else ("rmse", "r2")
    )
    folds = f"{rows['folds']} folds" if rows["folds"] > 1 else "one row in five"
    titles = {
        "validation": f"validation ({folds})",
        "test": f"test ({rows['test']} rows)",
    }
    corner = f"{SCORE_NAMES[main]} and {SCORE_NAMES[second]}"
    labels = [
        "  found by bonas",
        *(f"  {REFERENCE_NAMES[name, task]}" for name in REFERENCES),
    ]
    cells = {
        part: [
            _score_cell(result[part][name], main, second)
            for name in ("bonas", *REFERENCES)
        ]
        for part in titles
    }
    wide = _align([corner, *labels], *([titles[part], *cells[part]] for part in titles))
    if max(map(len, wide)) <= width:
        return wide
    lines = []
    for part, title in titles.items():
        lines += _align([title, *labels], [corner, *cells[part]])
    return lines


def _score_cell(computed: dict[str, float], main: str, second: str) -> str:
    main_cell = format_with_error(computed[main], computed[f"{main}_error"])
    return f"{main_cell}  {computed[second]:6.3f}"


def _align(labels: list[str], *columns: list[str]) -> list[str]:
    """Align labels to the left and columns to the right."""
    label_width = max(map(len, labels))
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for label, *cells in zip(labels, *columns, strict=True):
        padded = [f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)]
        lines.append("   ".join([f"{label:<{label_width}}", *padded]))
    return lines


def format_with_error(value: float, error: float) -> str:
    """Format a number with four significant digits, and its standard error to as many decimals."""
    decimals = max(3 - math.floor(math.log10(abs(value))), 0) if value else 0
    if decimals > _MAX_DECIMALS or max(abs(value), error) >= 1e6:
        return f"{value:.4g} ± {error:.2g}"
    return f"{value:.{decimals}f} ± {error:.{decimals}f}"


def format_number(value: float, digits: int = 4) -> str:
    """Format a number with `digits` significant digits.

    Numbers with more digits before the decimal point are rounded to integers up to 1e6.
    """
    if 10.0 ** (digits - 1) <= abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"
