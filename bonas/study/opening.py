"""What the command says before a search begins, and how far it is when it ends."""

from bonas.study.job import STAGES, Job, shown, trainer
from bonas.study.study import Study
from bonas.tabular.look import NAMES
from bonas.tabular.prepared import Prepared


def opening(table: Prepared, study: Study, job: Job, total: int | None) -> list[str]:
    """Lines about the table, what the value of a trial is, and the study."""
    columns, train, test = table.columns, len(table.whole.train.x), len(table.whole.test.x)
    kinds = f" of {len(columns.classes)} classes" if columns.classes else ""
    inferred = "" if job.task else " (inferred; --task says otherwise)"
    folds = f"validation by {len(table.folds)} folds" if len(table.folds) > 1 else "one in five of these validates"
    return [
        f"{shown(job.data)}: {columns.task}{kinds} of {columns.target!r}{inferred}, from {len(columns.names)} inputs",
        f"{train} rows to search on, {folds}; {test} rows for the test",
        *table.notices,
        *_trials_in_words(job, columns.target, total),
        f"study {study.path}" + (f": {so_far(study)}" if study.trials else ""),
    ]


def described(table: Prepared, job: Job) -> dict[str, str]:
    """What a study is about, to be noted with it."""
    about = {"target": table.columns.target, "task": table.columns.task, "score": trainer(job).family.score}
    return {"data": job.data, **about}


def done(study: Study) -> int:
    """How many trials have ended."""
    return sum(record.state in ("told", "failed") for record in study.trials)


def so_far(study: Study) -> str:
    """How many trials have ended, and how many were begun in vain."""
    ended = done(study)
    again = len(study.trials) - ended
    return f"{ended} trial{'s' * (ended != 1)} done" + (f", {again} to repeat" if again else "")


def _trials_in_words(job: Job, target: str, total: int | None) -> list[str]:
    """What the value of a trial is and, where it trains a part of a network, how many there are."""
    score = trainer(job).family.score
    unit = f"in the units of {target!r}" if score == "rmse" else "in nats a row"
    value = f"the value of a trial is its validation {NAMES[score]}, {unit}: the lower, the better"
    if job.method != "curves":
        return [value]
    whole = f": {total} trials cost as much as {total // STAGES} whole networks" if total else ""
    return [value, f"each trial trains one network by one part of {STAGES}{whole}"]
