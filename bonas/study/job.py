"""A search on a table, from its settings to what it found. All it needs to go on in another process is kept in the study."""

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from bonas.search import Search, curves, evolution, random
from bonas.study.execute import Watch
from bonas.study.file import StudyError
from bonas.study.store import Record
from bonas.study.study import Study
from bonas.study.trial import Asked
from bonas.tabular.committee import BEST, Chosen
from bonas.tabular.prepared import Prepared, prepare
from bonas.tabular.spaces import Family, family, in_words
from bonas.tabular.table import digest, read
from bonas.tabular.training import Going, Trainer

STAGES = 5  # parts of equal length that a search on learning curves trains networks in
_FAIR = 5  # checkpoints after which a training may be stopped for doing worse than most


@dataclass(frozen=True)
class Job:
    """What a search was told; it goes to JSON and back."""

    data: str  # a path, or the name of a set
    sha256: str  # of its contents
    target: str | None = None
    task: str | None = None
    space: str = "mlp"
    method: str = "bayes"
    seed: int = 0
    impute: bool = False
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    population: int = field(default=20, compare=False)  # of evolution: as the study was begun, whatever is asked later

    def to_json(self) -> dict[str, Any]:
        """What a study keeps of it."""
        return asdict(self)


def job_of(study: Study) -> Job:
    """The job that a study was made for."""
    kept = study.about.get("extra", {}).get("job")
    if not isinstance(kept, Mapping):
        raise StudyError(f"{study.path} was not made by bonas search: open it with bonas.Study({str(study.path)!r})")
    try:
        return Job(**{**kept, "categorical": tuple(kept["categorical"]), "drop": tuple(kept["drop"])})
    except (KeyError, TypeError) as problem:
        raise StudyError(f"{study.path} holds settings that this bonas does not know: {problem}") from problem


def checked(job: Job) -> Job:
    """The job, if its data are still what they were."""
    if Path(job.data).suffix and not Path(job.data).is_file():
        raise StudyError(f"the data of this study were in {job.data}, which is not there; --data FILE says where they are now")
    if digest(job.data) != job.sha256:
        raise StudyError(f"{job.data} has changed since the study began: a new study is needed")
    return job


@lru_cache(maxsize=2)
def prepared(job: Job) -> Prepared:
    """The job's table, read and divided once a process."""
    how = {"target": job.target, "task": job.task, "categorical": job.categorical, "drop": job.drop}
    table = read(job.data)
    return prepare(table._replace(source=shown(job.data)), job.seed, impute=job.impute, **how)


def shown(path: str) -> str:
    """A path as people would write it: from the working folder, where it is inside."""
    whole = Path(path)
    return str(whole.relative_to(Path.cwd())) if whole.is_relative_to(Path.cwd()) else path


@lru_cache(maxsize=2)
def trainer(job: Job) -> Trainer:
    """What trains the job's networks, made once a process: a worker begins with nothing."""
    import bonas

    bonas.configure()
    table = prepared(job)
    return Trainer(table, family(job.space, table.size), job.seed)


def search_of(job: Job, made: Family) -> Search | None:
    """How points are chosen; None is the study's own, Bayesian optimisation."""
    if job.method == "curves":
        stage = len(made.checkpoints) // STAGES
        return curves(made.space, made.checkpoints[stage - 1 :: stage])
    if job.method == "bayes":
        return None
    return random(made.space) if job.method == "random" else evolution(made.space, population=job.population)


def open_study(path: Path, job: Job, moved: Job | None = None) -> Study:
    """The study of a job: a new one, or the one that is there, if it is of this job; `moved` is where its data are now."""
    begun = _begun(path)
    _check_same(path, begun or job, job)
    made = trainer(moved or job).family
    study = Study(path, made.space, seed=job.seed, search=search_of(begun or job, made), extra={"job": job.to_json()})
    try:
        _check_same(path, job_of(study), job)  # another process may have been faster
    except StudyError:
        study.close()
        raise
    return study


def _begun(path: Path) -> Job | None:
    """The job of the study that is there; None where there is none, or none that can be read: opening it says why."""
    try:
        study = Study(path)
    except StudyError:
        return None
    with study:
        return job_of(study)


def _check_same(path: Path, kept: Job, job: Job) -> None:
    names = [
        name for name, value in asdict(kept).items() if value != getattr(job, name) and name not in ("sha256", "population")
    ]
    if kept != job:
        told = " and ".join(_told(name, getattr(kept, name)) for name in names) or "with other contents of the data"
        raise StudyError(f"{path} was begun {told}: give --study another FILE, or go on with bonas resume {path}")


def _told(name: str, value: Any) -> str:
    """A setting as the command was told it."""
    if name == "data":
        return f"on {shown(value)}"
    if value is None or value is False or value == ():
        return f"without --{name}"
    several = value if isinstance(value, tuple) else ("",) if value is True else (value,)
    return "with " + " ".join(f"--{name} {each}".rstrip() for each in several)


@dataclass(frozen=True)
class Objective:
    """The validation loss of a configuration, trained until it no longer falls or does worse than most."""

    job: Job

    def __call__(self, config: Mapping[str, Any], trial: Asked) -> float:
        made = trainer(self.job)
        going = made.begin(config)
        for step in made.family.checkpoints:
            going = made.advance(going)
            trial.report(step, going.curve[-1])
            if going.stale or (len(going.curve) >= _FAIR and trial.should_stop()):
                break
        return _finite(going)


def enqueue_first(study: Study, job: Job) -> None:
    """Let a study without trials begin with what the family begins with, if anything."""
    first = trainer(job).family.first
    if first is not None and not study.trials:
        study.enqueue(first)


@dataclass(frozen=True)
class StageObjective:
    """The least validation loss of a network so far, trained one stage further than it was: for a search on learning curves.

    Networks in training are kept in memory. One that another process began is trained anew up to where it was.
    """

    job: Job
    study: Study
    going: dict[str, Going] = field(default_factory=dict, compare=False)

    def __call__(self, config: Mapping[str, Any], trial: Asked) -> float:
        made, name = trainer(self.job), repr(sorted(config.items()))
        if name not in self.going:
            self.going[name] = _stages(made, made.begin(config), stages_before(self.study, trial))[0]
        self.going[name], new = _stages(made, self.going[name], 1)
        for step, value in new:
            trial.report(step, value)
        return _finite(self.going[name])


def idle(study: Study) -> int:
    """How many trials have trained nothing, since their network no longer got better: they cost nothing, and do not count."""
    return sum(each.state == "told" and not each.reports for each in study.trials)


def optimise_stages(
    study: Study, objective: StageObjective, total: int | None, *, seconds: float | None = None, watch: Watch, **limits: Any
) -> None:
    """Train so many stages of networks, as `Study.optimise` does; trials that train nothing are not counted."""
    until = math.inf if seconds is None else time.monotonic() + seconds
    most = 0.0
    while most < (wanted := math.inf if total is None else total + idle(study)) and (left := until - time.monotonic()) > 0.0:
        most = wanted
        study.optimise(
            objective,
            None if total is None else int(most),
            seconds=None if seconds is None else left,
            watch=lambda event: watch(event._replace(done=event.done - idle(study))),
            **limits,
        )


def stages_before(study: Study, trial: Asked | Record) -> int:
    """How many stages of a trial's network were trained before it."""
    return sum(each.state == "told" and each.config == trial.config and each.number < trial.number for each in study.trials)


def network_of(job: Job, study: Study, trial: Record) -> str:
    """The network of a trial for people, and which part of its training this was where there are several."""
    words = in_words(trial.config)
    if job.method != "curves":
        return words
    skipped = " not trained, since it no longer gets better" if trial.state == "told" and not trial.reports else ""
    return f"part {stages_before(study, trial) + 1} of {STAGES}{skipped}: {words}"


def _stages(made: Trainer, going: Going, stages: int) -> tuple[Going, list[tuple[int, float]]]:
    """A network after so many stages more, and its values on the way; one that no longer gets better is not trained on."""
    each, new = len(made.family.checkpoints) // STAGES, []
    for _ in range(stages * each):
        if len(going.curve) == len(made.family.checkpoints) or (going.curve and going.stale):
            break
        going = made.advance(going)
        new.append((made.family.checkpoints[len(going.curve) - 1], going.curve[-1]))
    return going, new


def _finite(going: Going) -> float:
    if not math.isfinite(going.best):
        raise ValueError("the networks diverged: no validation loss was a finite number")
    return going.best


def best_configurations(study: Study, most: int = BEST) -> list[Chosen]:
    """The configurations with the least values, best first, each with the checkpoint at which it had that value."""
    curves: dict[str, list[Record]] = {}
    for record in study.trials:
        if record.state == "told":
            curves.setdefault(repr(sorted(record.config.items())), []).append(record)
    found = []
    for records in curves.values():
        reports = [(value, step) for record in records for step, value in record.reports if value is not None]
        if reports:
            found.append((min(reports), records[0].config))
    return [Chosen(config, step) for (_, step), config in sorted(found, key=lambda each: each[0])[:most]]
