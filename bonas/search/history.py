"""The history of a complete run, or of several runs."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from bonas.search.run_files import PathLike
from bonas.search.saved_runs import load_history, save_history
from bonas.search.search import AskInfo, Search
from bonas.spaces import Space


class History(NamedTuple):
    """The evaluations of a complete run, with the reports and the final state of the search.

    `run_many` adds a leading axis of runs to every array. An evaluation whose value is not finite
    has failed and is never the best.
    """

    x: Array  # (steps, d) points
    y: Array  # (steps,) values
    # (steps,) best value so far, infinite before the first success
    best: Array
    info: AskInfo  # (steps,) the report of the ask that proposed each point
    state: Any  # the final state of the search
    # (steps,) cost of each evaluation, by default 1
    cost: Array | None = None
    # () 1 if values were minimized, −1 if they were maximized; None is 1
    sign: Array | None = None
    # (steps,) what `run(record=)` computed after each evaluation
    record: Any = None

    @property
    def best_index(self) -> Int[Array, "*runs"]:
        """The position of the first best evaluation of each run.

        It is 0 if every evaluation failed; `best_value` is then infinite.
        """
        return jnp.argmin(self._losses(), axis=-1)

    @property
    def best_value(self) -> Float[Array, "*runs"]:
        """The value of the best evaluation of each run.

        If every evaluation failed, it is infinity, or −infinity if values were maximized.
        """
        lowest = jnp.min(self._losses(), axis=-1)
        return lowest if self.sign is None else self.sign * lowest

    @property
    def recommended(self) -> Float[Array, "*runs steps d"]:
        """The evaluated point with the best posterior mean after each evaluation.

        Noise does not improve the posterior mean, unlike the best value. The points are NaN before
        the first success. They require `run(..., record=bonas.search.model_record(search))`; see
        also `bonas.search.posterior(search, history).recommend()`.
        """
        return self._recorded("incumbent_x")

    @property
    def recommended_value(self) -> Float[Array, "*runs steps"]:
        """The posterior mean at each of the `recommended` points, in units of the objective."""
        return self._recorded("incumbent")

    @property
    def losses(self) -> Float[Array, "*runs steps"]:
        """The values to minimize: `y`, negated if the values were maximized."""
        return self.y if self.sign is None else self.sign[..., None] * self.y

    def save(self, path: PathLike) -> None:
        """Write the history to a file of arrays and JSON, without pickle.

        `History.load` reads the file. A history can also be pickled, unless its state contains an
        object that cannot, such as a function defined in a function.

        Args:
            path: The file, which is replaced if it exists.
        """
        save_history(path, self._asdict())

    @classmethod
    def load(cls, path: PathLike, search: Search | None = None) -> "History":
        """Load a saved history.

        Args:
            path: The file.
            search: The search that made the history. Without it, the state is None.

        Raises:
            ValueError: If the file is not a saved history, is damaged, was written by a newer
                version, or belongs to a different search.
        """
        return cls(**load_history(path, search))

    def followed_by(self, later: "History") -> "History":
        """Concatenate this history with that of a run that continued it.

        Args:
            later: The history of the later run, with the same direction and the same `record=`.

        Returns:
            One history of both runs, with the final state of `later`.

        Raises:
            ValueError: If the directions or the records differ.
        """
        rows = ("x", "y", "cost", "info", "record")
        trees = [{name: getattr(run, name) for name in rows} for run in (self, later)]
        first, second = map(str, map(jax.tree.structure, trees))
        if first != second:
            raise ValueError(
                f"both runs must have the same `record=`; got {first} and {second}"
            )
        signs: Any = (self.sign, later.sign)
        is_traced = any(isinstance(sign, jax.core.Tracer) for sign in signs)
        if not is_traced and not np.array_equal(*signs):
            raise ValueError(
                "both runs must have the same direction; "
                f"got the signs {signs[0]} and {signs[1]}"
            )
        axis = self.y.ndim - 1
        fields = jax.tree.map(lambda *each: jnp.concatenate(each, axis=axis), *trees)
        return later._replace(**fields, best=_best_so_far(fields["y"], self.sign))

    def best_config(self, space: Space) -> Any:
        """Return the configuration of the best evaluation; None if every evaluation failed.

        For several runs, return a list with one configuration or None per run.

        Args:
            space: The space of the search.
        """
        rows = jnp.take_along_axis(self.x, self.best_index[..., None, None], axis=-2)
        return _decode(space, rows[..., 0, :], jnp.isfinite(self.best_value))

    def recommended_config(self, space: Space) -> Any:
        """Return the configuration recommended at the end; None if every evaluation failed.

        It is the last of the `recommended` points. For several runs, return a list with one
        configuration or None per run.

        Args:
            space: The space of the search.
        """
        rows = self.recommended[..., -1, :]
        return _decode(space, rows, jnp.isfinite(rows).all(axis=-1))

    def _recorded(self, name: str) -> Array:
        """Return an entry of the record of `model_record`."""
        if not isinstance(self.record, dict) or name not in self.record:
            raise ValueError(
                "this history has no recommended points: pass record=bonas.search.model_record("
                "search) to run or run_many, or use bonas.search.posterior(search, history)"
                ".recommend() for the point at the end"
            )
        entry: Array = self.record[name]
        return entry

    def _losses(self) -> Array:
        """Return the values to minimize, infinite where the evaluation failed."""
        return jnp.where(jnp.isfinite(self.y), self.losses, jnp.inf)


def make_history(rows: dict[str, Any], state: Any, sign: float) -> History:
    """Return the history of one run.

    Args:
        rows: Fields of the history, with leading axes of asks and points per ask.
        state: The final state.
        sign: 1 if values were minimized, −1 if they were maximized.
    """
    fields = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), rows)
    y = fields["y"]
    direction = jnp.asarray(sign, y.dtype)
    best = _best_so_far(y, direction)
    return History(**fields, best=best, state=state, sign=direction)


def _best_so_far(y: Array, sign: Array | None) -> Array:
    """Return the best value after each evaluation, infinite before the first success."""
    factor = jnp.ones((1,), y.dtype) if sign is None else sign[..., None]
    losses = jnp.where(jnp.isfinite(y), factor * y, jnp.inf)
    return factor * jax.lax.cummin(losses, axis=y.ndim - 1)


def _decode(space: Space, rows: Array, succeeded: Array) -> Any:
    """Convert a row (d,) to a configuration, or rows (*runs, d) to lists of configurations."""
    if succeeded.ndim:
        pairs = zip(rows, succeeded, strict=True)
        return [_decode(space, row, any_succeeded) for row, any_succeeded in pairs]
    return space.decode(rows) if succeeded else None
