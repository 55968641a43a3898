"""Read the data of a study that the sections of a report use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from bonas.report.drawing import Scale
from bonas.report.figures import value_of, value_scale
from bonas.report.fitted_model import MIN_TRIALS, FittedModel, fit_model
from bonas.study import DIRECTIONS, Study, TrialRecord, is_restorable, space_to_json
from bonas.tabular import RESULT_NOTE, SCORE_NAMES, is_partial, merge_parts

# The note where a search on a table stores its data, target, task and score.
TABLE_NOTE = "table"


class Subject(NamedTuple):
    """The labels that describe a study in a report; text from users is not HTML-escaped."""

    value: str = "value"  # the value of a trial, such as "validation RMSE of price"
    score: str = "value"  # a short form, such as "RMSE"
    table: Mapping[str, str] = {}  # settings of a search on a table
    partial: bool = False  # whether a trial is one stage of the training of a network
    seconds: bool = False  # whether all costs are seconds

    @property
    def noun(self) -> str:
        """The noun for a configuration: "trial", or "network" if several trials train one."""
        return "network" if self.partial else "trial"


@dataclass(frozen=True)
class Values:
    """The trials of a study that have a value; there is at least one."""

    complete: list[TrialRecord]  # trials with a value, pruned ones included
    # all of `complete`, or only the last trial of each network
    items: list[TrialRecord]
    best: TrialRecord
    best_item: TrialRecord  # the best trial, or the last trial of its network
    sign: float  # 1 if low values are good, -1 if high values are
    scale: Scale  # the axis of values
    # None if there are too few values or conditions are unknown
    model: FittedModel | None


@dataclass(frozen=True)
class StudyFacts:
    """The data of a study, read once for all sections."""

    study: Study
    subject: Subject
    trials: list[TrialRecord]
    notes: dict[str, Any]
    has_full_space: bool  # False if the file lacks conditions that are functions
    values: Values | None  # None without complete trials


def read_facts(study: Study) -> StudyFacts:
    """Read the data of a study for a report, and fit a model to its values."""
    trials = study.trials
    subject = read_subject(study)
    space_json = study.about["space"]
    has_full_space = (
        is_restorable(space_json) or space_to_json(study.space) == space_json
    )
    values = _read_values(study, trials, subject, has_full_space)
    return StudyFacts(study, subject, trials, study.notes, has_full_space, values)


def _read_values(
    study: Study, trials: list[TrialRecord], subject: Subject, has_full_space: bool
) -> Values | None:
    best = study.best
    complete = [trial for trial in trials if trial.value is not None]
    if best is None or not complete:
        return None
    items = merge_parts(complete) if subject.partial else complete
    best_item = best
    if subject.partial:
        best_item = next(item for item in items if item.config == best.config)
    sign = DIRECTIONS[study.direction]
    model = None
    if has_full_space and len(items) >= MIN_TRIALS:
        points = [item.u for item in items]
        model = fit_model(
            study.space,
            points,
            [value_of(item) for item in items],
            sign=sign,
            seed=study.seed,
        )
    return Values(
        complete=complete,
        items=items,
        best=best,
        best_item=best_item,
        sign=sign,
        scale=value_scale([value_of(trial) for trial in complete], sign),
        model=model,
    )


def read_subject(study: Study) -> Subject:
    """Return the labels for a study in its report, from its settings and notes."""
    job = _as_dict(_as_dict(study.about.get("extra")).get("job"))
    if not job:
        return Subject()
    notes = study.notes
    known = job | _as_dict(notes.get(RESULT_NOTE)) | _as_dict(notes.get(TABLE_NOTE))
    labels = {
        "data set": "data",
        "target": "target",
        "task": "task",
        "networks": "space",
        "method": "method",
    }
    table = {label: str(known[key]) for label, key in labels.items() if known.get(key)}
    score = SCORE_NAMES.get(str(known.get("score")), "value")
    value = score
    if score != "value":
        value = f"validation {score}"
        if known.get("target"):
            value += f" of {known['target']}"
    return Subject(value, score, table, is_partial(study.about), seconds=True)


def _as_dict(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}
