"""Bayesian optimization in random low-dimensional embeddings: REMBO, Wang et al. 2013.

If a function of D columns varies only along d_e directions, a random d-dimensional subspace with
d ≥ d_e contains a point with any value of the function, with probability 1. The subspace therefore
contains an optimum, unless the bounds of the box exclude it.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float, PRNGKeyArray

from bonas import gp as gaussian
from bonas import spaces
from bonas.acquire import (
    Acquisition,
    ClosedForm,
    Context,
    Selection,
    adapt_acquisition,
    believer,
    choose,
    gradient_ascent,
    log_ei,
    random_shift,
    sobol,
)
from bonas.data import Dataset
from bonas.gp import Prediction, priors
from bonas.search.argument_types import Output, OutputScale
from bonas.search.bayesian import (
    conclude_ask,
    design_point,
    impute_failures,
    make_context,
)
from bonas.search.checks import check_box, check_surrogate
from bonas.search.observations import (
    Observations,
    add_observation,
    add_pending,
    empty_observations,
    sequential_ask,
)
from bonas.search.output_scales import fit_scales, resolve_scales
from bonas.search.repeated_points import are_observed, is_observed
from bonas.search.search import AskResult, Observation, Search
from bonas.spaces import Space
from bonas.static_settings import check_all_static, check_counts, check_static
from bonas.surrogates import FitInfo, Surrogate, replicate
from bonas.surrogates import gp as gp_surrogate

KERNELS = ("low", "high")
# Number of random points to choose from if an embedding has no new point.
_RANDOM_POINTS = 64


class EmbeddedState(NamedTuple):
    """The state of a search in k embeddings; row r belongs to embedding r mod k."""

    observations: Observations  # (n, D) points
    matrices: Array  # (k, D, d) standard normal numbers
    design: Array  # (k, i, d) initial points of each embedding, in its unit cube
    low: Array  # (n, d) points in the unit cube of their embedding
    # (n,) bool: false for points observed without an ask, which the models do not use
    inside: Array
    model: Any  # (k, scales, ...) states of the surrogate
    memory: Any  # (k, ...) states of the acquisition


@dataclass(frozen=True)
class RandomEmbedding(Search):
    """Bayesian optimization in random embeddings; see `rembo`."""

    space: Space
    dim: int
    embeddings: int
    kernel: str
    surrogate: Surrogate
    acquisition: Acquisition
    initial: int
    batch: int
    scales: tuple[OutputScale, ...]

    def init(self, key: PRNGKeyArray, capacity: int) -> EmbeddedState:
        check_static("capacity", capacity)
        matrix_key, design_key = jax.random.split(key)
        k = self.embeddings
        each = -(-capacity // k)
        points = sobol(self.initial, self.dim)
        columns = self.dim if self.kernel == "low" else self.space.dim
        model = replicate(self.surrogate.init(each, columns, 1), len(self.scales))
        return EmbeddedState(
            observations=empty_observations(capacity, self.space.dim),
            matrices=jax.random.normal(matrix_key, (k, self.space.dim, self.dim)),
            design=jax.vmap(lambda key: random_shift(key, points))(
                jax.random.split(design_key, k)
            ),
            low=jnp.zeros((capacity, self.dim)),
            inside=jnp.zeros(capacity, bool),
            model=replicate(model, k),
            memory=replicate(self.acquisition.init(each, self.dim), k),
        )

    def ask(self, key: PRNGKeyArray, state: EmbeddedState) -> AskResult:
        return sequential_ask(self._ask_one, key, state, batch=self.batch)

    def tell(self, state: EmbeddedState, observation: Observation) -> EmbeddedState:
        self.space.check(observation.x, "an observation's x", exists=True)
        return state._replace(
            observations=add_observation(state.observations, observation)
        )

    def _ask_one(self, key: PRNGKeyArray, state: EmbeddedState) -> AskResult:
        key, random_key = jax.random.split(key)
        k = self.embeddings
        row = state.observations.data.size
        ready = (row // k >= self.initial) & _embedding_rows(
            state, row % k
        ).data.mask.any()
        y, state, info = jax.lax.cond(
            ready, self._model_point, self._design_point, key, state
        )
        x = self.space.snap(embed(state.matrices[row % k], y))
        repeated = is_observed(state.observations, x)
        others = self.space.sample(random_key, _RANDOM_POINTS)
        tried = are_observed(state.observations, others)
        x = jnp.where(repeated, others[jnp.argmin(tried)], x)
        state = state._replace(
            observations=add_pending(state.observations, x),
            low=state.low.at[row].set(y, mode="drop"),
            inside=state.inside.at[row].set(~repeated, mode="drop"),
        )
        return x, state, info._replace(random=info.random | repeated)

    def _design_point(self, key: PRNGKeyArray, state: EmbeddedState) -> AskResult:
        size = state.observations.data.size
        k = self.embeddings
        random = jax.random.uniform(key, (self.dim,))
        y, info = design_point(state.design[size % k], size // k, random)
        return y, state, info

    def _model_point(self, key: PRNGKeyArray, state: EmbeddedState) -> AskResult:
        fit_key, pending_key, pick_key = jax.random.split(key, 3)
        turn = state.observations.data.size % self.embeddings
        matrix = state.matrices[turn]
        rows = _embedding_rows(state, turn)
        high = self.kernel == "high"
        model = EmbeddedSurrogate(self.surrogate, matrix) if high else self.surrogate
        states, memory = jax.tree.map(
            lambda leaf: leaf[turn], (state.model, state.memory)
        )
        data = impute_failures(rows)
        fit = fit_scales(self.scales, model, fit_key, data=data, states=states)
        maximizer = gradient_ascent(_unit_cube(self.dim))
        context = make_context(
            model, fit, rows, maximizer=maximizer, pending=believer, key=pending_key
        )
        context = _skip_observed(context, state.observations, self.space, matrix)
        chosen, memory = self.acquisition.select(pick_key, context, memory)
        random = jax.random.uniform(key, (self.dim,))
        exhausted = state.observations.data.size >= self.space.size
        y, info = conclude_ask(chosen, fit, context, random, exhausted=exhausted)
        model_states, memories = jax.tree.map(
            lambda every, one: every.at[turn].set(one),
            (state.model, state.memory),
            (fit.states, memory),
        )
        return y, state._replace(model=model_states, memory=memories), info


def rembo(
    space: Space,
    *,
    dim: int,
    embeddings: int = 4,
    kernel: str = "low",
    surrogate: Surrogate | None = None,
    acquisition: Acquisition | ClosedForm = log_ei,
    initial: int = 3,
    batch: int = 1,
    output: Output | None = None,
) -> RandomEmbedding:
    """Search a space of numbers by Bayesian optimization in random embeddings (REMBO).

    Wang et al. 2013. The D columns, scaled to [−1, 1]^D, are searched along x = clip(A y), where A
    (D, d) is standard normal and y lies in [−√d, √d]^d. Points y whose x was evaluated before are
    skipped. If all candidates were evaluated, the next x is random and `AskInfo.random` is set.

    Args:
        space: The space to search, without options and conditions.
        dim: The dimension d of y, at least the number of directions along which values vary.
        embeddings: The number of matrices A, which are used in turn, each with a separate model.
            Because of clipping, a single embedding may not contain the optimum.
        kernel: "low" models the values as a function of y, although many y may be clipped to one x;
            "high" models them as a function of the clipped x.
        surrogate: The model. Default: `surrogates.gp()` for "low"; for "high" a GP with a Matérn
            5/2 kernel and one length scale for all D columns.
        acquisition: The acquisition; see `bonas.bayes`.
        initial: The number of Sobol points at the start of each embedding.
        batch: The number of points per ask; pending points take the posterior mean.
        output: The scale on which values are modeled; see `bonas.bayes`.
    """
    check_box(space, "an embedding is a subspace of a box")
    check_counts(embeddings=embeddings, initial=initial, batch=batch)
    check_all_static(dim=dim, kernel=kernel)
    if not 1 <= dim <= space.dim:
        raise ValueError(
            f"dim must be between 1 and {space.dim}, the columns of the space; got {dim}"
        )
    if kernel not in KERNELS:
        raise ValueError(f'kernel must be "low" or "high"; got {kernel!r}')
    model = surrogate
    if model is None:
        shared = gaussian.matern52(one_lengthscale)
        model = gp_surrogate() if kernel == "low" else gp_surrogate(shared)
    check_surrogate(model)
    model = model.adapt(
        _unit_cube(dim) if kernel == "low" else _unit_cube(space.dim, "x")
    )
    return RandomEmbedding(
        space=space,
        dim=dim,
        embeddings=embeddings,
        kernel=kernel,
        surrogate=model,
        acquisition=adapt_acquisition(acquisition, _unit_cube(dim)),
        initial=initial,
        batch=batch,
        scales=resolve_scales(output, model),
    )


def embed(matrix: Float[Array, "D d"], y: Float[Array, " d"]) -> Float[Array, " D"]:
    """Map a point of an embedding's unit cube to clip(A (2y − 1)√d), scaled to the unit cube."""
    return 0.5 + 0.5 * jnp.clip(
        matrix @ ((2.0 * y - 1.0) * y.shape[0] ** 0.5), -1.0, 1.0
    )


@dataclass(frozen=True, eq=False)
class EmbeddedSurrogate(Surrogate):
    """Surrogate of D columns as a function of y (m, d) in an embedding, within one trace."""

    model: Surrogate
    matrix: Array  # (D, d)

    @property
    def has_evidence(self) -> bool:
        return self.model.has_evidence

    def _embed(self, y: Array) -> Array:
        return jax.vmap(embed, (None, 0))(self.matrix, y)

    def _embed_data(self, data: Dataset) -> Dataset:
        return data._replace(x=self._embed(data.x))

    def init(self, capacity: int, d: int, p: int) -> Any:
        return self.model.init(capacity, d, p)

    def fit(self, key: PRNGKeyArray, data: Dataset, state: Any) -> tuple[Any, FitInfo]:
        return self.model.fit(key, self._embed_data(data), state)

    def update(self, data: Dataset, state: Any) -> Any:
        return self.model.update(self._embed_data(data), state)

    def refresh(self, data: Dataset, state: Any) -> tuple[Any, FitInfo]:
        return self.model.refresh(self._embed_data(data), state)

    def predict(self, state: Any, x: Float[Array, "m d"]) -> Prediction:
        return self.model.predict(state, self._embed(x))

    def covariance(
        self, state: Any, x: Float[Array, "m d"], at: Float[Array, "k d"]
    ) -> Float[Array, "s m k"]:
        return self.model.covariance(state, self._embed(x), self._embed(at))

    def sample(
        self, key: PRNGKeyArray, state: Any, x: Float[Array, "m d"], k: int
    ) -> Float[Array, "k m"]:
        return self.model.sample(key, state, self._embed(x), k)


def one_lengthscale(d: int) -> dict[str, dist.Distribution]:
    """Return `gp.priors.log_normal` with a single length scale for all columns."""
    prior = priors.log_normal(d)
    return {
        "variance": prior["variance"],
        "lengthscale": dist.LogNormal(prior["lengthscale"].base_dist.loc, 1.0),
    }


def _skip_observed(
    context: Context, observations: Observations, space: Space, matrix: Array
) -> Context:
    """Exclude candidates y that are clipped to evaluated points, unless all are."""

    def points(y: Array) -> Array:
        return space.snap(jax.vmap(embed, (None, 0))(matrix, y))

    def maximize(key: PRNGKeyArray, score: Any) -> Selection:
        def new_score(y: Array) -> Array:
            tried = are_observed(observations, points(y))
            return jnp.where(tried, -jnp.inf, score(y))

        return context.maximize(key, new_score)

    def choose_new(y: Array, scores: Array) -> Selection:
        tried = jnp.arange(len(observations.pending)) < observations.data.size
        chosen = choose(points(y), scores, observations.data.x, tried)
        row = jnp.argmin(jnp.max(jnp.abs(points(y) - chosen.x[None, :]), axis=1))
        return chosen._replace(x=y[row])

    return dataclasses.replace(context, maximize=maximize, choose=choose_new)


def _embedding_rows(state: EmbeddedState, turn: Array) -> Observations:
    """Return the rows of one embedding, every k-th from `turn`, as points of its unit cube."""
    k = len(state.matrices)
    n = len(state.low)
    each = -(-n // k)

    def every(leaf: Array) -> Array:
        padded = jnp.pad(leaf, ((0, each * k - n), *((0, 0),) * (leaf.ndim - 1)))
        return padded.reshape(each, k, *leaf.shape[1:])[:, turn]

    observations = state.observations
    inside = every(state.inside)
    data = Dataset(
        x=every(state.low),
        y=every(observations.data.y),
        mask=every(observations.data.mask) & inside[:, None],
        size=(observations.data.size - turn + k - 1) // k,
        noise=jax.tree.map(every, observations.data.noise),
    )
    return Observations(
        data=data,
        pending=every(observations.pending) & inside,
        failed=every(observations.failed) & inside,
        cost=every(observations.cost),
    )


def _unit_cube(d: int, prefix: str = "y") -> Space:
    """Return the space [0, 1]^d."""
    return Space(**{f"{prefix}{i}": spaces.Float(0.0, 1.0) for i in range(1, d + 1)})
