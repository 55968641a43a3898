"""Bayesian optimisation in random low-dimensional embeddings of a space: REMBO, Wang et al. 2013 (G-D7, G-S3).

A function of D columns that changes along d_e directions alone is, with probability 1, the same function on almost any
d-dimensional subspace with d ≥ d_e: its optimum is there as well, if the subspace is not cut off by the box.
"""

import dataclasses
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from bonas import gp as gaussian
from bonas.acquire.acquisition import Acquisition, ClosedForm, adapted, pick
from bonas.acquire.analytic import log_ei
from bonas.acquire.batch import believer
from bonas.acquire.maximise import choose, refined, shifted, sobol
from bonas.data import Dataset
from bonas.gp import priors
from bonas.search.bayes import impute, look, report
from bonas.search.box import check_box
from bonas.search.outputs import Output, fit_on, outputs_of
from bonas.search.record import Record, asked, blank, in_turn, known, told
from bonas.search.types import AskInfo, Search, Trial, ask_info
from bonas.spaces import Float, Space
from bonas.surrogates import Surrogate
from bonas.surrogates import gp as gp_surrogate

KERNELS = ("low", "high")
_TRIES = 64  # random points of which one that is new is asked, where an embedding has nothing new


class EmbeddedState(NamedTuple):
    """What the next ask needs. Row r belongs to embedding r mod k."""

    record: Record  # everything asked and told, (n, D) rows
    matrices: Array  # (k, D, d) standard normal
    design: Array  # (k, i, d) the initial points of each embedding, in its unit cube
    low: Array  # (n, d) where the rows lie in the unit cube of their embedding
    inside: Array  # (n,) bool: whether they do; rows told without being asked do not, and no model knows them
    model: Any  # (k, ...) the surrogate's of each embedding, one for each output scale
    memory: Any  # (k, ...) the acquisition's


@cache
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
    output: str | Output | tuple[str | Output, ...] | None = None,
) -> Search:
    """REMBO in a space of numbers: the box [−1, 1]^D is searched along x = clip(A y), A (D, d) of standard normal numbers.

    dim: d, at least the number of directions along which the objective changes; y lies in [−√d, √d]^d.
    embeddings: how many matrices there are. Any one may miss the optimum, which clipping can put out of reach: several are
        searched in turn (Wang et al. 2013), each with a model of its own evaluations alone.
    kernel: "low" models values as a function of y. It wastes points where many y are clipped to one x. "high" models them as
        a function of the clipped x, by one length scale for all D columns. Both are the paper's.
    surrogate: by default `surrogates.gp()` for "low"; for "high" a GP with a Matérn 5/2 kernel with that one length scale.
    initial: points of a shifted Sobol sequence that each embedding begins with.
    acquisition, batch, output: as in `bonas.bayes`; what is pending is believed to be what the model expects.

    Points y whose x was tried before, in any embedding, are passed over. Where every candidate is such a point, AskInfo.random
    says that a random x was asked instead.
    """
    check_box(space, "an embedding is a plane in a box")
    if not 1 <= dim <= space.dim:
        raise ValueError(f"dim is the number of columns of the embedding, from 1 to {space.dim}; got {dim}")
    if kernel not in KERNELS:
        raise ValueError(f'kernel is "low" or "high"; got {kernel!r}')
    if min(embeddings, initial, batch) < 1:
        raise ValueError(f"embeddings, initial and batch must be at least 1; got {embeddings}, {initial} and {batch}")
    k, cube = embeddings, Space(**{f"y{i}": Float(0.0, 1.0) for i in range(1, dim + 1)})
    seen = cube if kernel == "low" else Space(**{f"x{i}": Float(0.0, 1.0) for i in range(1, space.dim + 1)})
    model = surrogate or (gp_surrogate() if kernel == "low" else gp_surrogate(gaussian.matern52(one_scale)))
    model = model.adapt(seen) if model.adapt else model
    acquire = adapted(acquisition, cube)
    outputs = outputs_of(output, model)
    box = refined(cube)

    def many(tree: Any, n: int) -> Any:
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (n, *jnp.shape(leaf))), tree)

    def init(key: Array, capacity: int) -> EmbeddedState:
        matrix_key, design_key = jax.random.split(key)
        each = -(-capacity // k)
        points = sobol(initial, dim)
        return EmbeddedState(
            record=blank(capacity, space.dim),
            matrices=jax.random.normal(matrix_key, (k, space.dim, dim)),
            design=jax.vmap(lambda key: shifted(key, points))(jax.random.split(design_key, k)),
            low=jnp.zeros((capacity, dim)),
            inside=jnp.zeros(capacity, bool),
            model=many(many(model.init(each, seen.dim, 1), len(outputs)), k),
            memory=many(acquire.init(each, dim), k),
        )

    def suggest(key: Array, state: EmbeddedState) -> tuple[Array, EmbeddedState, AskInfo]:
        fit_key, imagine_key, pick_key = jax.random.split(key, 3)
        turn = state.record.data.size % k
        matrix, here = state.matrices[turn], _share(state, turn)
        on_plane = through(model, matrix) if kernel == "high" else model
        fits, memory = jax.tree.map(lambda leaf: leaf[turn], (state.model, state.memory))
        data, fitted, fit_info, scale, fits = fit_on(outputs, on_plane, fit_key, impute(here), fits)
        outlook = _fresh(look(on_plane, fitted, data, here, box, believer, imagine_key), state.record, space, matrix)
        chosen, memory = pick(acquire, pick_key, outlook, memory)
        info = report(state.record, chosen, fit_info, space)._replace(output=scale)
        model_all, memory_all = jax.tree.map(
            lambda every, one: every.at[turn].set(one), (state.model, state.memory), (fits, memory)
        )
        return chosen.x, state._replace(model=model_all, memory=memory_all), info

    def plan(key: Array, state: EmbeddedState) -> tuple[Array, EmbeddedState, AskInfo]:
        """The next point of the design; a random one where that is used up and nothing has succeeded yet."""
        row, turn = state.record.data.size // k, state.record.data.size % k
        y = jnp.where(row < initial, state.design[turn, jnp.minimum(row, initial - 1)], jax.random.uniform(key, (dim,)))
        return y, state, ask_info(y, random=True, fallback=jnp.where(row < initial, 0, 1))

    def ask_one(key: Array, state: EmbeddedState) -> tuple[Array, EmbeddedState, AskInfo]:
        key, other_key = jax.random.split(key)
        row = state.record.data.size
        ready = (row // k >= initial) & _share(state, row % k).data.mask.any()
        y, state, info = jax.lax.cond(ready, suggest, plan, key, state)
        x = space.snap(onto(state.matrices[row % k], y))
        again = known(state.record, x)
        others = space.sample(other_key, _TRIES)
        x = jnp.where(again, others[jnp.argmin(jax.vmap(known, (None, 0))(state.record, others))], x)
        state = state._replace(
            record=asked(state.record, x),
            low=state.low.at[row].set(y, mode="drop"),
            inside=state.inside.at[row].set(~again, mode="drop"),
        )
        return x, state, info._replace(random=info.random | again)

    def tell(state: EmbeddedState, trial: Trial) -> EmbeddedState:
        space.check(trial.x, "a trial's x", exists=True)
        return state._replace(record=told(state.record, trial))

    return Search(space, init, in_turn(ask_one, batch), tell)


def onto(matrix: Array, y: Array) -> Array:
    """The row (D,) of the unit cube at y (d,) of the embedding's: clip(A (2y − 1)√d) in [−1, 1]^D, scaled to [0, 1]^D."""
    return 0.5 + 0.5 * jnp.clip(matrix @ ((2.0 * y - 1.0) * y.shape[0] ** 0.5), -1.0, 1.0)


def through(model: Surrogate, matrix: Array) -> Surrogate:
    """A model of D columns seen from y (m, d) of an embedding: k(y, y') is its kernel of the clipped x."""

    def at(y: Array) -> Array:
        return jax.vmap(onto, (None, 0))(matrix, y)

    def lifted(data: Dataset) -> Dataset:
        return data._replace(x=at(data.x))

    return dataclasses.replace(
        model,
        fit=lambda key, data, state: model.fit(key, lifted(data), state),
        update=lambda data, state: model.update(lifted(data), state),
        predict=lambda state, y: model.predict(state, at(y)),
        covariance=lambda state, y, other: model.covariance(state, at(y), at(other)),
        sample=lambda key, state, y, k: model.sample(key, state, at(y), k),
        adapt=None,
        refresh=model.refresh and (lambda data, state: model.refresh(lifted(data), state)),  # type: ignore[misc]
    )


def one_scale(d: int) -> dict:
    """`gp.priors.log_normal` with a single length scale for all d columns: what the clipped points of a plane can tell."""
    prior = priors.log_normal(d)
    return {"variance": prior["variance"], "lengthscale": dist.LogNormal(prior["lengthscale"].base_dist.loc, 1.0)}


def _fresh(outlook, record: Record, space: Space, matrix: Array):
    """The outlook with eyes for x: a y that is clipped to a point tried before is no candidate while there are others."""

    def points_of(y):
        return space.snap(jax.vmap(onto, (None, 0))(matrix, y))

    def climb(key, score):
        return outlook.climb(key, lambda y: jnp.where(jax.vmap(known, (None, 0))(record, points_of(y)), -jnp.inf, score(y)))

    def pick_of(y, scores):
        tried = jnp.arange(len(record.pending)) < record.data.size
        chosen = choose(points_of(y), scores, record.data.x, tried)
        row = jnp.argmin(jnp.max(jnp.abs(points_of(y) - chosen.x[None, :]), axis=1))
        return chosen._replace(x=y[row])

    return dataclasses.replace(outlook, climb=climb, choose=pick_of)


def _share(state: EmbeddedState, turn: Array) -> Record:
    """The rows of one embedding, every k-th from `turn` on, with their places in its unit cube."""
    k, n = len(state.matrices), len(state.low)
    each = -(-n // k)

    def every(leaf: Array) -> Array:
        padded = jnp.pad(leaf, ((0, each * k - n), *((0, 0),) * (leaf.ndim - 1)))
        return padded.reshape(each, k, *leaf.shape[1:])[:, turn]

    record, inside = state.record, every(state.inside)
    data = Dataset(
        x=every(state.low),
        y=every(record.data.y),
        mask=every(record.data.mask) & inside[:, None],
        size=(record.data.size - turn + k - 1) // k,
    )
    return Record(data, every(record.pending) & inside, every(record.failed) & inside, every(record.cost))
