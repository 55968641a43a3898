"""Wilton's problem: how many sparse networks, how deep, how wide and how dense, make the best ensemble (W-D4, W-E1, W-E2).

An `Experiment` says what is searched and on which data, `objective` what is minimised, and `search` how Wilton searched:
random search over an expected improvement that is averaged over slice samples of the hyperparameters.

Inputs and targets are left as they are drawn. Wilton does not say; with PyTorch's first weights and Adadelta's steps of its
own size the raw numbers are learned well, while his tolerance, 1e-4 between mean squared errors in the units of the targets,
would stop every network at the least number of epochs were the targets scaled to variance 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from bonas import gp, nets
from bonas.acquire import Acquisition, Outlook, log_ei, uniform
from bonas.data import Dataset, dataset, standardise
from bonas.nets.ensemble import Design, Ensemble, predict, train_ensemble
from bonas.nets.views import Views, everything
from bonas.problems import examples, synthetic
from bonas.search import Search, bayes
from bonas.spaces import Float, Int, Space
from bonas.surrogates import Surrogate
from bonas.surrogates import gp as gp_surrogate

# Candidates scored at once: 5000 hyperparameter samples of twenty rows then take some tens of megabytes.
_AT_ONCE = 50


@jax.tree_util.register_static
@dataclass(frozen=True)
class Experiment:
    """One of Wilton's two. Static: it may be passed to any jitted function.

    draw: (key, n=) -> examples of the data; truth: their mean, a function of x (n,); low, high: the range of x.
    rows: training rows, as stated. The size of the test set is not: as many.
    depth, width, members: the most of each; p is in [0, 1].
    candidates: random designs an iteration. published: the best one, (L, D, N, p), and after how many iterations.
    """

    name: str
    draw: Callable[..., examples.Examples]
    truth: Callable[[np.ndarray], np.ndarray]
    low: float
    high: float
    rows: int
    depth: int
    width: int
    members: int
    candidates: int
    published: tuple[int, int, int, float]
    iterations: int
    jumps: tuple[float, ...] = ()  # where the truth is not continuous
    max_epochs: int = 5000
    min_epochs: int = 1000

    @property
    def space(self) -> Space:
        """θ = (L, D, N, p), uniform within the experiment's bounds (W-X10)."""
        return Space(depth=Int(1, self.depth), width=Int(1, self.width), members=Int(1, self.members), density=Float(0.0, 1.0))

    @property
    def shape(self) -> nets.Shape:
        """ReLU in hidden layers, a linear output; all designs are padded to this and share one program."""
        return nets.Shape(1, 1, self.depth, self.width, activations=("relu",))

    @property
    def settings(self) -> nets.Settings:
        """Adadelta with PyTorch's settings (rate 1, rho 0.9, eps 1e-6) and first weights, mean squared error, full batches.

        As many epochs as stated: at least `min_epochs`, and until consecutive losses are within 1e-4.
        """
        return nets.Settings(
            optimiser="adadelta",
            batch=None,
            max_epochs=self.max_epochs,
            min_epochs=min(self.min_epochs, self.max_epochs),
            tolerance=1e-4,
            initial="uniform",
        )

    def data(self, key: Array, *, test: int | None = None) -> nets.Examples:
        """Training rows, and test rows (by default as many) as the rows to validate on. Outside `jit`."""
        train_key, test_key = jax.random.split(key)
        train, held = self.draw(train_key, n=self.rows), self.draw(test_key, n=test or self.rows)
        return nets.examples(train.x, train.y, held.x, held.y)

    def design(self, u: Array) -> Design:
        """The design at one row u (4,) of the space; traceable."""
        return Design(**self.space.values(u))


PIECES = Experiment(
    name="pieces",
    draw=synthetic.wilton_pieces,
    truth=synthetic.pieces,
    low=synthetic.WILTON_RANGE[0],
    high=synthetic.WILTON_RANGE[1],
    rows=150,
    depth=5,
    width=15,
    members=30,
    candidates=2000,
    published=(5, 15, 23, 0.949),
    iterations=13,
    jumps=(-10.0, -8.0, 2.0),
)
CUBIC = Experiment(
    name="cubic",
    draw=synthetic.wilton_cubic,
    truth=synthetic.cubic,
    low=0.0,
    high=1.0,
    rows=100,
    depth=10,
    width=10,
    members=30,
    candidates=1000,
    published=(7, 7, 30, 0.73),
    iterations=3,
    max_epochs=2000,  # "a form of regularisation"
)
EXPERIMENTS = (PIECES, CUBIC)


@partial(jax.jit, static_argnames=("lanes",))
def train(
    experiment: Experiment, key: Array, design: Design, data: nets.Examples, views: Views = everything, lanes: int = 1
) -> Ensemble:
    """The ensemble of a design, trained on the training rows; see `nets.train_ensemble`."""
    rows = data._replace(valid_x=None, valid_y=None)
    return train_ensemble(
        key,
        experiment.shape,
        experiment.settings,
        design,
        nets.Hyper(),
        rows,
        most=experiment.members,
        views=views,
        lanes=lanes,
    )


def loss_of(ensemble: Ensemble, data: nets.Examples) -> Array:
    """The Euclidean distance between predictions and targets of the test rows: √n' times a root mean square (W-X7)."""
    x, y = jnp.asarray(data.valid_x), jnp.asarray(data.valid_y)
    return jnp.sqrt(jnp.sum((predict(ensemble, x).mean - y) ** 2))


def objective(experiment: Experiment, data: nets.Examples, *, views: Views = everything) -> Callable[[Array, Array], Array]:
    """objective(key, u (4,)) -> the test loss of the ensemble at u, trained from the key; traceable.

    As in Wilton, the search sees the test rows: to compare designs, score them on others.
    """

    def value(key: Array, u: Array) -> Array:
        return loss_of(train(experiment, key, experiment.design(u), data, views), data)

    return value


def _score(key: Array, outlook: Outlook, memory):
    best = jnp.min(jnp.where(outlook.data.mask & ~outlook.pending[:, None], outlook.data.y, jnp.inf))

    def one(x):
        return log_ei(*outlook.predict(x[None]), best)[0]

    return lambda x: jax.lax.map(one, x, batch_size=_AT_ONCE), memory


# log of eq. 11: expected improvement over the least loss observed (W-X3), averaged over the samples of the hyperparameters.
integrated_ei = Acquisition(_score)


def surrogate(samples: int = 5000) -> Surrogate:
    """Matérn 5/2, the mean of eq. 7, six Half-Cauchy(1) priors (eq. 14) and slice samples of what they are about.

    It sees designs in the unit cube and standardised losses; Wilton's has both in their own units, where Half-Cauchy(1) says
    something else. Sampling goes on from the last iteration's, so two sweeps are burnt.
    """
    kernel = gp.matern52(gp.priors.half_cauchy)
    return gp_surrogate(kernel, noise=gp.priors.half_cauchy_noise, mean=gp.wilton, infer="slice", samples=samples)


@cache
def search(experiment: Experiment, *, samples: int = 5000, initial: int = 5) -> Search:
    """Wilton's search (W-A3): the best of uniform random candidates by `integrated_ei`.

    samples: of the hyperparameters; 5000 are his. initial: not stated; points of a shifted Sobol sequence.
    """
    return bayes(
        experiment.space,
        surrogate=surrogate(samples),
        acquisition=integrated_ei,
        maximiser=uniform(experiment.space, candidates=experiment.candidates),
        initial=initial,
        output="plain",
    )


def recommend(key: Array, x: ArrayLike, y: ArrayLike, *, samples: int = 5000) -> int:
    """Which of the designs tried, rows x (n, 4) with losses y (n,), has the least posterior mean.

    Wilton takes the least loss, which may have been luck. A NaN is a failed evaluation, and never recommended.
    """
    y = np.asarray(y)
    fine = np.isfinite(y)
    if not fine.any():
        raise ValueError("no evaluation has succeeded: there is nothing to recommend")
    data = dataset(x, np.where(fine, y, 0.0))._replace(mask=jnp.asarray(fine)[:, None])
    means = _posterior_means(key, standardise(data)[0], samples)
    return int(np.argmin(np.where(fine, means, np.inf)))


@partial(jax.jit, static_argnames=("samples",))
def _posterior_means(key: Array, data: Dataset, samples: int) -> Array:
    model = surrogate(samples)
    state, _ = model.fit(key, data, model.init(len(data.x), data.x.shape[1], 1))
    return model.predict(state, data.x).mean.mean(axis=0)
