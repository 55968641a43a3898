"""Networks of unknown depth with settings of their own for every layer: what Raiders searches (R-S4, R-E2).

A network has 0 to 5 hidden layers of rectified units. Each hidden layer has a number of units; each layer of weights a
learning rate and a bound on the length of a unit's incoming weights; the inputs and each hidden layer a chance of being
dropped. What belongs to layers that a network does not have is inactive. The columns are those of `problems.raiders`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas import nets
from bonas.spaces import Float, Int, Space
from bonas.spaces.conditions import When
from bonas.spaces.parameters import Parameter


@jax.tree_util.register_static
@dataclass(frozen=True)
class Layered:
    """What is searched, and how networks are trained; the defaults are Raiders' (R-S4). Static.

    deepest: most hidden layers. units: most units of one, in steps of `step`.
    rates, norms, dropouts: of each layer; rates on a logarithmic scale.
    batch, updates: rows an update, and updates of a run.
    momentum: at the start and at the end of its rise. warm: the updates in which it rises, in which the learning rate falls
        to a half (and to a third in as many more), and at the end of a run those that drop nothing.
    conditional: without, every parameter is active always: the same networks for a model that knows nothing of relevance.
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
            raise ValueError(f"units is a multiple of step; got {self.units} and {self.step}")
        if min(self.deepest, self.batch, self.updates, self.warm) < 1 or 2 * self.warm > self.updates:
            raise ValueError(
                "deepest, batch, updates and warm are at least 1, and the two ends of a run at most all of it; "
                f"got {self.deepest}, {self.batch}, {self.updates} and {self.warm}"
            )

    @property
    def space(self) -> Space:
        """Depth, what concerns the inputs, then units, rates, norms and dropouts of the layers: 4 + 4 · deepest columns."""
        bounds = {"rate": self.rates, "norm": self.norms, "dropout": self.dropouts}

        def real(name: str, when: When = None) -> Parameter:
            low, high = bounds[name]
            return Float(low, high, log=name == "rate", when=when)

        def units(name: str, when: When = None) -> Parameter:
            return Int(1, self.units // self.step, when=when)

        parameters = {f"{name}_0": real(name) for name in bounds}
        for name, make in {"units": units, **dict.fromkeys(bounds, real)}.items():
            for i in range(1, self.deepest + 1):
                parameters[f"{name}_{i}"] = make(name, {"depth": (">=", i)} if self.conditional else None)
        return Space(depth=Int(0, self.deepest), **parameters)

    def shape(self, inputs: int, classes: int) -> nets.Shape:
        """What all these networks are padded to."""
        return nets.Shape(inputs, classes, depth=self.deepest, width=self.units, activations=("relu",))

    def settings(self, rows: int) -> nets.Settings:
        """How to train on so many rows: cross-entropy, the error measured at the end, and the whole of the last epoch."""
        epochs = -(-self.updates // -(-rows // self.batch))
        low, high = self.momentum
        return nets.Settings(
            loss="cross_entropy",
            metrics=("error",),
            optimiser="sgd",
            batch=self.batch,
            max_epochs=epochs,
            checkpoints=epochs,
            schedule=nets.inverse_time(float(self.warm)),
            momentum_schedule=nets.rising(low / high, self.warm),
            dropout_schedule=nets.without_last(self.warm),
        )

    def design(self, u: Array) -> tuple[nets.Architecture, nets.Hyper]:
        """The network at a row u (d,), and its training; traceable.

        Layers of weights are counted from the inputs, so the output of a network of depth n has the n-th rate and norm.
        """
        values = self.space.values(u)

        def each(name, first):
            return jnp.stack([values[f"{name}_{i}"] for i in range(first, self.deepest + 1)])

        def of_weights(name):
            found = each(name, 0)
            return jnp.append(found[:-1], found[values["depth"]])

        there = jnp.arange(self.deepest) < values["depth"]
        units = jnp.where(there, self.step * each("units", 1), 0).astype(jnp.int32)
        hyper = nets.Hyper(
            learning_rate=of_weights("rate"),
            momentum=jnp.full((), self.momentum[1]),
            dropout=each("dropout", 1),
            input_dropout=values["dropout_0"],
            max_norm=of_weights("norm"),
        )
        return nets.Architecture(units, jnp.zeros((), jnp.int32)), hyper


def raiders(*, conditional: bool = True) -> Layered:
    """The search of the paper, for 50,000 rows: some 1500 s an evaluation on its GPU."""
    return Layered(conditional=conditional)


def small(*, conditional: bool = True) -> Layered:
    """The same for 5000 rows and one core: a tenth of the units, and a hundredth of the updates."""
    return Layered(units=200, step=10, updates=1000, warm=100, conditional=conditional)


def log_error(found: nets.Result, rows: int, classes: int) -> Array:
    """The logarithm of the last validation error on so many rows: what Raiders minimises on MNIST (R-E2).

    A network that diverged is given the error of guessing, and one without an error half a mistake.
    """
    error = jnp.asarray(found.final)[..., 0]
    error = jnp.where(jnp.isnan(error), 1.0 - 1.0 / classes, error)
    return jnp.log(jnp.maximum(error, 0.5 / rows))


def train(keys: Array, layered: Layered, u: Array, data: nets.Examples, classes: int) -> nets.Result:
    """The networks at rows u (k, d), trained each in a shape that suits it, one key each. Call it outside `jit`."""
    chosen, hyper = _designs(layered, u)
    shape, settings = layered.shape(data.x.shape[1], classes), layered.settings(len(data.x))
    return nets.train_many(keys, shape, settings, chosen, hyper, data)


@jax.jit
def _designs(layered: Layered, u: Array):
    return jax.vmap(layered.design)(u)


def objective(layered: Layered, data: nets.Examples, classes: int) -> Callable[[Array, Array], Array]:
    """objective(key, u) -> `log_error`: traceable, one program for all networks, for `run_many` on an accelerator."""
    if data.valid_y is None:
        raise ValueError("the objective is measured on validation rows: examples(x, y, valid_x, valid_y)")
    shape, settings, rows = layered.shape(data.x.shape[1], classes), layered.settings(len(data.x)), len(data.valid_y)

    def value(key: Array, u: Array) -> Array:
        return log_error(nets.train(key, shape, settings, *layered.design(u), data), rows, classes).astype(u.dtype)

    return value


def wrong(layered: Layered, found: nets.Result, u: Array, x: np.ndarray, y: np.ndarray, classes: int) -> float:
    """The share of rows x (n, inputs) whose class y (n,) a trained network, at the row u (d,), gets wrong."""
    shape, settings = layered.shape(x.shape[1], classes), layered.settings(len(x))
    return float(_evaluate(shape, settings, found.params, layered.design(u)[0], jnp.asarray(x), jnp.asarray(y))[0])


_evaluate = jax.jit(nets.evaluate)
