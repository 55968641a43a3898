"""Objectives of a search on a table, and the interpretation of their trials.

With `--method curves`, a trial trains one network for one stage, so that a network has several
trials. With other methods, a trial trains a network to the end.
"""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bonas.study import Callback, Study, Trial, TrialRecord
from bonas.tabular.job import N_STAGES, Job, job_trainer
from bonas.tabular.network_family import describe_network
from bonas.tabular.training import ChosenConfig, Trainer, TrainingRun

# Largest number of configurations in the final ensemble.
MAX_CHOSEN = 5
# Number of checkpoints before a trial can be pruned.
_MIN_CHECKPOINTS = 5


@dataclass(frozen=True)
class Objective:
    """Objective that trains a configuration until it stops improving or is pruned.

    It returns the lowest validation loss, and raises a ValueError if none is finite.
    """

    job: Job

    def __call__(self, config: Mapping[str, Any], trial: Trial) -> float:
        trainer = job_trainer(self.job)
        run = trainer.start(config)
        for step in trainer.family.checkpoints:
            run = trainer.advance(run)
            trial.report(step, run.curve[-1])
            if run.is_stale or (
                len(run.curve) >= _MIN_CHECKPOINTS and trial.should_prune()
            ):
                break
        return _check_finite(run)


@dataclass(frozen=True)
class StageObjective:
    """Objective that trains a configuration for one more stage of its training.

    It returns the lowest validation loss so far. Networks in training are kept in memory; a network
    that another process started is first trained again up to its last stage.
    """

    job: Job
    study: Study
    runs: dict[str, TrainingRun] = field(default_factory=dict, compare=False)

    def __call__(self, config: Mapping[str, Any], trial: Trial) -> float:
        trainer = job_trainer(self.job)
        name = _config_key(config)
        if name not in self.runs:
            done = part_numbers(self.study.trials)[trial.number] - 1
            self.runs[name], _ = _train_stages(trainer, trainer.start(config), done)
        self.runs[name], reports = _train_stages(trainer, self.runs[name], 1)
        for step, value in reports:
            trial.report(step, value)
        return _check_finite(self.runs[name])


def _train_stages(
    trainer: Trainer, run: TrainingRun, n_stages: int
) -> tuple[TrainingRun, list[tuple[int, float]]]:
    """Train for some stages, or until the loss stops improving; also return the new values."""
    checkpoints = trainer.family.checkpoints
    reports = []
    for _ in range(n_stages * (len(checkpoints) // N_STAGES)):
        if len(run.curve) == len(checkpoints) or (run.curve and run.is_stale):
            break
        run = trainer.advance(run)
        reports.append((checkpoints[len(run.curve) - 1], run.curve[-1]))
    return run, reports


def _check_finite(run: TrainingRun) -> float:
    if not math.isfinite(run.best):
        raise ValueError("training diverged: no validation loss is finite")
    return run.best


def enqueue_first(study: Study, job: Job) -> None:
    """Enqueue the first configuration of the network family, if the study has no trials."""
    config = job_trainer(job).family.first_config
    if config is not None and not study.trials:
        study.enqueue(config)


def optimize_stages(
    study: Study,
    objective: StageObjective,
    total: int | None,
    *,
    seconds: float | None = None,
    callback: Callback,
    **limits: Any,
) -> None:
    """Run `Study.optimize` until `total` stages are trained.

    Args:
        study: The study.
        objective: The objective.
        total: Number of trials, without those that train no stage because the loss of their network
            no longer improves; None for no limit.
        seconds: Stop starting new trials after this time.
        callback: Called with an `Event` whose `done` counts trials in the same way.
        **limits: Other arguments of `Study.optimize`.
    """
    deadline = math.inf if seconds is None else time.monotonic() + seconds

    def without_idle(event):
        callback(event._replace(done=event.done - count_idle_trials(study)))

    limit: int | None = -1
    while (left := deadline - time.monotonic()) > 0.0:
        new_limit = None if total is None else total + count_idle_trials(study)
        if new_limit == limit:
            return
        limit = new_limit
        study.optimize(
            objective,
            limit,
            seconds=None if seconds is None else left,
            callback=without_idle,
            **limits,
        )


# Trials


def is_partial(about: Mapping[str, Any]) -> bool:
    """Return whether the trials of a study are stages of networks (`--method curves`).

    Args:
        about: `Study.about` of the study.
    """
    extra = about.get("extra")
    job = extra.get("job") if isinstance(extra, Mapping) else None
    return isinstance(job, Mapping) and job.get("method") == "curves"


def part_numbers(trials: Iterable[TrialRecord]) -> dict[int, int]:
    """Map the number of each trial to the stage, from 1, that it trains of its network."""
    trained: dict[str, int] = {}
    numbers = {}
    for trial in trials:
        name = _config_key(trial.config)
        numbers[trial.number] = trained.get(name, 0) + 1
        trained[name] = trained.get(name, 0) + (trial.value is not None)
    return numbers


def merge_parts(trials: Iterable[TrialRecord]) -> list[TrialRecord]:
    """Return the last trial of every network, with the reports of all its stages."""
    parts = _by_config(trials)
    return [replace(each[-1], reports=_join_reports(each)) for each in parts.values()]


def _join_reports(parts: Sequence[TrialRecord]) -> tuple[tuple[int, float], ...]:
    return tuple(
        sorted({step: value for part in parts for step, value in part.reports}.items())
    )


def count_idle_trials(study: Study) -> int:
    """Count the trials that trained nothing, as the loss of their network no longer improves."""
    return sum(trial.value is not None and not trial.reports for trial in study.trials)


def describe_trial(job: Job, study: Study, trial: TrialRecord) -> str:
    """Describe the network of a trial, and its stage of training with `--method curves`."""
    network = describe_network(trial.config)
    if job.method != "curves":
        return network
    number = part_numbers(study.trials)[trial.number]
    is_idle = trial.value is not None and not trial.reports
    skipped = " skipped, no improvement" if is_idle else ""
    return f"part {number} of {N_STAGES}{skipped}: {network}"


def best_configurations(study: Study, limit: int = MAX_CHOSEN) -> list[ChosenConfig]:
    """Return the configurations with the lowest losses, each with its best checkpoint."""
    best = []
    for parts in _by_config(
        trial for trial in study.trials if trial.value is not None
    ).values():
        reports = [
            (value, step)
            for part in parts
            for step, value in part.reports
            if value is not None
        ]
        if reports:
            best.append((min(reports), parts[0].config))
    best.sort(key=lambda each: each[0])
    return [ChosenConfig(config, step) for (_, step), config in best[:limit]]


def _by_config(trials: Iterable[TrialRecord]) -> dict[str, list[TrialRecord]]:
    grouped: dict[str, list[TrialRecord]] = {}
    for trial in trials:
        grouped.setdefault(_config_key(trial.config), []).append(trial)
    return grouped


def _config_key(config: Mapping[str, Any]) -> str:
    return repr(sorted(config.items()))
