"""The interface of searches, their observations and their reports."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, PRNGKeyArray

from bonas.spaces import Space
from bonas.static_settings import check_growth


class _Observation(NamedTuple):
    x: Array
    y: Array
    step: Array
    cost: Array
    ok: Array
    noise: Array | None


class Observation(_Observation):
    """The result of one evaluation, such as `Observation(x, y)`.

    Args:
        x: A point (d,) of the space: within the unit cube, 0 in inactive columns.
        y: The value (); ignored if not ok.
        step: The checkpoint reached; 0 without checkpoints.
        cost: Seconds or steps spent.
        ok: Whether the evaluation succeeded. Default: whether y is finite.
        noise: The variance of the noise of y, in squared units of y, if it is known and the search
            has `known_noise=True`, which needs it. If it is not a finite number of at least 0, the
            evaluation failed.
    """

    __slots__ = ()

    def __new__(
        cls,
        x: Any,
        y: Any,
        step: Any = 0,
        cost: Any = 1.0,
        ok: Any = ...,
        noise: Any = None,
    ) -> "Observation":
        return super().__new__(
            cls, x, y, step, cost, jnp.isfinite(y) if ok is ... else ok, noise
        )


# Reasons for deviating from the configured strategy; `AskInfo.fallback` is a position in this
# tuple. The fourth is used by `bonas.curves` only.
FALLBACKS = (
    "none",
    "no evaluation has succeeded yet: a random point",
    "the fit was not finite: the last good hyperparameters were kept",
    "the model's scores were not finite: a random network",
    "the model's predictions or scores were not finite: a random point",
)


class AskInfo(NamedTuple):
    """Report of an ask: diagnostics of the model, and how the point was chosen."""

    acquisition: Array  # () score of the point; −inf if none was computed
    flat: Array  # () bool: the acquisition did not distinguish the candidates
    jitter: Array  # () added to the diagonal of a covariance; 0 if none was needed
    # () bool: the fit reached an optimum, or its chain did not diverge
    converged: Array
    # () int: candidates with better scores skipped as already evaluated, or as pending if the
    # search may repeat points
    duplicates: Array
    # () bool: no point is left that may be proposed, or no capacity for a new network
    exhausted: Array
    # () bool: no model chose the point: it is from the initial design, random, or a network whose
    # training continues
    random: Array
    fallback: Array  # () int: position in FALLBACKS
    output: Array  # () int: position of the output scale on which values were modeled


def ask_info(like: Array, **fields: ArrayLike) -> AskInfo:
    """Make an AskInfo from some of its fields.

    The other fields take the values of an ask without a model and without a problem.

    Args:
        like: An array that determines the precision of real fields.
        **fields: Fields of AskInfo by name.
    """
    real = like.dtype
    whole = jnp.arange(1).dtype
    dtypes: list[Any] = [real, bool, real, bool, whole, bool, bool, whole, whole]
    default: Any = AskInfo._make([-jnp.inf, 0, 0, True, 0, 0, 0, 0, 0])
    return AskInfo(*map(jnp.asarray, default._replace(**fields), dtypes))


def merge_infos(infos: AskInfo) -> AskInfo:
    """Merge the reports of the points of a batch (q,) into one.

    Every field takes its maximum; the merged report has converged if all reports have.
    """
    merged: AskInfo = jax.tree.map(lambda field: field.max(axis=0), infos)
    return merged._replace(converged=infos.converged.all(axis=0))


# The points (q, d) of an ask, or the point (d,) of a batch's step; the new state; the report.
AskResult = tuple[Array, Any, AskInfo]


class Search:
    """A strategy that proposes points of a space and learns from their values.

    A search is a frozen dataclass with the field `space`: its settings are fields and its behavior
    is methods. It is static, equal and hashable by value, and may be passed to any jitted function;
    subclasses are registered with JAX automatically. What changes is in the state, a pytree whose
    shapes depend only on the capacity.
    """

    space: Space
    # Training steps up to each checkpoint, if the search advances networks between checkpoints.
    steps: tuple[int, ...] | None = None
    # Whether `tell` needs the noise variance of every observation.
    uses_known_noise: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        jax.tree_util.register_static(cls)

    def init(self, key: PRNGKeyArray, capacity: int) -> Any:
        """Return the initial state.

        Args:
            key: A random key.
            capacity: The largest number of points that the state can hold.
        """
        raise NotImplementedError

    def ask(self, key: PRNGKeyArray, state: Any) -> AskResult:
        """Propose the next points to evaluate.

        Args:
            key: A random key.
            state: The current state.

        Returns:
            The points (q, d), the new state, in which they are pending, and a report.
        """
        raise NotImplementedError

    def tell(self, state: Any, observation: Observation) -> Any:
        """Return the state with one more observation.

        Observations may come in any order, and for points that were not asked.

        Args:
            state: The current state.
            observation: The result of the evaluation.
        """
        raise NotImplementedError

    def grow(self, state: Any, fresh: Any) -> Any:
        """Return the state with a larger capacity.

        Args:
            state: The state to grow.
            fresh: `init(key, capacity)` with the larger capacity and the key of the initial state.

        Raises:
            ValueError: If the capacity of `fresh` is smaller.
        """
        return jax.tree.map(_overwrite, fresh, state)


def _overwrite(new: Array, old: Array) -> Array:
    """Write `old` over the first entries of `new`."""
    if new.shape == old.shape:
        return old
    check_growth(old.shape, new.shape)
    return new.at[tuple(slice(n) for n in old.shape)].set(old)
