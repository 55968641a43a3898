"""The durable door: studies, whose trials are kept in a file.

Names, and the module `report`, are loaded when first used (PEP 562): the command line lives here too, and
must answer `--help` without JAX.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bonas.study import report as report
    from bonas.study.execute import Event as Event
    from bonas.study.file import StudyError as StudyError
    from bonas.study.store import Record as Record
    from bonas.study.study import Study as Study
    from bonas.study.trial import Asked as Asked
    from bonas.study.trial import Stop as Stop

_HOMES = {"Asked": "trial", "Event": "execute", "Record": "store", "Stop": "trial", "Study": "study", "StudyError": "file"}
_MODULES = ("report",)
__all__ = sorted([*_HOMES, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"bonas.study.{_HOMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"bonas.study.{name}")
    raise AttributeError(f"module 'bonas.study' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
