"""Whether the found networks know how sure they may be: how many test values their intervals of several sizes hold."""

from typing import Any

import numpy as np

from bonas.study.job import Job, prepared
from bonas.study.study import Study
from bonas.tabular import kept
from bonas.tabular.look import Answer
from bonas.tabular.training import in_units

NOTE = "intervals"  # under which a study has them
LEVELS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)  # per cent that an interval should hold


def note_intervals(study: Study, job: Job) -> None:
    """Note with the study what share of the test values central intervals of the kept networks hold; nothing of classes."""
    table = prepared(job)
    test, scaling = table.whole.test, table.whole.scaling
    found = kept.load(kept.path_of(study.path))
    answer = kept.answer_of(table.columns.task, found.groups, test.x * scaling.x_scale + scaling.x_centre)
    if answer.std is not None:
        study.note(NOTE, {"rows": len(test.y), "held": shares(answer, in_units(table.whole, test.y))})


def shares(answer: Answer, y: np.ndarray) -> dict[str, Any]:
    """Share of values within the central interval of a normal distribution, by the per cent that it should hold."""
    from scipy.stats import norm

    far = np.abs(answer.mean - y) / np.asarray(answer.std)
    return {str(level): float(np.mean(far <= norm.ppf(0.5 + level / 200.0))) for level in LEVELS}
