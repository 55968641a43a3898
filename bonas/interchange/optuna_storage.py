"""Export studies to Optuna storages."""

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bonas.study import APPLICATION_ID

if TYPE_CHECKING:
    import optuna as optuna_package

    from bonas.spaces import Space
    from bonas.study import Study, TrialRecord

# States whose names in Optuna are not the same word in upper case.
_OPTUNA_STATES = {"failed": "FAIL"}


def to_optuna(
    study: "Study",
    storage: Any = None,
    *,
    name: str | None = None,
    overwrite: bool = False,
) -> "optuna_package.study.Study":
    """Export all trials of a study to an Optuna study.

    View the result with `optuna-dashboard STORAGE`. Numbers, states, values, intermediate values
    and times are kept. Cost, noise variance, error, traceback, worker and how the point was chosen
    become user attributes. Options that Optuna cannot store, such as tuples, become strings.

    Args:
        study: The study to export.
        storage: The path of an SQLite file, a database URL as Optuna expects it, or an Optuna
            storage; by default, the path of the study with the suffix `.optuna.db`.
        name: The name of the Optuna study; by default, the stem of the study's file.
        overwrite: Whether to delete an existing Optuna study of this name, instead of raising a
            ValueError.

    Returns:
        The Optuna study.
    """
    try:
        import optuna
    except ImportError as problem:
        raise ImportError(
            "to_optuna needs Optuna: pip install 'bonas[optuna]'"
        ) from problem
    if storage is None:
        storage = study.path.with_suffix(".optuna.db")
    storage = optuna.storages.get_storage(_storage_url(study, storage))
    name = name or study.path.stem
    if name in optuna.get_all_study_names(storage):
        if not overwrite:
            raise ValueError(
                f"the Optuna storage already has a study {name!r}; choose another name, or pass "
                "overwrite=True"
            )
        optuna.delete_study(study_name=name, storage=storage)
    direction = optuna.study.StudyDirection[study.direction.upper()]
    exported = optuna.create_study(
        storage=storage, study_name=name, direction=direction
    )
    exported.add_trials([_optuna_trial(record, study.space) for record in study.trials])
    return exported


def _storage_url(study: "Study", storage: Any) -> Any:
    """Convert a path to a URL; raise a ValueError if it is the file of a bonas study."""
    if not isinstance(storage, (str, os.PathLike)):
        return storage
    url = str(storage) if "://" in str(storage) else f"sqlite:///{Path(storage)}"
    file = url.partition(":///")[2].partition("?")[0]
    if url.startswith("sqlite") and file:
        path = Path(file)
        if path.resolve() == study.path.resolve() or _is_bonas_study(path):
            raise ValueError(
                f"{path} is a bonas study, not an Optuna storage; choose another file"
            )
    return url


def _is_bonas_study(path: Path) -> bool:
    """Read the application id from bytes 68 to 71 of an SQLite file."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(72)[68:] == APPLICATION_ID.to_bytes(4, "big")


def _optuna_trial(record: "TrialRecord", space: "Space") -> Any:
    from optuna.trial import TrialState, create_trial

    from bonas.interchange.optuna_distributions import optuna_option, to_distribution

    state = TrialState[_OPTUNA_STATES.get(record.state, record.state.upper())]
    config = {name: optuna_option(value) for name, value in record.config.items()}
    distributions = {name: to_distribution(space.parameters[name]) for name in config}
    is_waiting = state == TrialState.WAITING
    trial = create_trial(
        state=state,
        value=record.value,
        params={} if is_waiting else config,
        distributions={} if is_waiting else distributions,
        user_attrs=_user_attributes(record),
        system_attrs={"fixed_params": config} if is_waiting else {},
        intermediate_values=dict(record.reports),
    )
    trial.datetime_start = _datetime(record.asked_time)
    trial.datetime_complete = _datetime(record.end_time)
    return trial


def _datetime(time: float | None) -> datetime | None:
    return None if time is None else datetime.fromtimestamp(time)


def _user_attributes(record: "TrialRecord") -> dict[str, Any]:
    attributes = {
        "cost": record.cost,
        "noise": record.noise,
        "error": record.error,
        "traceback": record.traceback,
        "worker": record.worker,
        **record.info,
    }
    return {
        name: value for name, value in attributes.items() if value not in (None, "")
    }
