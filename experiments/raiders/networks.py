"""Networks of unknown depth with settings for every layer: the space of Swersky et al. 2014.

A network has 0 to 5 hidden layers of rectified units. Each hidden layer has a number of units; each
layer of weights has a learning rate and a bound on the norm of a unit's incoming weights; the
inputs and each hidden layer have a dropout rate. Parameters of layers that a network does not have
are inactive. The columns are as in `authors_table`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas import nets
from bonas.spaces import Float, Int, Parameter, Space, When


@jax.tree_util.register_static
@dataclass(frozen=True)
class Layered:
    """The space of networks and their training; the defaults are from the paper.

    Attributes:
        deepest: The largest number of hidden layers.
        units: The largest number of units of a layer, in steps of `step`.
        rates, norms, dropouts: Bounds for each layer; rates are on a log scale.
        batch: Rows per update.
        updates: Updates of a training.
        momentum: First and last value; it rises during `warm` updates.
        warm: Updates while the momentum rises and the learning rate falls to a half; the last
            `warm` updates have no dropout.
        conditional: False makes every parameter active, for models without relevance.
    """

    deepest: int = 5
    units: int = 2000
    step: int = 100
    rates: tuple[float, float] = (1e-5, 1.0)
    norms: tuple[float, float] = (0.25, 8.0)
    dropouts: tuple[float, float] = (0.0, 0.8)
    batch: int = 128
    updates: int = 100_000
    momentum: tuple[float, float] = (0.5, 0.9)
    warm: int = 10_000
    conditional: bool = True

    def __post_init__(self):
        if self.step < 1 or self.units < self.step or self.units % self.step:
            raise ValueError(
                f"units must be a multiple of step; got {self.units} and {self.step}"
            )
        if (
            min(self.deepest, self.batch, self.updates, self.warm) < 1
            or 2 * self.warm > self.updates
        ):
            raise ValueError(
                "expected deepest, batch, updates and warm of at least 1, and 2 * warm <= updates; "
                f"got {self.deepest}, {self.batch}, {self.updates} and {self.warm}"
            )

    @property
    def space(self) -> Space:
        """Depth, input settings, then units, rates, norms and dropouts: 4 + 4 · deepest columns."""
        bounds = {"rate": self.rates, "norm": self.norms, "dropout": self.dropouts}

        def real(name: str, when: When = None) -> Parameter:
            low, high = bounds[name]
            return Float(low, high, log=name == "rate", when=when)

        def units(name: str, when: When = None) -> Parameter:
            return Int(1, self.units // self.step, when=when)

        parameters = {f"{name}_0": real(name) for name in bounds}
        for name, make in {"units": units, **dict.fromkeys(bounds, real)}.items():
            for i in range(1, self.deepest + 1):
                parameters[f"{name}_{i}"] = make(
                    name, {"depth": (">=", i)} if self.conditional else None
                )
        return Space(depth=Int(0, self.deepest), **parameters)

    def shape(self, inputs: int, classes: int) -> nets.Shape:
        """What all these networks are padded to."""
        return nets.Shape(
            inputs, classes, depth=self.deepest, width=self.units, activations=("relu",)
        )

    def settings(self, rows: int) -> nets.Settings:
        """Return the training settings for a number of rows: cross-entropy, error at the end."""
        epochs = -(-self.updates // -(-rows // self.batch))
        low, high = self.momentum
        return nets.Settings(
            loss="cross_entropy",
            metrics=("error",),
            optimizer="sgd",
            batch=self.batch,
            max_epochs=epochs,
            checkpoints=epochs,
            schedule=nets.inverse_time(float(self.warm)),
            momentum_schedule=nets.warmup(low / high, self.warm),
            dropout_schedule=nets.zero_at_end(self.warm),
        )

    def design(self, u: Array) -> tuple[nets.Architecture, nets.Hyperparameters]:
        """Return the network at a row u (d,) and its hyperparameters; traceable.

        Layers of weights are counted from the inputs, so the output layer of a network of depth n
        has the n-th rate and norm.
        """
        values = self.space.values(u)

        def each(name, first):
            return jnp.stack(
                [values[f"{name}_{i}"] for i in range(first, self.deepest + 1)]
            )

        def of_weights(name):
            found = each(name, 0)
            return jnp.append(found[:-1], found[values["depth"]])

        exists = jnp.arange(self.deepest) < values["depth"]
        units = jnp.where(exists, self.step * each("units", 1), 0).astype(jnp.int32)
        hyper = nets.Hyperparameters(
            learning_rate=of_weights("rate"),
            momentum=jnp.full((), self.momentum[1]),
            dropout=each("dropout", 1),
            input_dropout=values["dropout_0"],
            max_norm=of_weights("norm"),
        )
        return nets.Architecture(units, jnp.zeros((), jnp.int32)), hyper


def raiders(*, conditional: bool = True) -> Layered:
    """Return the search space of the paper, for 50,000 rows."""
    return Layered(conditional=conditional)


def small(*, conditional: bool = True) -> Layered:
    """Return a space for 5000 rows: a tenth of the units and a hundredth of the updates."""
    return Layered(units=200, step=10, updates=1000, warm=100, conditional=conditional)


def log_error(found: nets.Result, rows: int, classes: int) -> Array:
    """Return the log of the final validation error, which the paper minimizes on MNIST.

    A diverged network gets the error of guessing, and one without errors half a mistake.
    """
    error = jnp.asarray(found.final)[..., 0]
    error = jnp.where(jnp.isnan(error), 1.0 - 1.0 / classes, error)
    return jnp.log(jnp.maximum(error, 0.5 / rows))


def train(
    keys: Array, layered: Layered, u: Array, data: nets.Examples, classes: int
) -> nets.Result:
    """Train the networks at rows u (k, d), grouped by size, one key each; not jittable."""
    chosen, hyper = _designs(layered, u)
    shape, settings = (
        layered.shape(data.x.shape[1], classes),
        layered.settings(len(data.x)),
    )
    return nets.train_many(keys, shape, settings, chosen, hyper, data)


@jax.jit
def _designs(layered: Layered, u: Array):
    return jax.vmap(layered.design)(u)


def objective(
    layered: Layered, data: nets.Examples, classes: int
) -> Callable[[Array, Array], Array]:
    """Return the traceable objective(key, u) -> `log_error`, one program for all networks."""
    if data.valid_y is None:
        raise ValueError(
            "the objective is measured on validation rows: examples(x, y, valid_x, valid_y)"
        )
    shape, settings, rows = (
        layered.shape(data.x.shape[1], classes),
        layered.settings(len(data.x)),
        len(data.valid_y),
    )

    def value(key: Array, u: Array) -> Array:
        return log_error(
            nets.train(key, shape, settings, *layered.design(u), data), rows, classes
        ).astype(u.dtype)

    return value


def wrong(
    layered: Layered,
    found: nets.Result,
    u: Array,
    x: np.ndarray,
    y: np.ndarray,
    classes: int,
) -> float:
    """Return the share of rows x (n, inputs) that a trained network classifies wrongly."""
    shape, settings = layered.shape(x.shape[1], classes), layered.settings(len(x))
    return float(
        _evaluate(
            shape,
            settings,
            found.params,
            layered.design(u)[0],
            jnp.asarray(x),
            jnp.asarray(y),
        )[0]
    )


_evaluate = jax.jit(nets.evaluate)
