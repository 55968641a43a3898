"""The result of `bonas.minimize`: all evaluations and the best one."""

import math
from typing import Any, NamedTuple, cast

from bonas.search.argument_types import Direction
from bonas.search.objectives import direction_sign
from bonas.search.run_files import PathLike
from bonas.search.saved_runs import load_result, save_result
from bonas.search.search import AskInfo, Search


class Evaluation(NamedTuple):
    """One evaluation of the objective."""

    config: dict[str, Any]
    value: float  # NaN if it failed
    seconds: float
    error: str  # why it failed; empty if it did not
    info: AskInfo  # how the point was chosen
    # returned by the objective in addition to the value; None if it was not
    cost: float | None = None
    noise: float | None = None  # the variance of the noise of the value


class Result(NamedTuple):
    """The result of minimizing or maximizing a Python function."""

    config: dict[str, Any] | None  # the best; None if every evaluation failed
    # value of config; if every evaluation failed, inf (-inf when maximizing)
    value: float
    evaluations: list[Evaluation]  # in order
    state: Any  # the final state of the search
    direction: Direction = "minimize"

    def __str__(self) -> str:
        failed = sum(bool(evaluation.error) for evaluation in self.evaluations)
        suffix = f", {failed} of them failed" if failed else ""
        return f"{self.value:g} at {self.config} after {len(self.evaluations)} evaluations{suffix}"

    def save(self, path: PathLike) -> None:
        """Write the result to a file of arrays and JSON, without pickle.

        `Result.load` reads the file. Options other than None, booleans, numbers, strings and tuples
        of these, such as classes, are stored by name.

        Args:
            path: The file, which is replaced if it exists.
        """
        save_result(path, self._asdict())

    @classmethod
    def load(cls, path: PathLike, search: Search | None = None) -> "Result":
        """Load a saved result.

        Args:
            path: The file.
            search: The search that made the result, which is `bonas.bayes(space)` if `minimize` was
                called without one. Without it, the state is None and options that are stored by
                name are not restored.

        Raises:
            ValueError: If the file is not a saved result, is damaged, was written by a newer
                version, or belongs to a different search.
        """
        rows, direction, state = load_result(path, search)
        evaluations = [Evaluation(**row) for row in rows]
        return make_result(evaluations, state, cast(Direction, direction))


def make_result(
    evaluations: list[Evaluation], state: Any, direction: Direction
) -> Result:
    """Build a `Result` from evaluations and the final state of the search."""
    sign = direction_sign(direction)
    best = best_of(evaluations, sign)
    config = None if best is None else best.config
    value = sign * math.inf if best is None else best.value
    return Result(config, value, evaluations, state, direction)


def best_of(evaluations: list[Evaluation], sign: float = 1.0) -> Evaluation | None:
    """Return the best successful evaluation, the earliest if several are equal; None if all failed.

    Args:
        evaluations: The evaluations.
        sign: 1 to minimize, −1 to maximize.
    """
    successful = (evaluation for evaluation in evaluations if not evaluation.error)
    return min(successful, key=lambda evaluation: sign * evaluation.value, default=None)
