"""Twist's system: networks of the plane, the objective, and Algorithm 4.

Networks are trained by Algorithm 3: logistic units, initial weights from N(0, 1), half the squared
error, one point per update. `Intervals` defines the space, `objective` the function to minimize,
and `algorithm4` is Twist's search. `bonas.bayes(intervals.space)`, which infers what Algorithm 4
takes as given, is the better search.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas import gp, nets
from bonas.acquire import Selection, ei, random_candidates
from bonas.nets import Loss, Params, masks
from bonas.problems.synthetic import two_class_plane
from bonas.search import AskInfo, Observation, Search, add_pending, ask_info
from bonas.search.observations import (
    Observations,
    add_observation,
    check_capacity,
    empty_observations,
)
from bonas.spaces import Float, Int, Space


@jax.tree_util.register_static
@dataclass(frozen=True)
class Intervals:
    """The intervals of the search (eq. 30), which Twist does not state.

    Attributes:
        layers: L, the number of hidden layers of his figure 3.
        widest: n_max, several times the three units that can follow the wave of `two_class_plane`.
        epochs: E, from far too few to enough for a hundred points at a good rate.
        rates: η, from too small to learn anything to so large that most networks saturate.
    """

    layers: int = 4
    widest: int = 20
    epochs: tuple[int, int] = (10, 400)
    rates: tuple[float, float] = (0.01, 10.0)

    @property
    def space(self) -> Space:
        """x = [n_1, ..., n_L, E, η] (eq. 29) on the unit cube (eq. 30); all but η are integers.

        n_l = 0 means no layer l, and a network may have no hidden layer. A surrogate sees the
        rounded values; Twist's sees them before rounding.
        """
        units = {f"units_{i}": Int(0, self.widest) for i in range(1, self.layers + 1)}
        return Space(
            **units, epochs=Int(*self.epochs), learning_rate=Float(*self.rates)
        )

    @property
    def shape(self) -> nets.Shape:
        """What all these networks are padded to: one compiled program for all of them."""
        return shape(self.layers, self.widest)

    def design(self, u: Array) -> tuple[nets.Architecture, nets.Hyperparameters]:
        """Return the network and its hyperparameters at one row u (d,); traceable."""
        values = self.space.values(u)
        units = jnp.stack(
            [values[name] for name in self.space.names[: self.layers]]
        ).astype(jnp.int32)
        hyper = nets.Hyperparameters(
            learning_rate=values["learning_rate"],
            epochs=values["epochs"].astype(jnp.int32),
        )
        return nets.Architecture(units, jnp.zeros((), jnp.int32)), hyper


DEFAULT = Intervals()


def shape(layers: int, widest: int) -> nets.Shape:
    """Networks from the plane to two classes, logistic in every layer, the output included."""
    return nets.Shape(
        2, 2, depth=layers, width=widest, activations=("sigmoid",), output="sigmoid"
    )


def settings(
    epochs: int, *, batch: int = 1, checkpoints: int | None = None
) -> nets.Settings:
    """Return the settings of Algorithm 3: every epoch visits all points in a new order.

    Args:
        epochs: The largest number of epochs.
        batch: Points per update; more than one are the mini-batches of Section 2.5.
        checkpoints: Epochs between validations, by default only at the end. Metrics are the cost
            and the share of wrong points, 1 − the validation accuracy.
    """
    return nets.Settings(
        loss="half_squared_error",
        metrics=("half_squared_error", "error"),
        optimizer="sgd",
        batch=batch,
        max_epochs=epochs,
        checkpoints=checkpoints or epochs,
        initial="unit",
    )


def plane(
    key: Array, *, train: int = 100, validation: int = 400, noise: float = 0.05
) -> nets.Examples:
    """Draw training and validation points of `two_class_plane`; targets have a column per class.

    Twist does not describe his data. The defaults are few enough points to train on them one by one
    in a fraction of a second, and enough validation points that their standard deviation, about
    0.015, is below the differences between architectures. A network without hidden layers is wrong
    half as often again as a good one.
    """
    if min(train, validation) < 1:
        raise ValueError(
            f"train and validation must be at least 1; got {train} and {validation}"
        )
    drawn = two_class_plane(key, n=train + validation, noise=noise)
    targets = np.eye(2)[drawn.y]
    return nets.examples(
        drawn.x[:train], targets[:train], drawn.x[train:], targets[train:]
    )


class Training(NamedTuple):
    """A run of Algorithm 3: cost and share of wrong points (c, 2) at checkpoints."""

    params: Params
    epochs: Array  # (c,) int: epochs of the measurements
    train: Array  # (c, 2) on the training points
    validation: Array  # (c, 2) on the validation points


def train(
    key: Array,
    pattern: tuple[int, ...],
    data: nets.Examples,
    *,
    epochs: int = 1000,
    rate: float = 0.05,
    batch: int = 1,
    every: int = 1,
) -> Training:
    """Run Algorithm 3 for a pattern of hidden layers; the defaults are from figures 3 and 4."""
    x, y = (
        jnp.concatenate([seen, jnp.asarray(held)])
        for seen, held in ((data.x, data.valid_x), (data.y, data.valid_y))
    )
    how = settings(epochs, batch=batch, checkpoints=every)
    parts = ((0, len(data.x)), (len(data.x), len(x)))
    how = replace(
        how,
        metrics=tuple(
            _among(measure, *part) for part in parts for measure in how.metric_functions
        ),
    )
    network = shape(len(pattern), max(pattern))
    hyper = nets.Hyperparameters(learning_rate=rate)
    found = nets.train(
        key,
        network,
        how,
        nets.architecture(network, pattern),
        hyper,
        data._replace(valid_x=x, valid_y=y),
    )
    metrics = jnp.asarray(found.metrics)
    return Training(
        found.params, jnp.asarray(how.checkpoint_epochs), metrics[:, :2], metrics[:, 2:]
    )


@cache
def _among(measure: Loss, start: int, stop: int) -> Loss:
    """Restrict a metric to rows start to stop; its mean over all rows is the mean over those."""

    def loss(outputs: Array, targets: Array) -> Array:
        rows = jnp.arange(len(outputs))
        share = (stop - start) / len(outputs)
        return (
            jnp.where((rows >= start) & (rows < stop), measure(outputs, targets), 0.0)
            / share
        )

    return loss


def cost(intervals: Intervals, u: Array, points: int) -> Array:
    """Return the cost of one training (): parameters × epochs × training points.

    This is the number of multiplications of the forward passes, a fixed share of the work of
    Algorithm 3. Seconds cannot be measured inside a compiled search of padded networks.
    """
    architecture, hyper = intervals.design(u)
    # the key is unused: nothing is drawn if all connections exist
    exists = masks(jax.random.key(0), intervals.shape, architecture)
    parameters = sum(jnp.sum(leaf) for leaf in jax.tree.leaves(exists))
    return jnp.asarray(parameters, u.dtype) * jnp.asarray(hyper.epochs) * points


def fit(
    key: Array, intervals: Intervals, u: Array, data: nets.Examples, *, batch: int = 1
) -> nets.Result:
    """Train the design at a row u (d,) once; traceable, one program for all designs."""
    return nets.train(
        key,
        intervals.shape,
        settings(intervals.epochs[1], batch=batch),
        *intervals.design(u),
        data,
    )


def objective(
    data: nets.Examples,
    intervals: Intervals = DEFAULT,
    *,
    batch: int = 1,
    trainings: int = 1,
) -> Callable[[Array, Array], tuple[Array, Array]]:
    """Return objective(key, u) -> (1 − validation accuracy, cost), means over `trainings`.

    Algorithm 4 assumes f: X -> [0, 1], one training from new initial weights; more trainings reduce
    the noise and increase the cost. Traceable in `data` too: one program serves all data sets of a
    size.
    """
    if data.valid_x is None:
        raise ValueError(
            "the objective is measured on validation rows: examples(x, y, valid_x, valid_y)"
        )
    if trainings < 1:
        raise ValueError(f"trainings must be at least 1; got {trainings}")

    def value(key: Array, u: Array) -> tuple[Array, Array]:
        def wrong(key):
            return jnp.asarray(fit(key, intervals, u, data, batch=batch).final)[1]

        each = jax.lax.map(wrong, jax.random.split(key, trainings))
        return each.mean().astype(u.dtype), trainings * cost(intervals, u, len(data.x))

    return value


class Algorithm4State(NamedTuple):
    """The state of Algorithm 4."""

    observations: Observations
    design: Array  # (k, d) initial points


@dataclass(frozen=True)
class Algorithm4(Search):
    """Twist's Algorithm 4; see `algorithm4`."""

    space: Space
    alpha: float
    sigma: float
    lengthscale: float
    initial: int
    candidates: int

    def init(self, key: Array, capacity: int) -> Algorithm4State:
        observations = empty_observations(capacity, self.space.dim)
        return Algorithm4State(observations, self.space.sample(key, self.initial))

    def ask(
        self, key: Array, state: Algorithm4State
    ) -> tuple[Array, Algorithm4State, AskInfo]:
        check_capacity(state.observations, 1)
        first = state.observations.data.size < self.initial
        chosen = jax.lax.cond(first, self._planned, self._suggested, key, state)
        info = ask_info(
            chosen.x,
            acquisition=chosen.score,
            flat=chosen.flat,
            duplicates=chosen.duplicates,
            random=first,
        )
        observations = add_pending(state.observations, chosen.x)
        return chosen.x[None], state._replace(observations=observations), info

    def tell(self, state: Algorithm4State, observation: Observation) -> Algorithm4State:
        self.space.check(observation.x, "an observation's x", exists=True)
        return state._replace(
            observations=add_observation(state.observations, observation)
        )

    def _planned(self, key: Array, state: Algorithm4State) -> Selection:
        x = state.design[jnp.minimum(state.observations.data.size, self.initial - 1)]
        return Selection(
            x, jnp.full((), jnp.nan, x.dtype), jnp.asarray(False), jnp.asarray(0)
        )

    def _suggested(self, key: Array, state: Algorithm4State) -> Selection:
        data = state.observations.data
        # −accuracy is minimized; its prior mean is zero, as for the accuracy.
        loss = data._replace(y=data.y - 1.0)
        params = {"variance": self.alpha**2, "lengthscale": self.lengthscale}
        posterior = gp.condition(gp.se(), params, loss, noise=self.sigma**2)
        best = jnp.min(jnp.where(loss.mask, loss.y, 0.0))

        def score(x: Array) -> Array:
            mean, std = gp.predict(posterior, x)
            return ei(mean[None], std[None], best)

        maximizer = random_candidates(self.space, candidates=self.candidates)
        evaluated = jnp.arange(len(data.x)) < data.size
        return maximizer.maximize(key, score, state.design, data.x, evaluated)


def algorithm4(
    space: Space,
    *,
    alpha: float = 1.0,
    sigma: float = 0.05,
    lengthscale: float = 0.5,
    initial: int = 5,
    candidates: int = 1000,
) -> Search:
    """Create Twist's Algorithm 4: expected improvement over a GP with fixed hyperparameters.

    It minimizes 1 − accuracy. The GP models the accuracy itself with mean zero, so networks far
    from all observed ones are expected to get nothing right, the kernel α² exp(−‖x − x'‖² / 2ℓ²)
    (eq. 26) and noise variance σ². Initial points and the candidates of every ask are uniform.
    The best value is the best observed one; Twist's Algorithm 4 takes it over too few points.

    Misprints of the text are corrected, as in Twist's MATLAB code: the direction of the
    improvement, the sign of its second term, a variance in place of a standard deviation
    (Section 4), and a missing transpose in the posterior mean.

    Twist states none of the settings. α = 1 is from his figure 5 and the scale of an accuracy;
    σ is the typical difference between trainings of one design; ℓ is half a side of the cube.
    """
    if min(initial, candidates) < 1:
        raise ValueError(
            f"initial and candidates must be at least 1; got {initial} and {candidates}"
        )
    if not min(alpha, sigma, lengthscale) > 0.0:
        raise ValueError(
            f"alpha, sigma and lengthscale must be positive; got {alpha}, {sigma}, {lengthscale}"
        )
    return Algorithm4(space, alpha, sigma, lengthscale, initial, candidates)
