"""What the command says before a search begins, and how far it is when it ends."""

from bonas.study.job import STAGES, Job, idle, shown, trainer
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
        f"study {study.path}" + (f": {so_far(study, job)}" if study.trials else ""),
    ]


def described(table: Prepared, job: Job) -> dict[str, str]:
    """What a study is about, to be noted with it."""
    about = {"target": table.columns.target, "task": table.columns.task, "score": trainer(job).family.score}
    return {"data": job.data, **about}


def done(study: Study, job: Job) -> int:
    """How many trials have ended; in a search on curves without those that had nothing to train, as the display counts them."""
    ended = sum(record.state in ("told", "failed") for record in study.trials)
    return ended - (idle(study) if job.method == "curves" else 0)


def so_far(study: Study, job: Job) -> str:
    """How many trials have ended, and how many were begun in vain."""
    ended, again = done(study, job), sum(record.state not in ("told", "failed") for record in study.trials)
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
