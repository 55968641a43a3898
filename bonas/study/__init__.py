"""Studies: searches whose trials are stored in a file.

Names are imported on first use (PEP 562), so that the command line can answer `--help` without
loading JAX.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bonas.study.database import APPLICATION_ID as APPLICATION_ID
    from bonas.study.database import Database as Database
    from bonas.study.database import StudyError as StudyError
    from bonas.study.default_search import MAX_ROWS as MAX_ROWS
    from bonas.study.default_search import SubsetSurrogate as SubsetSurrogate
    from bonas.study.importance import divide_huge as divide_huge
    from bonas.study.records import Callback as Callback
    from bonas.study.records import Event as Event
    from bonas.study.records import TrialRecord as TrialRecord
    from bonas.study.serialize import is_restorable as is_restorable
    from bonas.study.serialize import space_to_json as space_to_json
    from bonas.study.study import Study as Study
    from bonas.study.study_settings import DIRECTIONS as DIRECTIONS
    from bonas.study.trial import Pruned as Pruned
    from bonas.study.trial import Trial as Trial

_MODULES = {
    "APPLICATION_ID": "database",
    "DIRECTIONS": "study_settings",
    "MAX_ROWS": "default_search",
    "Callback": "records",
    "Database": "database",
    "Event": "records",
    "Pruned": "trial",
    "Study": "study",
    "StudyError": "database",
    "Trial": "trial",
    "TrialRecord": "records",
    "SubsetSurrogate": "default_search",
    "divide_huge": "importance",
    "is_restorable": "serialize",
    "space_to_json": "serialize",
}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"bonas.study.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'bonas.study' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
