"""Search for networks that predict one column of a table.

Names are imported when they are first used (PEP 562), so that reading a table does not load JAX.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bonas.tabular.columns import UNSEEN_RULES as UNSEEN_RULES
    from bonas.tabular.columns import Column as Column
    from bonas.tabular.columns import Columns as Columns
    from bonas.tabular.job import N_STAGES as N_STAGES
    from bonas.tabular.job import Job as Job
    from bonas.tabular.job import check_data as check_data
    from bonas.tabular.job import display_path as display_path
    from bonas.tabular.job import job_trainer as job_trainer
    from bonas.tabular.job import open_study as open_study
    from bonas.tabular.job import read_job as read_job
    from bonas.tabular.network_families import FAMILIES as FAMILIES
    from bonas.tabular.network_family import Family as Family
    from bonas.tabular.objectives import Objective as Objective
    from bonas.tabular.objectives import StageObjective as StageObjective
    from bonas.tabular.objectives import count_idle_trials as count_idle_trials
    from bonas.tabular.objectives import describe_trial as describe_trial
    from bonas.tabular.objectives import enqueue_first as enqueue_first
    from bonas.tabular.objectives import is_partial as is_partial
    from bonas.tabular.objectives import merge_parts as merge_parts
    from bonas.tabular.objectives import optimize_stages as optimize_stages
    from bonas.tabular.objectives import part_numbers as part_numbers
    from bonas.tabular.result import INTERVALS_NOTE as INTERVALS_NOTE
    from bonas.tabular.result import RESULT_NOTE as RESULT_NOTE
    from bonas.tabular.result import count_trials as count_trials
    from bonas.tabular.result import finish_search as finish_search
    from bonas.tabular.result import format_number as format_number
    from bonas.tabular.result import result_lines as result_lines
    from bonas.tabular.result import stored_result as stored_result
    from bonas.tabular.saved_model import Predictions as Predictions
    from bonas.tabular.saved_model import SavedModel as SavedModel
    from bonas.tabular.saved_model import load as load
    from bonas.tabular.saved_model import model_path as model_path
    from bonas.tabular.scores import SCORE_NAMES as SCORE_NAMES
    from bonas.tabular.splits import PreparedTable as PreparedTable
    from bonas.tabular.splits import prepare_table as prepare_table
    from bonas.tabular.table import Table as Table
    from bonas.tabular.table import digest as digest
    from bonas.tabular.table import read_table as read_table
    from bonas.tabular.training import REFERENCE_NAMES as REFERENCE_NAMES

_EXPORTS = {
    "columns": ("UNSEEN_RULES", "Column", "Columns"),
    "job": (
        "N_STAGES",
        "Job",
        "check_data",
        "display_path",
        "job_trainer",
        "open_study",
        "read_job",
    ),
    "network_families": ("FAMILIES",),
    "network_family": ("Family",),
    "objectives": (
        "Objective",
        "StageObjective",
        "count_idle_trials",
        "describe_trial",
        "enqueue_first",
        "is_partial",
        "merge_parts",
        "optimize_stages",
        "part_numbers",
    ),
    "result": (
        "INTERVALS_NOTE",
        "RESULT_NOTE",
        "count_trials",
        "finish_search",
        "format_number",
        "result_lines",
        "stored_result",
    ),
    "saved_model": ("Predictions", "SavedModel", "load", "model_path"),
    "scores": ("SCORE_NAMES",),
    "splits": ("PreparedTable", "prepare_table"),
    "table": ("Table", "digest", "read_table"),
    "training": ("REFERENCE_NAMES",),
}
_MODULES = {name: module for module, names in _EXPORTS.items() for name in names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"bonas.tabular.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'bonas.tabular' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
