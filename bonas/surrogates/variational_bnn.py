"""Variational Bayesian networks as surrogates (Hutchinson, Chapter 2)."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from bonas import nets
from bonas.data import Dataset, clean, empty
from bonas.infer import choose
from bonas.nets import Params, TrainingPlan, VIHyperparameters, apply, masks, vi_train
from bonas.nets.bnn_vi import VI, draw_weights
from bonas.nets.vi_train import VIRun
from bonas.spaces import Space
from bonas.static_settings import check_all_static
from bonas.surrogates.drawn_networks import DrawnNetworks, zeros_of
from bonas.surrogates.network_inputs import (
    check_single_output,
    features,
    make_network,
    width,
)
from bonas.surrogates.network_posterior import FunctionMixture, Inputs, Mixture, Outputs
from bonas.surrogates.surrogate import FitInfo
from bonas.traced_settings import Setting, as_setting, setting_value

# Standard deviation of the initial means, large enough that members differ, and initial log
# standard deviation of the weights, small enough to learn.
_SPREAD = 0.7
_LOG_STD = -3.0


class NetworkDraws(NamedTuple):
    """Networks drawn from the variational posterior."""

    params: Params  # (s, ...)
    noise: Array  # (s,) the variance of the noise


class VariationalState(NamedTuple):
    """State of `variational_network`: variational posteriors, and networks drawn from them."""

    # (members, k) means, log deviations and log noise: `vi_train.unpack`
    vectors: Array
    draws: NetworkDraws  # (s, ...)
    learned: Mixture
    fitted: Array  # () bool: false before the first fit


@dataclass(frozen=True, eq=False)
class VariationalNetworks(FunctionMixture):
    """A mixture of networks drawn from variational posteriors."""

    shape: nets.Shape
    network: nets.Architecture
    space: Space | None

    def outputs(self, draws: NetworkDraws, x: Inputs) -> Outputs:
        def one(params: Params) -> Array:
            inputs = 2.0 * features(self.space, x) - 1.0
            return apply(self.shape, params, inputs, self.network)[:, 0]

        return jax.vmap(one)(draws.params)

    def noise(self, draws: NetworkDraws) -> Float[Array, ""]:
        return draws.noise.mean()


@dataclass(frozen=True)
class VariationalNetwork(DrawnNetworks):
    """Surrogate by mean-field Bayesian networks; see `variational_network`."""

    widths: tuple[int, ...]
    activation: str
    members: int
    draws: int
    steps: int
    refit_steps: int
    learning_rate: Setting
    samples: int
    repeats: Setting
    prior_variance: Setting
    floor: Setting
    space: Space | None = None

    def init(self, capacity: int, d: int, p: int = 1) -> VariationalState:
        check_single_output(p)

        def make() -> tuple[Array, NetworkDraws, Mixture]:
            key = jax.random.key(0)  # only shapes are used
            data = clean(empty(capacity, d, 1))
            run = self._training_run(key, data)
            vectors = jnp.stack([vi_train.init_training(run).vector] * self.members)
            draws = self._draw_networks(key, run, vectors)
            return vectors, draws, self._predictive(d).learn(draws, data)

        vectors, draws, learned = zeros_of(make)
        return VariationalState(vectors, draws, learned, jnp.asarray(False))

    def fit(
        self, key: PRNGKeyArray, data: Dataset, state: VariationalState
    ) -> tuple[VariationalState, FitInfo]:
        data = clean(data)
        run_key, draw_key = jax.random.split(key)
        steps = jnp.where(state.fitted, self.refit_steps, self.steps)

        def train(lane: tuple[PRNGKeyArray, Array]) -> tuple[Array, Array, Array]:
            key, last = lane
            run = self._training_run(key, data)
            start = vi_train.init_training(run, spread=_SPREAD, log_std=_LOG_STD)
            start = start._replace(vector=jnp.where(state.fitted, last, start.vector))
            end, bound = vi_train.train_until(run, start, steps)
            return end.vector, bound, end.finite

        keys = jax.random.split(run_key, self.members)
        vectors, bounds, finite = jax.lax.map(train, (keys, state.vectors))
        draws = self._draw_networks(draw_key, self._training_run(key, data), vectors)
        learned = self._predictive(data.x.shape[1]).learn(draws, data)
        found = VariationalState(vectors, draws, learned, jnp.asarray(True))
        ok = finite.all()
        bound = bounds.mean()
        info = FitInfo(bound, ok, ok, jnp.zeros_like(bound))
        return choose(ok | ~state.fitted, found, state), info

    def adapt(self, space: Space) -> "VariationalNetwork":
        return replace(self, space=space)

    def _noise(self, draws: NetworkDraws) -> Float[Array, ""]:
        return draws.noise.mean()

    def _network(self, d: int) -> tuple[nets.Shape, nets.Architecture]:
        return make_network(width(self.space, d), self.widths, self.activation)

    def _predictive(self, d: int) -> VariationalNetworks:
        return VariationalNetworks(
            setting_value(self.floor), *self._network(d), self.space
        )

    def _training_run(self, key: PRNGKeyArray, data: Dataset) -> VIRun:
        shape, network = self._network(data.x.shape[1])
        inputs = 2.0 * features(self.space, data.x) - 1.0
        rows = nets.Examples(
            inputs, data.y, weight=data.mask[:, 0].astype(data.x.dtype)
        )
        hyper = VIHyperparameters(
            setting_value(self.learning_rate),
            setting_value(self.prior_variance),
            noise=0.1,
            repeats=setting_value(self.repeats),
        )
        return VIRun(
            key, shape, VI(samples=self.samples), TrainingPlan(), network, hyper, rows
        )

    def _draw_networks(
        self, key: PRNGKeyArray, run: VIRun, vectors: Array
    ) -> NetworkDraws:
        """Draw the same number of networks from each member."""
        mask = masks(key, run.shape, run.architecture)
        each = self.draws // self.members

        def draw(key: PRNGKeyArray, vector: Array) -> NetworkDraws:
            q = vi_train.unpack(vector, run.shape)
            params = jax.vmap(lambda key: draw_weights(key, run.shape, q, mask))(
                jax.random.split(key, each)
            )
            return NetworkDraws(params, jnp.broadcast_to(jnp.exp(q.log_noise), (each,)))

        draws: NetworkDraws = jax.vmap(draw)(
            jax.random.split(key, self.members), vectors
        )
        merged: NetworkDraws = jax.tree.map(
            lambda leaf: leaf.reshape(self.draws, *leaf.shape[2:]), draws
        )
        return merged


def variational_network(
    widths: tuple[int, ...] = (30,),
    *,
    activation: str = "tanh",
    members: int = 5,
    draws: int = 60,
    steps: int = 1500,
    refit_steps: int = 500,
    learning_rate: ArrayLike = 0.02,
    samples: int = 4,
    repeats: ArrayLike = 30.0,
    prior_variance: ArrayLike = 1.0,
    floor: ArrayLike = 0.01,
) -> VariationalNetwork:
    """Model the objective by mean-field Bayesian networks (Hutchinson, Chapter 2).

    The prediction is the mean and spread of networks drawn from variational posteriors that
    maximize the evidence lower bound. A search adapts the model to its space, as for `hmc_network`.
    Inputs are scaled to [−1, 1]. Values assumed at pending points condition the moments of the
    draws.

    Args:
        widths: Widths of the hidden layers.
        activation: The activation function: "relu", "tanh", "sigmoid" or "identity".
        members: Number of variational posteriors from different starts, which are mixed. A single
            one covers one mode and underestimates the uncertainty far from the data, where several
            differ (Wilson & Izmailov 2020).
        draws: The total number of networks drawn, a multiple of `members`.
        steps: The number of full-batch Adam steps in the first fit.
        refit_steps: The number of steps in later fits, which continue from the previous one.
        learning_rate: The learning rate.
        samples: The number of draws per step and row (local reparameterization, eqs. 2.10–2.12).
        repeats: Weight of the likelihood. With many more weights than values the bound is highest
            if every weight has its prior and the noise explains all values (Hutchinson's
            under-fitting), so a "colder" posterior is needed.
        prior_variance: The mode of the inverse-gamma prior of each layer's variance (eq. 2.14).
        floor: A standard deviation that is combined with the spread of the networks (the variances
            add), in units of the standardized values.
    """
    check_all_static(widths=widths, members=members, draws=draws, steps=steps)
    check_all_static(refit_steps=refit_steps, samples=samples)
    model = VariationalNetwork(
        widths=tuple(widths),
        activation=activation,
        members=members,
        draws=draws,
        steps=steps,
        refit_steps=refit_steps,
        learning_rate=as_setting("learning_rate", learning_rate),
        samples=samples,
        repeats=as_setting("repeats", repeats),
        prior_variance=as_setting("prior_variance", prior_variance),
        floor=as_setting("floor", floor),
    )
    _check_settings(model)
    return model


def _check_settings(model: VariationalNetwork) -> None:
    if not model.widths:
        raise ValueError("widths must have at least one hidden layer; got none")
    for name in ("members", "draws", "steps", "refit_steps", "samples"):
        if getattr(model, name) < 1:
            raise ValueError(f"{name} must be at least 1; got {getattr(model, name)}")
    if model.draws % model.members:
        raise ValueError(
            f"draws must be a multiple of members, {model.members}; got {model.draws}"
        )
    for name in ("learning_rate", "repeats", "prior_variance", "floor"):
        value = getattr(model, name)
        if isinstance(value, float) and not value > 0.0:
            raise ValueError(f"{name} must be above 0; got {value}")
