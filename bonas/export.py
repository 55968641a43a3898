"""Studies in the files of other tools."""

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import optuna as optuna_package

    from bonas.spaces import Space
    from bonas.study import Record, Study

_STATES = {"queued": "WAITING", "asked": "RUNNING", "running": "RUNNING", "told": "COMPLETE", "failed": "FAIL"}


def optuna(
    study: "Study", storage: Any = None, *, name: str | None = None, overwrite: bool = False
) -> "optuna_package.study.Study":
    """The Optuna study that now holds all trials of a study of ours: `optuna-dashboard STORAGE` shows it.

    storage: the path of an SQLite file, a URL of a database as Optuna takes it, or an Optuna storage; by default the file
        beside the study that has its name with the ending `.optuna.db`. The file of a study of ours is refused.
    name: of the Optuna study, by default that of the study's file. One that is there already is a ValueError, unless
        `overwrite` has it deleted first.

    Numbers, values, intermediate values and times are kept. What a trial cost, why it failed and how its point was found are
    user attributes. Options that Optuna cannot keep (other than None, truth values, numbers and text) are there as text.
    """
    try:
        import optuna as package
    except ImportError as problem:
        raise ImportError("exporting to Optuna needs it: pip install bonas[optuna]") from problem
    storage = _address(study, study.path.with_suffix(".optuna.db") if storage is None else storage)
    storage, name = package.storages.get_storage(storage), name or study.path.stem
    if name in package.get_all_study_names(storage):
        if not overwrite:
            raise ValueError(f"the Optuna storage has a study {name!r} already; give another name, or overwrite=True")
        package.delete_study(study_name=name, storage=storage)
    direction = package.study.StudyDirection[study.direction.upper().replace("ISE", "IZE")]
    made = package.create_study(storage=storage, study_name=name, direction=direction)
    made.add_trials([_trial(record, study.space) for record in study.trials])
    return made


def _address(study: "Study", storage: Any) -> Any:
    """The storage as Optuna takes it: a path becomes a URL. A ValueError where its tables would come into a study of ours."""
    if not isinstance(storage, (str, os.PathLike)):
        return storage
    address = str(storage) if "://" in str(storage) else f"sqlite:///{Path(storage)}"
    if address.startswith("sqlite") and (file := address.partition(":///")[2].partition("?")[0]):
        taken = Path(file)
        if taken.resolve() == study.path.resolve() or _is_study(taken):
            raise ValueError(f"{taken} is a study of bonas, not of Optuna: export to another file")
    return address


def _is_study(path: Path) -> bool:
    """Whether the header of a file says that it is a study: bytes 68 to 71 of an SQLite file name its program."""
    from bonas.study.file import APPLICATION

    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(72)[68:] == APPLICATION.to_bytes(4, "big")


def _trial(record: "Record", space: "Space") -> Any:
    """One trial as Optuna keeps it."""
    from optuna.trial import TrialState, create_trial

    from bonas.interchange.distributions import distribution, option

    state = TrialState[_STATES[record.state]]
    config = {key: option(value) for key, value in record.config.items()}
    waiting = state == TrialState.WAITING
    made = create_trial(
        state=state,
        value=record.value if state == TrialState.COMPLETE else None,
        params={} if waiting else config,
        distributions={} if waiting else {key: distribution(space.parameters[key]) for key in config},
        user_attrs=_attributes(record),
        system_attrs={"fixed_params": config} if waiting else {},
        intermediate_values=dict(record.reports),
    )
    made.datetime_start = None if record.asked is None else datetime.fromtimestamp(record.asked)
    made.datetime_complete = None if record.ended is None else datetime.fromtimestamp(record.ended)
    return made


def _attributes(record: "Record") -> dict[str, Any]:
    known = {"cost": record.cost, "error": record.error, "traceback": record.traceback, "worker": record.worker, **record.info}
    return {key: value for key, value in known.items() if value not in (None, "")}
