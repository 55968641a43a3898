"""The settings of a search on a table, which are stored in its study.

They are all that another process needs to resume the search.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from bonas.search import Search, evolution, random
from bonas.study import Study, StudyError
from bonas.tabular.network_families import make_family
from bonas.tabular.network_family import Family
from bonas.tabular.splits import prepare_table
from bonas.tabular.table import digest, read_table
from bonas.tabular.training import Trainer

# A search on learning curves trains networks in this number of equal stages.
N_STAGES = 5


@dataclass(frozen=True)
class Job:
    """Settings of a search on a table, from the arguments of `bonas search`."""

    data: str  # a path, or the name of a scikit-learn data set
    sha256: str  # digest of the data
    target: str | None = None
    task: str | None = None
    space: str = "mlp"
    method: str = "bayes"
    seed: int = 0
    impute: bool = False
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    # Population of evolution. It is not compared, because a resumed study keeps its population.
    population: int = field(default=20, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Convert to a JSON-serializable dict."""
        return asdict(self)


def read_job(study: Study) -> Job:
    """Read the job of a study; raise a StudyError if the study has none."""
    stored = study.about.get("extra", {}).get("job")
    if not isinstance(stored, Mapping):
        raise StudyError(
            f"{study.path} was not made by bonas search; "
            f"open it in Python with bonas.Study({str(study.path)!r})"
        )
    try:
        lists = {name: tuple(stored[name]) for name in ("categorical", "drop")}
        return Job(**{**stored, **lists})
    except (KeyError, TypeError) as error:
        raise StudyError(
            f"cannot read the settings of the search in {study.path}: "
            f"{type(error).__name__}: {error}. It may come from another version of bonas; "
            "open it with that version, or start a new study with --study FILE"
        ) from error


def check_data(job: Job) -> Job:
    """Return the job unchanged; raise a StudyError if its data are missing or have changed."""
    if Path(job.data).suffix and not Path(job.data).is_file():
        raise StudyError(
            f"the data file {job.data} does not exist; if it was moved, pass --data FILE"
        )
    if digest(job.data) != job.sha256:
        raise StudyError(
            f"{job.data} has changed since the study started; start a new study"
        )
    return job


# A worker process receives the job with every trial, and reads the table for the first one only.
@lru_cache(maxsize=1)
def job_trainer(job: Job) -> Trainer:
    """Read the table of a job and create its trainer; the last result is cached."""
    import bonas

    bonas.configure()
    table = prepare_table(
        read_table(job.data)._replace(source=display_path(job.data)),
        job.seed,
        impute=job.impute,
        target=job.target,
        task=job.task,
        categorical=job.categorical,
        drop=job.drop,
    )
    return Trainer(table, make_family(job.space, table.size), job.seed)


def display_path(path: str) -> str:
    """Return a path as text, relative to the working directory if it is inside."""
    absolute = Path(path)
    folder = Path.cwd()
    return (
        str(absolute.relative_to(folder)) if absolute.is_relative_to(folder) else path
    )


def make_search(job: Job, family: Family) -> Search | None:
    """Create the search of a job; None for the default of studies, Bayesian optimization."""
    if job.method == "curves":
        from bonas.curves import curve_search  # no other method needs these models

        stage = len(family.checkpoints) // N_STAGES
        return curve_search(family.space, family.checkpoints[stage - 1 :: stage])
    if job.method == "random":
        return random(family.space)
    if job.method == "evolution":
        return evolution(family.space, population=job.population)
    if job.method == "bayes":
        return None
    raise ValueError(
        f"method must be bayes, curves, random or evolution; got {job.method!r}"
    )


def open_study(path: Path, job: Job, moved: Job | None = None) -> Study:
    """Create the study of a job, or open it if it exists.

    Args:
        path: The file of the study.
        job: The job, which must be equal to the job of an existing study.
        moved: The job with the current path of its data, if they were moved.

    Raises:
        StudyError: If the file is a study of another job.
    """
    existing = _existing_job(path)
    _check_same_job(path, existing or job, job)
    family = job_trainer(moved or job).family
    search = make_search(existing or job, family)
    study = Study(
        path, family.space, seed=job.seed, search=search, extra={"job": job.to_json()}
    )
    try:
        # another process may have created it
        _check_same_job(path, read_job(study), job)
    except StudyError:
        study.close()
        raise
    return study


def _existing_job(path: Path) -> Job | None:
    """Read the job of an existing study; None if the study cannot be opened."""
    try:
        study = Study(path)
    except StudyError:  # opening it again reports the error
        return None
    with study:
        return read_job(study)


def _check_same_job(path: Path, existing: Job, job: Job) -> None:
    if existing == job:
        return
    different = [
        name
        for name, value in asdict(existing).items()
        if value != getattr(job, name) and name not in ("sha256", "population")
    ]
    settings = [_describe_setting(name, getattr(existing, name)) for name in different]
    started = " and ".join(settings) or "with different data"
    raise StudyError(
        f"{path} was started {started}; choose another file with --study FILE, "
        f"or continue it with: bonas resume {path}"
    )


def _describe_setting(name: str, value: Any) -> str:
    """Describe a setting by its command-line option."""
    if name == "data":
        return f"on {display_path(value)}"
    if value is None or value is False or value == ():
        return f"without --{name}"
    if value is True:
        return f"with --{name}"
    values = value if isinstance(value, tuple) else (value,)
    return "with " + " ".join(f"--{name} {each}" for each in values)
