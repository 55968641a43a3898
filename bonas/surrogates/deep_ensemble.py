"""Deep ensembles as surrogates: networks from different starts disagree away from the data."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from bonas import nets
from bonas.data import Dataset, clean
from bonas.gp import Prediction
from bonas.infer import choose
from bonas.nets import DIVERGED, Params, Run, init_network, masks
from bonas.nets import fit as fit_network
from bonas.spaces import Space
from bonas.static_settings import check_all_static
from bonas.surrogates.network_inputs import (
    check_single_output,
    features,
    full_batch_training,
    make_network,
)
from bonas.surrogates.surrogate import (
    Covariances,
    FitInfo,
    OtherPoints,
    Points,
    Samples,
    Surrogate,
)
from bonas.traced_settings import Setting, as_setting, setting_value


class EnsembleState(NamedTuple):
    """State of a deep ensemble: the weights of its members and their prior networks."""

    params: Params  # (members, ...)
    prior: Params  # (members, ...) untrained networks that are added to the members
    fitted: Array  # () bool: false before the first fit


@dataclass(frozen=True)
class DeepEnsemble(Surrogate):
    """Deep ensemble surrogate; see `ensemble`."""

    members: int
    widths: tuple[int, ...]
    activation: str
    steps: int
    learning_rate: Setting
    weight_decay: Setting
    prior: Setting
    floor: Setting
    warm: bool
    space: Space | None = None

    def init(self, capacity: int, d: int, p: int = 1) -> EnsembleState:
        check_single_output(p)
        zeros = jax.tree.map(
            lambda leaf: jnp.zeros((self.members, *leaf.shape), jnp.float32),
            masks(_unused_key(), *self._network(d)),
        )
        return EnsembleState(zeros, zeros, jnp.asarray(False))

    def fit(
        self, key: PRNGKeyArray, data: Dataset, state: EnsembleState
    ) -> tuple[EnsembleState, FitInfo]:
        shape, network = self._network(data.x.shape[1])
        start_keys, prior_keys = jax.random.split(key, (2, self.members))
        mask, start = _init_networks(start_keys, shape, network, "uniform")
        _, prior = _init_networks(prior_keys, shape, network, "scaled")
        if self.warm:
            start, prior = choose(
                state.fitted, (state.params, state.prior), (start, prior)
            )
        result = self._train(data, mask, start, prior, steps=self.steps)
        finite = (result.status != DIVERGED).all()
        found = EnsembleState(result.params, prior, jnp.asarray(True))
        loss = result.losses[:, -1].mean().astype(data.y.dtype)
        info = FitInfo(-loss, finite, finite, jnp.zeros_like(loss))
        return choose(finite | ~state.fitted, found, state), info

    def update(self, data: Dataset, state: EnsembleState) -> EnsembleState:
        """Train the members for a quarter of the steps of a fit."""
        mask = masks(_unused_key(), *self._network(data.x.shape[1]))
        steps = max(self.steps // 4, 1)
        result = self._train(data, mask, state.params, state.prior, steps=steps)
        return state._replace(params=result.params)

    def predict(self, state: EnsembleState, x: Points) -> Prediction:
        values = self._outputs(state, x)
        std = jnp.sqrt(values.var(axis=0) + setting_value(self.floor) ** 2)
        return Prediction(values.mean(axis=0)[None], std[None])

    def covariance(
        self, state: EnsembleState, x: Points, at: OtherPoints
    ) -> Covariances:
        left, right = (
            values - values.mean(axis=0)[None, :]
            for values in (self._outputs(state, x), self._outputs(state, at))
        )
        same = (x[:, None, :] == at[None, :, :]).all(axis=2)
        variance = setting_value(self.floor) ** 2
        cov = left.T @ right / self.members + jnp.where(same, variance, 0.0)
        return cov[None]

    def sample(
        self, key: PRNGKeyArray, state: EnsembleState, x: Points, k: int
    ) -> Samples:
        """Draw members at random, with added noise of standard deviation `floor`."""
        member_key, noise_key = jax.random.split(key)
        rows = jax.random.randint(member_key, (k,), 0, self.members)
        noise = jax.random.normal(noise_key, (k, len(x)), x.dtype)
        floor: Array = setting_value(self.floor)
        return self._outputs(state, x)[rows] + floor * noise

    def adapt(self, space: Space) -> "DeepEnsemble":
        return replace(self, space=space)

    def _inputs(self, x: Array) -> Array:
        """Return inputs in [−1, 1] with a constant column."""
        columns = (2.0 * features(self.space, x) - 1.0).astype(jnp.float32)
        return jnp.concatenate([columns, jnp.ones((len(x), 1), jnp.float32)], axis=1)

    def _network(self, d: int) -> tuple[nets.Shape, nets.Architecture]:
        points = jax.ShapeDtypeStruct((1, d), jnp.float32)
        inputs = jax.eval_shape(self._inputs, points).shape[1]
        return make_network(inputs, self.widths, self.activation)

    def _outputs(self, state: EnsembleState, x: Array) -> Float[Array, "members m"]:
        shape, network = self._network(x.shape[1])
        rows = self._inputs(x)

        def apply_each(params: Params) -> Array:
            return jax.vmap(lambda one: nets.apply(shape, one, rows, network)[:, 0])(
                params
            )

        weight: Array = setting_value(self.prior)
        values = apply_each(state.params) + weight * apply_each(state.prior)
        return values.astype(x.dtype)

    def _train(
        self, data: Dataset, mask: Params, start: Params, prior: Params, *, steps: int
    ) -> nets.Result:
        """Train each member on the difference between the values and its prior network."""
        data = clean(data)
        shape, network = self._network(data.x.shape[1])
        x = self._inputs(data.x)
        y = data.y.astype(jnp.float32)
        weight = data.mask[:, 0].astype(jnp.float32)
        settings, hyper = full_batch_training(
            steps, self.learning_rate, self.weight_decay
        )

        def train_one(start: Params, prior: Params) -> nets.Result:
            rest = y - setting_value(self.prior) * nets.apply(shape, prior, x, network)
            rows = nets.Examples(x, rest, weight=weight)
            run = Run(_unused_key(), shape, settings, network, hyper, rows, mask)
            return fit_network(run, start)

        return jax.vmap(train_one)(start, prior)


def ensemble(
    members: int = 5,
    widths: tuple[int, ...] = (50, 50),
    *,
    activation: str = "tanh",
    steps: int = 400,
    learning_rate: ArrayLike = 0.02,
    weight_decay: ArrayLike = 0.0,
    prior: ArrayLike = 1.0,
    floor: ArrayLike = 0.03,
    warm: bool = False,
) -> DeepEnsemble:
    """Model the objective by a deep ensemble (Lakshminarayanan, Pritzel & Blundell 2017).

    The prediction is the mean and spread of networks trained in float32. A search adapts the model
    to its space: a Choice becomes one input per option, and a conditional parameter has another
    input that is 1 where it is active. Assumed values at pending points are fitted with a quarter
    of the steps.

    Args:
        members: The number of networks.
        widths: Widths of the hidden layers.
        activation: The activation function: "relu", "tanh", "sigmoid" or "identity".
        steps: The number of full-batch Adam steps per fit; the learning rate decays to zero on a
            cosine schedule.
        learning_rate: The initial learning rate.
        weight_decay: The weight decay.
        prior: The weight of the prior network, an untrained network whose output is added to that
            of its member. Members then differ away from the data (Osband, Aslanides & Cassirer
            2018). 0 gives a plain deep ensemble.
        floor: A standard deviation that is combined with the spread of the members (the variances
            add), in units of the standardized values. Without it, members that agree by chance
            would predict no uncertainty.
        warm: Start each fit from the previous weights instead of a new initialization.
    """
    check_all_static(members=members, widths=widths, steps=steps)
    check_all_static(activation=activation, warm=warm)
    if members < 2 or steps < 1:
        raise ValueError(
            f"members must be at least 2, and steps at least 1; got {members} and {steps}"
        )
    spread = as_setting("floor", floor)
    if isinstance(spread, float) and not spread > 0.0:
        raise ValueError(f"floor must be above 0; got {floor}")
    if len(widths) < 1:
        raise ValueError("widths must have at least one hidden layer; got none")
    return DeepEnsemble(
        members=members,
        widths=tuple(widths),
        activation=activation,
        steps=steps,
        learning_rate=as_setting("learning_rate", learning_rate),
        weight_decay=as_setting("weight_decay", weight_decay),
        prior=as_setting("prior", prior),
        floor=spread,
        warm=warm,
    )


def _init_networks(
    keys: PRNGKeyArray, shape: nets.Shape, network: nets.Architecture, initial: str
) -> tuple[Params, Params]:
    """Return the mask of the architecture and initial parameters (len(keys), ...)."""

    def init_one(key: PRNGKeyArray) -> tuple[Params, Params]:
        return init_network(key, shape, network, initial, jnp.float32)

    return jax.vmap(init_one, out_axes=(None, 0))(keys)


def _unused_key() -> PRNGKeyArray:
    """Return a key for functions that draw nothing without sparsity, minibatches and dropout."""
    return jax.random.key(0)
