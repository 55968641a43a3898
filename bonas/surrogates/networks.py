"""Deep ensembles as surrogates: networks that start differently agree where there are data, and nowhere else."""

from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bonas import nets
from bonas.data import Dataset, clean
from bonas.gp import Prediction
from bonas.infer.target import choose
from bonas.nets.epoch import Run
from bonas.nets.mlp import Params, masks
from bonas.nets.train import DIVERGED, begin
from bonas.nets.train import fit as fit_network
from bonas.spaces import Space
from bonas.surrogates.features import features
from bonas.surrogates.interface import FitInfo, Surrogate


class EnsembleState(NamedTuple):
    """The members of an ensemble."""

    params: Params  # (members, ...)
    prior: Params  # (members, ...) functions that are added and never trained
    fitted: Array  # () bool: false before the first fit


@dataclass(frozen=True)
class _Recipe:
    members: int
    widths: tuple[int, ...]
    activation: str
    steps: int
    learning_rate: float
    weight_decay: float
    prior: float
    floor: float
    warm: bool


def ensemble(
    members: int = 5,
    widths: tuple[int, ...] = (50, 50),
    *,
    activation: str = "tanh",
    steps: int = 400,
    learning_rate: float = 0.02,
    weight_decay: float = 0.0,
    prior: float = 1.0,
    floor: float = 0.03,
    warm: bool = False,
) -> Surrogate:
    """A deep ensemble (Lakshminarayanan, Pritzel & Blundell 2017): mean and spread of networks, which are trained in float32.

    A search tells it of its space: a Choice becomes one input an option, and a parameter that comes and goes one more input,
    which says whether it is there. Pending points are learned as they are imagined, by a quarter of the steps.

    steps: full-batch updates of Adam a fit, whose learning rate falls to zero along half a cosine.
    prior: how much of an untrained network is added to each member, which learns the rest: members that have nothing to
        learn from then differ (Osband, Aslanides & Cassirer 2018). At 0 they are those of the plain deep ensemble.
    floor: standard deviation added to that of the members, in standard deviations of the values: where they happen to agree
        they are not certain.
    warm: go on from the last fit in place of a new start.
    """
    if members < 2 or steps < 1 or not floor > 0.0 or not widths:
        raise ValueError(
            f"expected members >= 2, steps >= 1, floor > 0 and a hidden layer; got {members}, {steps}, {floor} and {widths}"
        )
    recipe = _Recipe(members, tuple(widths), activation, steps, learning_rate, weight_decay, prior, floor, warm)
    return _ensemble(recipe, None)


@cache
def _ensemble(recipe: _Recipe, space: Space | None) -> Surrogate:
    members, widths, steps, floor = recipe.members, recipe.widths, recipe.steps, recipe.floor
    hyper = nets.Hyper(learning_rate=recipe.learning_rate, weight_decay=recipe.weight_decay or None)

    def inputs(x: Array) -> Array:
        columns = (2.0 * features(space, x) - 1.0).astype(jnp.float32)
        return jnp.concatenate([columns, jnp.ones((len(x), 1), jnp.float32)], axis=1)

    def network_of(d: int) -> tuple[nets.Shape, nets.Architecture]:
        columns = jax.eval_shape(inputs, jax.ShapeDtypeStruct((1, d), jnp.float32)).shape[1]
        shape = nets.Shape(columns, 1, len(widths), max(widths), activations=(recipe.activation,))
        return shape, nets.architecture(shape, widths)

    def outputs(state: EnsembleState, x: Array) -> Array:
        """What each member says (members, m)."""
        shape, network = network_of(x.shape[1])
        rows = inputs(x)
        each = jax.vmap(lambda params: nets.apply(shape, params, rows, network)[:, 0])
        return (each(state.params) + recipe.prior * each(state.prior)).astype(x.dtype)

    def trained(data: Dataset, mask: Params, start: Params, prior: Params, epochs: int) -> nets.Result:
        data, (shape, network) = clean(data), network_of(data.x.shape[1])
        x, y, weight = inputs(data.x), data.y.astype(jnp.float32), data.mask[:, 0].astype(jnp.float32)
        settings = nets.Settings(optimiser="adam", batch=None, max_epochs=epochs, schedule=nets.cosine)

        def one(start, prior):
            rest = y - recipe.prior * nets.apply(shape, prior, x, network)
            rows = nets.Examples(x, rest, weight=weight)
            return fit_network(Run(_no_key(), shape, settings, network, hyper, rows, mask), start)

        return jax.vmap(one)(start, prior)

    def init(capacity: int, d: int, p: int = 1) -> EnsembleState:
        if p != 1:
            raise ValueError(f"an ensemble models one output; got p = {p}")
        shape, network = network_of(d)
        like = jax.tree.map(lambda leaf: jnp.zeros((members, *leaf.shape), jnp.float32), masks(_no_key(), shape, network))
        return EnsembleState(like, like, jnp.asarray(False))

    def fit(key: Array, data: Dataset, state: EnsembleState) -> tuple[EnsembleState, FitInfo]:
        shape, network = network_of(data.x.shape[1])
        start_keys, prior_keys = jax.random.split(key, (2, members))
        mask, start = _drawn(start_keys, shape, network, "uniform")
        _, prior = _drawn(prior_keys, shape, network, "scaled")
        if recipe.warm:
            start, prior = choose(state.fitted, (state.params, state.prior), (start, prior))
        result = trained(data, mask, start, prior, steps)
        fine = (result.status != DIVERGED).all()
        found = EnsembleState(result.params, prior, jnp.asarray(True))
        loss = result.losses[:, -1].mean().astype(data.y.dtype)
        return choose(fine | ~state.fitted, found, state), FitInfo(-loss, fine, fine, jnp.zeros_like(loss))

    def update(data: Dataset, state: EnsembleState) -> EnsembleState:
        """Some more steps, from where the members are."""
        mask = masks(_no_key(), *network_of(data.x.shape[1]))
        return state._replace(params=trained(data, mask, state.params, state.prior, max(steps // 4, 1)).params)

    def predict(state: EnsembleState, x: Array) -> Prediction:
        values = outputs(state, x)
        return Prediction(values.mean(axis=0)[None], jnp.sqrt(values.var(axis=0) + floor**2)[None])

    def covariance(state: EnsembleState, x: Array, at: Array) -> Array:
        here, there = (values - values.mean(axis=0)[None, :] for values in (outputs(state, x), outputs(state, at)))
        same = (x[:, None, :] == at[None, :, :]).all(axis=2)
        return (here.T @ there / members + jnp.where(same, floor**2, 0.0))[None]

    def sample(key: Array, state: EnsembleState, x: Array, k: int) -> Array:
        """Members drawn at random, and the floor as noise."""
        member_key, noise_key = jax.random.split(key)
        which = jax.random.randint(member_key, (k,), 0, members)
        return outputs(state, x)[which] + floor * jax.random.normal(noise_key, (k, len(x)), x.dtype)

    return Surrogate(init, fit, update, predict, covariance, sample, adapt=partial(_ensemble, recipe))


def _drawn(keys: Array, shape: nets.Shape, network: nets.Architecture, initial: str) -> tuple[Params, Params]:
    """The mask that all networks of an architecture have, and parameters (len(keys), ...) to start from."""
    return jax.vmap(lambda key: begin(key, shape, network, initial, jnp.float32), out_axes=(None, 0))(keys)


def _no_key() -> Array:
    """For what takes a key and draws nothing: networks without sparsity, all rows at once, no dropout."""
    return jax.random.key(0)
