"""The posterior of an objective after a run: predictions and draws in its own units."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bonas.data import Dataset
from bonas.gp import Prediction
from bonas.search.argument_types import Direction
from bonas.search.bayesian import Bayes, impute_failures
from bonas.search.capacities import paths_of
from bonas.search.collected_evaluations import collect, read_trials
from bonas.search.compiled_runs import ProgramCache
from bonas.search.history import History
from bonas.search.objectives import direction_sign
from bonas.search.observations import Observations
from bonas.search.output_scales import standardize_on
from bonas.search.posterior_queries import lowest_mean_of, predict, quantile, sample
from bonas.search.result import Result
from bonas.search.scale_inverses import invert_scale
from bonas.spaces import Space
from bonas.surrogates import FitInfo, replicate

# Fits in sequence, each starting from the last, so that the hyperparameters reach an optimum.
_FITS = 5


class Recommendation(NamedTuple):
    """The evaluated point with the lowest posterior mean, or highest if values were maximized."""

    x: Array  # (d,) the point
    mean: Array  # () posterior mean of the objective at the point, without noise
    std: Array  # () posterior standard deviation, without noise
    space: Space

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the point."""
        return self.space.decode(self.x)


class RunPosterior(NamedTuple):
    """The posterior of an objective after a run; see `posterior`.

    It is a pytree: its methods may be called inside jitted functions.
    """

    search: Bayes
    data: Dataset  # the minimized values
    scale: Array  # () int: the position of the most probable output scale
    mean: Array  # () mean of the values on that scale, before standardization
    std: Array  # () their standard deviation
    state: Any  # the fitted state of the surrogate
    sign: Array  # () −1 if the values were maximized
    info: FitInfo  # diagnostics of the last fit
    evaluated: Array  # (n,) bool: rows of data that are successful evaluations

    def predict(self, x: Any) -> Prediction:
        """Return mean (m,) and standard deviation (m,) of the objective, without its noise.

        Args:
            x: Points (m, d), or a list of configurations.
        """
        found: Prediction = predict(self, _points(self, x))
        return found

    def recommend(self) -> Recommendation:
        """Return the evaluated point with the best posterior mean, with its mean and deviation.

        The best mean is the lowest, or the highest if values were maximized. Unlike the best value,
        it is not improved by noise. Means are compared on the scale on which values are modeled, as
        the search does. All numbers are NaN if no evaluation succeeded or no mean is finite.
        """
        x, mean = lowest_mean_of(self)
        found = predict(self, x[None, :])
        known = jnp.isfinite(mean)
        return Recommendation(
            x,
            jnp.where(known, found.mean[0], jnp.nan),
            jnp.where(known, found.std[0], jnp.nan),
            self.search.space,
        )

    def quantile(self, x: Any, q: float) -> Float[Array, " m"]:
        """Return a quantile (m,) of the objective, such as the median for q = 0.5.

        Args:
            x: Points (m, d), or a list of configurations.
            q: A probability between 0 and 1.
        """
        if not 0.0 < q < 1.0:
            raise ValueError(f"q must be between 0 and 1, exclusive; got {q}")
        found: Array = quantile(self, _points(self, x), q)
        return found

    def sample(self, key: PRNGKeyArray, x: Any, k: int) -> Float[Array, "k m"]:
        """Draw k joint samples of the objective at points, without its noise.

        Args:
            key: A random key.
            x: Points (m, d), or a list of configurations.
            k: The number of draws.
        """
        points = _points(self, x)
        found: Array = sample(self, key, points, k)
        return found

    def values(self, standardized: Array) -> Array:
        """Convert standardized model outputs to objective values."""
        scaled = self.mean + self.std * standardized
        branches = [invert_scale(scale, self.data) for scale in self.search.scales]
        if len(branches) == 1:
            found: Array = self.sign * branches[0](scaled)
        else:
            found = self.sign * jax.lax.switch(self.scale, branches, scaled)
        return found


def posterior(
    search: Bayes, run: Any, *, direction: Direction = "minimize", seed: int = 0
) -> RunPosterior:
    """Fit the model of a search to all evaluations of a run.

    The values are modeled on the most probable of the search's output scales. Failed evaluations
    are treated as in the search. For a batch of runs, use `jax.vmap`.

    Args:
        search: A Bayesian search. The run may come from another search of the same space, such as
            random search.
        run: A History, a Result of `minimize`, a Study, or a state of a search.
        direction: Pass "maximize" if `run` is the state of a maximizing search; a History, Result
            or Study stores its direction.
        seed: The random seed of the fit, for surrogates whose fit is random.

    Returns:
        The posterior, with the methods `predict`, `recommend`, `quantile` and `sample`.
    """
    if not isinstance(search, Bayes):
        raise ValueError(
            "expected a Bayesian search, such as bonas.bayes(space), whose model can be fitted to "
            f"the run of any search; got {type(search).__name__}"
        )
    sign: Any = direction_sign(direction)
    state = run
    if isinstance(run, Result):
        state, sign = run.state, direction_sign(run.direction)
    elif isinstance(run, History):
        state = run.state
        sign = 1.0 if run.sign is None else run.sign
    observations = getattr(state, "observations", None)
    if observations is None and isinstance(run, History):
        cost = jnp.ones_like(run.y) if run.cost is None else run.cost
        observations = collect(run.x, run.losses, cost)
    if hasattr(run, "trials"):  # a Study, which this package must not import
        sign = direction_sign(run.direction)
        observations = read_trials(run.trials, sign)
    if not isinstance(observations, Observations):
        raise ValueError(
            "expected a History, a Result with its state, a Study, or a state with observations; "
            f"got {type(run).__name__}"
        )
    _check_observations(search, observations)
    observations = _in_default_precision(observations)
    for scale in search.scales:
        invert_scale(scale, observations.data)  # raises a ValueError if it has none
    model = _start(search, observations, getattr(state, "model", None))
    arrays = observations, model, jnp.asarray(sign, float), jax.random.key(seed)
    fitted: RunPosterior = _fits(search)(*arrays)._replace(search=search)
    return fitted


def _fit(
    search: Bayes, observations: Observations, states: Any, sign: Array, key: Array
) -> Any:
    """Fit every output scale and keep the most probable; the result has no search."""
    data = observations.data
    if search.failures == "worst":
        data = impute_failures(observations)
    scaled, means, stds, slopes = scale_all(search, data)

    def fit(pair: tuple[Dataset, Any]) -> tuple[Any, Any]:
        def again(state: Any, key: Array) -> tuple[Any, Any]:
            return search.surrogate.fit(key, pair[0], state)

        state, infos = jax.lax.scan(again, pair[1], jax.random.split(key, _FITS))
        return state, jax.tree.map(lambda leaf: leaf[-1], infos)

    states, infos = jax.lax.map(fit, (scaled, states))
    best = jnp.asarray(0)
    if len(search.scales) > 1:
        best = jnp.argmax(jnp.nan_to_num(infos.log_density + slopes, nan=-jnp.inf))
    mean, std, state, info = jax.tree.map(
        lambda leaf: leaf[best], (means, stds, states, infos)
    )
    evaluated = observations.data.mask[:, 0]
    none: Any = None
    return RunPosterior(none, data, best, mean, std, state, sign, info, evaluated)


def scale_all(search: Bayes, data: Dataset) -> tuple[Dataset, Array, Array, Array]:
    """Return standardized data, means, deviations and log derivatives on all output scales."""
    found = [standardize_on(scale, data) for scale in search.scales]
    stacked: tuple[Dataset, Array, Array, Array] = jax.tree.map(
        lambda *leaves: jnp.stack(leaves), *found
    )
    return stacked


def _start(search: Bayes, observations: Observations, model: Any) -> Any:
    """Return states of the surrogate to start from: the run's states, or initial ones."""
    capacity, d = observations.data.x.shape
    fresh = _init_states(search, capacity, d)()
    leaves = jax.tree.leaves(model)
    shapes = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(fresh)]
    if paths_of(model) != paths_of(fresh) or shapes != [
        (leaf.shape, leaf.dtype) for leaf in leaves
    ]:
        return fresh
    return jax.tree.unflatten(jax.tree.structure(fresh), leaves)


def _check_observations(search: Bayes, observations: Observations) -> None:
    data = observations.data
    if data.size.ndim:
        raise ValueError("expected one run; got a batch of runs: use jax.vmap")
    if data.x.shape[1] != search.space.dim:
        raise ValueError(
            f"the run has points of {data.x.shape[1]} columns; the space of the search has "
            f"{search.space.dim}"
        )
    if not isinstance(data.mask, jax.core.Tracer) and not data.mask.any():
        raise ValueError("expected at least one successful evaluation; got none")


def _in_default_precision(tree: Any) -> Any:
    """Convert real numbers to the precision of JAX, which may have changed since the run."""
    return jax.tree.map(
        lambda leaf: leaf.astype(float) if leaf.dtype.kind == "f" else leaf, tree
    )


def _points(posterior: RunPosterior, x: Any) -> Float[Array, "m d"]:
    """Return points (m, d) of the space from rows or configurations."""
    space = posterior.search.space
    if isinstance(x, Sequence) and x and isinstance(x[0], Mapping):
        x = jnp.stack([space.encode(config) for config in x])
    if jnp.ndim(x) != 2:
        raise ValueError(
            f"expected points of shape (m, {space.dim}) or a list of configurations; got "
            f"{type(x).__name__} of shape {jnp.shape(x)}"
        )
    space.check(x)
    return space.snap(jnp.asarray(x, float))


def _init(search: Bayes, capacity: int, d: int) -> Any:
    return replicate(search.surrogate.init(capacity, d, 1), len(search.scales))


_fits = ProgramCache(_fit)
_init_states = ProgramCache(_init)
