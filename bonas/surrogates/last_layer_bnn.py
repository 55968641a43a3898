"""Bayesian linear regression on the last hidden layer of a network (Snoek et al. 2015)."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from bonas import nets
from bonas.data import Dataset, clean
from bonas.gp import Prediction, affine_features, basis
from bonas.infer import choose
from bonas.nets import DIVERGED, Params, Run, init_network, masks
from bonas.nets import fit as fit_network
from bonas.spaces import Space
from bonas.static_settings import check_all_static
from bonas.surrogates.gaussian_process import GaussianProcess, gp
from bonas.surrogates.hyperparameter_samplers import Infer
from bonas.surrogates.network_inputs import (
    check_single_output,
    features,
    full_batch_training,
    make_network,
    width,
)
from bonas.surrogates.surrogate import (
    Covariances,
    FitInfo,
    OtherPoints,
    Points,
    Samples,
    Surrogate,
)
from bonas.traced_settings import Setting, as_setting


class LastLayerState(NamedTuple):
    """State of `last_layer`: a network, and the regression on its last hidden layer."""

    params: Params
    regression: Any  # the state of a GP
    fitted: Array  # () bool: false before the first fit


@dataclass(frozen=True)
class LastLayer(Surrogate):
    """Surrogate by Bayesian linear regression on a network's features; see `last_layer`."""

    widths: tuple[int, ...]
    activation: str
    steps: int
    learning_rate: Setting
    weight_decay: Setting
    warm: bool
    regression: GaussianProcess
    space: Space | None = None

    def init(self, capacity: int, d: int, p: int = 1) -> LastLayerState:
        check_single_output(p)
        zeros = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, jnp.float32),
            masks(jax.random.key(0), *self._network(d)),
        )
        regression = self.regression.init(capacity, self.widths[-1], 1)
        return LastLayerState(zeros, regression, jnp.asarray(False))

    def fit(
        self, key: PRNGKeyArray, data: Dataset, state: LastLayerState
    ) -> tuple[LastLayerState, FitInfo]:
        start_key, train_key, regression_key = jax.random.split(key, 3)
        shape, network = self._network(data.x.shape[1])
        mask, start = init_network(start_key, shape, network, "scaled", jnp.float32)
        if self.warm:
            start = choose(state.fitted, state.params, start)
        observed = clean(data)
        rows = nets.Examples(
            self._inputs(observed.x),
            observed.y.astype(jnp.float32),
            weight=observed.mask[:, 0].astype(jnp.float32),
        )
        settings, hyper = full_batch_training(
            self.steps, self.learning_rate, self.weight_decay
        )
        result = fit_network(
            Run(train_key, shape, settings, network, hyper, rows, mask), start
        )
        finite = result.status != DIVERGED
        params = choose(finite | ~state.fitted, result.params, state.params)
        hidden = self._hidden_data(params, data)
        regression, info = self.regression.fit(regression_key, hidden, state.regression)
        new_state = LastLayerState(params, regression, jnp.asarray(True))
        return new_state, info._replace(
            converged=info.converged & finite, finite=info.finite & finite
        )

    def update(self, data: Dataset, state: LastLayerState) -> LastLayerState:
        """Condition the regression on the data, without training the network."""
        hidden = self._hidden_data(state.params, data)
        return state._replace(
            regression=self.regression.update(hidden, state.regression)
        )

    def predict(self, state: LastLayerState, x: Points) -> Prediction:
        return self.regression.predict(state.regression, self._hidden(state.params, x))

    def covariance(
        self, state: LastLayerState, x: Points, at: OtherPoints
    ) -> Covariances:
        hidden_x = self._hidden(state.params, x)
        hidden_at = self._hidden(state.params, at)
        return self.regression.covariance(state.regression, hidden_x, hidden_at)

    def sample(
        self, key: PRNGKeyArray, state: LastLayerState, x: Points, k: int
    ) -> Samples:
        return self.regression.sample(
            key, state.regression, self._hidden(state.params, x), k
        )

    def noise_variance(self, state: LastLayerState) -> Float[Array, " s"]:
        return self.regression.noise_variance(state.regression)

    def adapt(self, space: Space) -> "LastLayer":
        return replace(self, space=space)

    def _network(self, d: int) -> tuple[nets.Shape, nets.Architecture]:
        return make_network(width(self.space, d), self.widths, self.activation)

    def _inputs(self, x: Array) -> Array:
        """Return inputs in [−1, 1]."""
        return (2.0 * features(self.space, x) - 1.0).astype(jnp.float32)

    def _hidden(self, params: Params, x: Array) -> Float[Array, "m units"]:
        """Return the last hidden layer, divided by √units because predictions sum over it."""
        shape, network = self._network(x.shape[1])
        units = self.widths[-1]
        rows = shape.sizes["last"][0]
        # The output layer is the identity.
        identity = {
            "kernel": jnp.eye(rows, units, dtype=jnp.float32),
            "bias": jnp.zeros(units, jnp.float32),
        }
        wide = replace(shape, outputs=units)
        hidden = nets.apply(
            wide, {**params, "last": identity}, self._inputs(x), network
        )
        return hidden.astype(x.dtype) / jnp.sqrt(units)

    def _hidden_data(self, params: Params, data: Dataset) -> Dataset:
        data = clean(data)
        return data._replace(x=self._hidden(params, data.x))


def last_layer(
    widths: tuple[int, ...] = (50, 50, 50),
    *,
    activation: str = "tanh",
    steps: int = 500,
    learning_rate: ArrayLike = 0.01,
    weight_decay: ArrayLike = 1e-3,
    warm: bool = True,
    infer: Infer = "slice",
    samples: int = 10,
) -> LastLayer:
    """Model the objective by Bayesian linear regression on a network's last hidden layer.

    This is DNGO (Snoek et al. 2015). The network is trained in float32. The cost of a prediction
    grows with the width of the last hidden layer and not with the number of observations. Only the
    output weights are uncertain, so the uncertainty is small far from the data where features are
    constant.

    Args:
        widths: Widths of the hidden layers.
        activation: The activation function: "relu", "tanh", "sigmoid" or "identity".
        steps: The number of full-batch Adam steps per fit; the learning rate decays to zero on a
            cosine schedule.
        learning_rate: The initial learning rate.
        weight_decay: The weight decay.
        warm: Start each fit from the previous weights instead of a new initialization.
        infer: How to infer the variances of weights and noise, as in `surrogates.gp`; the paper
            integrates over them by slice sampling.
        samples: The number of samples of these variances, unless `infer` is "map".
    """
    check_all_static(widths=widths, steps=steps, activation=activation, warm=warm)
    if len(widths) < 1:
        raise ValueError("widths must have at least one hidden layer; got none")
    if steps < 1:
        raise ValueError(f"steps must be at least 1; got {steps}")
    regression = gp(basis(affine_features), infer=infer, samples=samples)
    return LastLayer(
        widths=tuple(widths),
        activation=activation,
        steps=steps,
        learning_rate=as_setting("learning_rate", learning_rate),
        weight_decay=as_setting("weight_decay", weight_decay),
        warm=warm,
        regression=regression,
    )
