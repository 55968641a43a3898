"""The default search of a study: Bayesian optimization fitted to a subset of many trials."""

from dataclasses import dataclass, replace
from typing import Any

from jaxtyping import Array, Float, PRNGKeyArray

from bonas.data import Dataset
from bonas.gp import Prediction
from bonas.search import Search, bayes
from bonas.spaces import Space
from bonas.surrogates import FitInfo, Surrogate, gp, select_rows

# The cost of an exact GP is cubic in its rows: a fit takes one or two seconds for 512 rows and a
# minute for 2048.
MAX_ROWS = 512


def default_search(space: Space) -> Search:
    """Return `bonas.bayes(space)` with a GP that is fitted to at most 512 trials.

    With more trials, it is fitted to the 256 best ones and the 256 latest others.
    """
    return bayes(space, surrogate=SubsetSurrogate(gp(), MAX_ROWS))


def describe_fit(finished: int) -> dict[str, str]:
    """Describe the subset of finished trials that a fit uses, as entries of a trial's info."""
    if finished <= MAX_ROWS:
        return {}
    best = MAX_ROWS // 2
    latest = MAX_ROWS - best
    sizes = f"the {best} best and the {latest} latest of the others"
    return {"subset": f"fitted to {MAX_ROWS} of {finished} trials: {sizes}"}


@dataclass(frozen=True)
class SubsetSurrogate(Surrogate):
    """Surrogate that fits a model to a subset of the rows: the best half and the latest others.

    Its state is the state of the model for min(capacity, rows) rows.

    Args:
        model: Surrogate that is fitted to the subset.
        rows: Largest number of rows in the subset.
    """

    model: Surrogate
    rows: int

    @property
    def has_evidence(self) -> bool:
        return self.model.has_evidence

    @property
    def uses_known_noise(self) -> bool:  # type: ignore[override]
        return self.model.uses_known_noise

    def init(self, capacity: int, d: int, p: int) -> Any:
        return self.model.init(min(capacity, self.rows), d, p)

    def fit(self, key: PRNGKeyArray, data: Dataset, state: Any) -> tuple[Any, FitInfo]:
        return self.model.fit(key, select_rows(data, self.rows), state)

    def update(self, data: Dataset, state: Any) -> Any:
        return self.model.update(select_rows(data, self.rows), state)

    def refresh(self, data: Dataset, state: Any) -> tuple[Any, FitInfo]:
        return self.model.refresh(select_rows(data, self.rows), state)

    def predict(self, state: Any, x: Float[Array, "m d"]) -> Prediction:
        return self.model.predict(state, x)

    def noise_variance(self, state: Any) -> Float[Array, " s"]:
        return self.model.noise_variance(state)

    def covariance(
        self, state: Any, x: Float[Array, "m d"], at: Float[Array, "k d"]
    ) -> Float[Array, "s m k"]:
        return self.model.covariance(state, x, at)

    def sample(
        self, key: PRNGKeyArray, state: Any, x: Float[Array, "m d"], k: int
    ) -> Float[Array, "k m"]:
        return self.model.sample(key, state, x, k)

    def adapt(self, space: Space) -> "SubsetSurrogate":
        return replace(self, model=self.model.adapt(space))
