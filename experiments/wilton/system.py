"""Wilton's system: ensembles of sparse networks, the objective, and his search.

An `Experiment` defines the space and the data, `objective` the function to minimize, and `search`
is Wilton's: random candidates scored by expected improvement averaged over slice samples of the
hyperparameters.

Inputs and targets are not scaled; Wilton does not say whether his are. With PyTorch's initial
weights and Adadelta the raw numbers are learned well, while his tolerance, 1e-4 between mean
squared errors in the units of the targets, would stop every network at the minimum number of
epochs if the targets were scaled to variance 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from bonas import gp, nets
from bonas.acquire import Acquisition, Context, Score, log_ei, random_candidates
from bonas.checked_data import dataset
from bonas.data import Dataset, standardize
from bonas.nets.ensemble import Design, Ensemble, predict, train_ensemble
from bonas.nets.member_data import Subsampling, all_data
from bonas.problems import examples, synthetic
from bonas.search import Search, bayes
from bonas.spaces import Float, Int, Space
from bonas.surrogates import Surrogate
from bonas.surrogates import gp as gp_surrogate

# Candidates scored at once: 5000 hyperparameter samples of twenty rows then take tens of megabytes.
_AT_ONCE = 50


@jax.tree_util.register_static
@dataclass(frozen=True)
class Experiment:
    """One of Wilton's two experiments.

    Attributes:
        draw: (key, n=) -> examples of the data.
        truth: Their mean, a function of x (n,).
        low, high: The range of x.
        rows: Training rows, as stated; the test set, not stated, has the same size.
        depth, width, members: The largest value of each; p is in [0, 1].
        candidates: Random designs per iteration.
        published: The best design (L, D, N, p).
        iterations: The iteration that found it.
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
    jumps: tuple[float, ...] = ()  # discontinuities of the true function
    max_epochs: int = 5000
    min_epochs: int = 1000

    @property
    def space(self) -> Space:
        """θ = (L, D, N, p), uniform within the experiment's bounds."""
        return Space(
            depth=Int(1, self.depth),
            width=Int(1, self.width),
            members=Int(1, self.members),
            density=Float(0.0, 1.0),
        )

    @property
    def shape(self) -> nets.Shape:
        """ReLU in hidden layers and a linear output; all designs are padded to this shape."""
        return nets.Shape(1, 1, self.depth, self.width, activations=("relu",))

    @property
    def settings(self) -> nets.Settings:
        """Adadelta with PyTorch's settings and initial weights, mean squared error, full batches.

        At least `min_epochs`, and until consecutive losses are within 1e-4.
        """
        return nets.Settings(
            optimizer="adadelta",
            batch=None,
            max_epochs=self.max_epochs,
            min_epochs=min(self.min_epochs, self.max_epochs),
            tolerance=1e-4,
            initial="uniform",
        )

    def data(self, key: Array, *, test: int | None = None) -> nets.Examples:
        """Return training rows, and test rows as the validation rows; not jittable."""
        train_key, test_key = jax.random.split(key)
        train, held = (
            self.draw(train_key, n=self.rows),
            self.draw(test_key, n=test or self.rows),
        )
        return nets.examples(train.x, train.y, held.x, held.y)

    def design(self, u: Array) -> Design:
        """Return the design at one row u (4,) of the space; traceable."""
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
    max_epochs=2000,  # "a form of regularization"
)
EXPERIMENTS = (PIECES, CUBIC)


@partial(jax.jit, static_argnames=("lanes",))
def train(
    experiment: Experiment,
    key: Array,
    design: Design,
    data: nets.Examples,
    subsampling: Subsampling = all_data,
    lanes: int = 1,
) -> Ensemble:
    """Train the ensemble of a design on the training rows; see `nets.train_ensemble`."""
    rows = data._replace(valid_x=None, valid_y=None)
    return train_ensemble(
        key,
        experiment.shape,
        experiment.settings,
        design,
        nets.Hyperparameters(),
        rows,
        capacity=experiment.members,
        subsampling=subsampling,
        lanes=lanes,
    )


def loss_of(ensemble: Ensemble, data: nets.Examples) -> Array:
    """Return the Euclidean distance between predictions and targets, √n' times the RMSE."""
    x, y = jnp.asarray(data.valid_x), jnp.asarray(data.valid_y)
    return jnp.sqrt(jnp.sum((predict(ensemble, x).mean - y) ** 2))


def objective(
    experiment: Experiment,
    data: nets.Examples,
    *,
    subsampling: Subsampling = all_data,
) -> Callable[[Array, Array], Array]:
    """Return the traceable objective(key, u (4,)) -> test loss of the ensemble at u.

    As in Wilton, the search sees the test rows; score designs on others to compare them.
    """

    def value(key: Array, u: Array) -> Array:
        return loss_of(
            train(experiment, key, experiment.design(u), data, subsampling), data
        )

    return value


@dataclass(frozen=True)
class IntegratedEI(Acquisition):
    """log of Wilton 2020, eq. 11: expected improvement over the least loss observed.

    It is averaged over the hyperparameter samples, some points at a time.
    """

    def score(self, key: Array, context: Context, memory: Any) -> tuple[Score, Any]:
        observed = context.data.mask & ~context.pending[:, None]
        best = jnp.min(jnp.where(observed, context.data.y, jnp.inf))

        def one(x: Array) -> Array:
            return log_ei(*context.predict(x[None]), best)[0]

        return lambda x: jax.lax.map(one, x, batch_size=_AT_ONCE), memory


def surrogate(samples: int = 5000) -> Surrogate:
    """Return a GP with Matérn 5/2, the mean of eq. 7 and Half-Cauchy(1) priors (eq. 14).

    Hyperparameters are slice-sampled. Designs are in the unit cube and losses standardized;
    Wilton's are in their own units, where Half-Cauchy(1) means something else. Sampling continues
    from the last iteration, so two sweeps of burn-in suffice.
    """
    kernel = gp.matern52(gp.priors.half_cauchy)
    return gp_surrogate(
        kernel,
        noise=gp.priors.half_cauchy_noise,
        mean=gp.wilton,
        infer="slice",
        samples=samples,
    )


@cache
def search(experiment: Experiment, *, samples: int = 5000, initial: int = 5) -> Search:
    """Return Wilton's search: the best of uniform random candidates by `IntegratedEI`.

    Args:
        samples: Hyperparameter samples; Wilton has 5000.
        initial: Initial points of a shifted Sobol sequence; not stated.
    """
    return bayes(
        experiment.space,
        surrogate=surrogate(samples),
        acquisition=IntegratedEI(),
        maximizer=random_candidates(experiment.space, candidates=experiment.candidates),
        initial=initial,
        output="plain",
    )


def recommend(key: Array, x: ArrayLike, y: ArrayLike, *, samples: int = 5000) -> int:
    """Return the position of the design with the lowest posterior mean.

    Wilton takes the lowest loss, which may be luck. A NaN is a failed evaluation and is never
    recommended.
    """
    y = np.asarray(y)
    fine = np.isfinite(y)
    if not fine.any():
        raise ValueError(
            "expected at least one successful evaluation to recommend; got none"
        )
    data = dataset(x, np.where(fine, y, 0.0))._replace(mask=jnp.asarray(fine)[:, None])
    means = _posterior_means(key, standardize(data)[0], samples)
    return int(np.argmin(np.where(fine, means, np.inf)))


@partial(jax.jit, static_argnames=("samples",))
def _posterior_means(key: Array, data: Dataset, samples: int) -> Array:
    model = surrogate(samples)
    state, _ = model.fit(key, data, model.init(len(data.x), data.x.shape[1], 1))
    return model.predict(state, data.x).mean.mean(axis=0)
