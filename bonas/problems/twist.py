"""Twist's problem: how many hidden layers, of how many units, trained for how many epochs at what rate (T-D15, T-E7).

Networks are trained by his Algorithm 3: logistic units everywhere, N(0, 1) to start from, half the squared error, one point
an update. `Intervals` says what is searched, `objective` what is minimised, and `algorithm4` is how Twist searched it;
`bonas.bayes(intervals.space)`, which infers what Algorithm 4 has to be given, is the better search.
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
from bonas.acquire import Pick, ei, uniform
from bonas.nets.losses import Loss
from bonas.nets.mlp import Params, masks
from bonas.problems.synthetic import two_class_plane
from bonas.search.record import Record, asked, blank, check_room, told
from bonas.search.types import AskInfo, Search, Trial, ask_info
from bonas.spaces import Float, Int, Space


@jax.tree_util.register_static
@dataclass(frozen=True)
class Intervals:
    """What is searched: the intervals of eq. 30, of which Twist states none. Static.

    layers, widest: L, as many hidden layers as his figure 3 has, and n_max, several times the three units or so with which a
        network can follow the wave of `two_class_plane`.
    epochs: E, from far too few to enough for a hundred points at a good rate, in some tenths of a second.
    rates: η, from so little that nothing is learned to so much that most networks saturate: the best lies between.
    """

    layers: int = 4
    widest: int = 20
    epochs: tuple[int, int] = (10, 400)
    rates: tuple[float, float] = (0.01, 10.0)

    @property
    def space(self) -> Space:
        """x = [n_1, ..., n_L, E, η] (eq. 29) on the unit cube (eq. 30): every column linear, all but η whole numbers.

        n_l = 0 is no layer l, and a network may have none at all (T-X11). A surrogate sees the numbers as they are
        trained, where Twist's sees them before they are rounded.
        """
        units = {f"units_{i}": Int(0, self.widest) for i in range(1, self.layers + 1)}
        return Space(**units, epochs=Int(*self.epochs), learning_rate=Float(*self.rates))

    @property
    def shape(self) -> nets.Shape:
        """What all these networks are padded to: one compiled program for all of them."""
        return shape(self.layers, self.widest)

    def design(self, u: Array) -> tuple[nets.Architecture, nets.Hyper]:
        """The network and its training at one row u (d,), from eq. 30 back to eq. 29; traceable."""
        values = self.space.values(u)
        units = jnp.stack([values[name] for name in self.space.names[: self.layers]]).astype(jnp.int32)
        hyper = nets.Hyper(learning_rate=values["learning_rate"], epochs=values["epochs"].astype(jnp.int32))
        return nets.Architecture(units, jnp.zeros((), jnp.int32)), hyper


DEFAULT = Intervals()


def shape(layers: int, widest: int) -> nets.Shape:
    """Networks from the plane to two classes, logistic in every layer, the output included (T-D2)."""
    return nets.Shape(2, 2, depth=layers, width=widest, activations=("sigmoid",), output="sigmoid")


def settings(epochs: int, *, batch: int = 1, checkpoints: int | None = None) -> nets.Settings:
    """Algorithm 3: at most that many epochs, each over all points in a new order, one an update.

    batch: points an update; more than one are the mini-batches of Section 2.5 (T-D5).
    checkpoints: validate every so many epochs; by default at the end alone. Measured are the cost (T-D3) and the share of
        points that are classified wrongly, which is 1 − the validation accuracy (T-D6).
    """
    return nets.Settings(
        loss="half_squared_error",
        metrics=("half_squared_error", "error"),
        optimiser="sgd",
        batch=batch,
        max_epochs=epochs,
        checkpoints=checkpoints or epochs,
        initial="unit",
    )


def plane(key: Array, *, train: int = 100, validation: int = 400, noise: float = 0.05) -> nets.Examples:
    """Points of `two_class_plane` to train and to validate on; a target has a column a class, as in Twist's code.

    Nothing is stated of his points. By default there are few enough to train on them one by one in a fraction of a second;
    enough to validate that chance, a standard deviation of about 0.015, is less than what architectures differ by; and
    the classes mix so little that a network without hidden layers is wrong half as often again as a good one.
    """
    if min(train, validation) < 1:
        raise ValueError(f"train and validation are numbers of points, at least 1; got {train} and {validation}")
    drawn = two_class_plane(key, n=train + validation, noise=noise)
    targets = np.eye(2)[drawn.y]
    return nets.examples(drawn.x[:train], targets[:train], drawn.x[train:], targets[train:])


class Training(NamedTuple):
    """A run of Algorithm 3, looked at every few epochs: cost (T-D3) and share of points classified wrongly, (c, 2)."""

    params: Params
    epochs: Array  # (c,) int: when it was looked at
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
    """Algorithm 3 for a pattern of hidden layers: his figures 3 and 4, whose epochs and rate are the defaults."""
    x, y = (jnp.concatenate([seen, jnp.asarray(held)]) for seen, held in ((data.x, data.valid_x), (data.y, data.valid_y)))
    how = settings(epochs, batch=batch, checkpoints=every)
    parts = ((0, len(data.x)), (len(data.x), len(x)))
    how = replace(how, metrics=tuple(_among(measure, *part) for part in parts for measure in how.measures))
    network = shape(len(pattern), max(pattern))
    hyper = nets.Hyper(learning_rate=rate)
    found = nets.train(key, network, how, nets.architecture(network, pattern), hyper, data._replace(valid_x=x, valid_y=y))
    metrics = jnp.asarray(found.metrics)
    return Training(found.params, jnp.asarray(how.checkpoint_epochs), metrics[:, :2], metrics[:, 2:])


@cache
def _among(measure: Loss, start: int, stop: int) -> Loss:
    """The measure on rows start to stop alone: its mean over all rows is the mean over those."""

    def loss(outputs: Array, targets: Array) -> Array:
        rows = jnp.arange(len(outputs))
        share = (stop - start) / len(outputs)
        return jnp.where((rows >= start) & (rows < stop), measure(outputs, targets), 0.0) / share

    return loss


def cost(intervals: Intervals, u: Array, points: int) -> Array:
    """What one training costs (): parameters × epochs × training points, the multiplications of its forward passes.

    A back propagation takes twice as many, so this is the work of Algorithm 3 but for a factor. It is exact and the same
    everywhere; seconds cannot be taken inside a compiled search, and those of a padded network would be another's.
    """
    architecture, hyper = intervals.design(u)
    there = masks(jax.random.key(0), intervals.shape, architecture)  # nothing is drawn where all connections exist
    parameters = sum(jnp.sum(leaf) for leaf in jax.tree.leaves(there))
    return jnp.asarray(parameters, u.dtype) * jnp.asarray(hyper.epochs) * points


def fit(key: Array, intervals: Intervals, u: Array, data: nets.Examples, *, batch: int = 1) -> nets.Result:
    """One training of the design at a row u (d,); batch as in `settings`. Traceable, and one program for all designs."""
    return nets.train(key, intervals.shape, settings(intervals.epochs[1], batch=batch), *intervals.design(u), data)


def objective(
    data: nets.Examples, intervals: Intervals = DEFAULT, *, batch: int = 1, trainings: int = 1
) -> Callable[[Array, Array], tuple[Array, Array]]:
    """What a search minimises: objective(key, u) -> (1 − validation accuracy, cost), the mean over some trainings.

    Algorithm 4 is given f: X -> [0, 1], one training of a network from another start every time; the noise of that goes
    down with `trainings`, and the cost goes up. Traceable, and so is `data`: one program serves all data sets of a size.
    batch: as in `settings`.
    """
    if data.valid_x is None:
        raise ValueError("the objective is measured on validation rows: examples(x, y, valid_x, valid_y)")
    if trainings < 1:
        raise ValueError(f"trainings is a number of at least 1; got {trainings}")

    def value(key: Array, u: Array) -> tuple[Array, Array]:
        def wrong(key):
            return jnp.asarray(fit(key, intervals, u, data, batch=batch).final)[1]

        each = jax.lax.map(wrong, jax.random.split(key, trainings))
        return each.mean().astype(u.dtype), trainings * cost(intervals, u, len(data.x))

    return value


class Algorithm4State(NamedTuple):
    """What the next ask needs."""

    record: Record  # everything asked and told
    design: Array  # (k, d) the initial points


@cache
def algorithm4(
    space: Space,
    *,
    alpha: float = 1.0,
    sigma: float = 0.05,
    lengthscale: float = 0.5,
    initial: int = 5,
    candidates: int = 1000,
) -> Search:
    """Twist's Algorithm 4: expected improvement over a Gaussian process whose parameters are given, not learned.

    For values of 1 − accuracy. The process is that of the accuracy itself: of mean zero, which is to expect that networks
    unlike those tried get nothing right, with the kernel α² exp(−‖x − x'‖² / 2ℓ²) of eq. 26 and noise σ². Initial points
    are uniform, and so are the candidates that are scored at every ask. The best value is the best one observed (T-X9).

    Printed wrongly, and right here: the direction of the improvement (T-X1), the sign of its second term (T-X2), a
    standard deviation for the variance (T-X3), the transpose in the mean (T-X4). Twist's MATLAB code has all of them right.

    None of the settings is stated. α = 1 is that of his figure 5, and the size of an accuracy; σ is what trainings of one
    design differ by; ℓ is half a side of the cube.
    """
    if min(initial, candidates) < 1 or not min(alpha, sigma, lengthscale) > 0.0:
        raise ValueError(
            f"initial and candidates are at least 1, and alpha, sigma and lengthscale above 0; got {initial}, {candidates}, "
            f"{alpha}, {sigma} and {lengthscale}"
        )
    kernel, params, box = gp.se(), {"variance": alpha**2, "lengthscale": lengthscale}, uniform(space, candidates=candidates)

    def init(key: Array, capacity: int) -> Algorithm4State:
        return Algorithm4State(blank(capacity, space.dim), space.sample(key, initial))

    def suggest(key: Array, state: Algorithm4State) -> Pick:
        data = state.record.data
        loss = data._replace(y=data.y - 1.0)  # −accuracy: minimised, and its prior mean is that of the accuracy
        posterior = gp.condition(kernel, params, loss, noise=sigma**2)
        best = jnp.min(jnp.where(loss.mask, loss.y, 0.0))

        def score(x):
            mean, std = gp.predict(posterior, x)
            return ei(mean[None], std[None], best)

        return box.maximise(key, score, state.design, data.x, jnp.arange(len(data.x)) < data.size)

    def plan(key: Array, state: Algorithm4State) -> Pick:
        x = state.design[jnp.minimum(state.record.data.size, initial - 1)]
        return Pick(x, jnp.full((), jnp.nan, x.dtype), jnp.asarray(False), jnp.asarray(0))

    def ask(key: Array, state: Algorithm4State) -> tuple[Array, Algorithm4State, AskInfo]:
        check_room(state.record, 1)
        first = state.record.data.size < initial
        chosen = jax.lax.cond(first, plan, suggest, key, state)
        info = ask_info(chosen.x, acquisition=chosen.score, flat=chosen.flat, duplicates=chosen.duplicates, random=first)
        return chosen.x[None], state._replace(record=asked(state.record, chosen.x)), info

    def tell(state: Algorithm4State, trial: Trial) -> Algorithm4State:
        space.check(trial.x, "a trial's x", exists=True)
        return state._replace(record=told(state.record, trial))

    return Search(space, init, ask, tell)
