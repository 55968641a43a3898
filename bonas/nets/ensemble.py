"""Ensembles of sparse networks with averaged outputs (Wilton 2020, Section 3.3).

A design θ = (L, D, N, p) is N networks of L hidden layers of width D. Every weight and bias exists
with probability p. A design may be traced, so a whole search over designs is compiled once. Unused
members, beyond N, are not trained, which costs nothing on a CPU.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from bonas.nets.epoch import Run
from bonas.nets.member_data import Subsampling, all_data
from bonas.nets.mlp import Params, apply, init
from bonas.nets.settings import Examples, Hyperparameters, Settings, check
from bonas.nets.shapes import Architecture, Shape, check_positive_integer
from bonas.nets.trainer import DIVERGED, fit, init_network

# Smallest plausible ratio of the standard deviations of predictions and targets; the largest is its
# inverse.
MIN_SPREAD = 0.1

# Numbers folded into the key of a member, one for each use of randomness.
_FOR_DATA, _FOR_TRAINING, _FOR_START = range(3)


class Design(NamedTuple):
    """Design θ = (L, D, N, p) of an ensemble; every field may be traced."""

    depth: ArrayLike  # () int: L hidden layers, at least 1
    width: ArrayLike  # () int: D units in each
    members: ArrayLike  # () int: N networks
    density: ArrayLike  # () p: probability that a weight or bias exists


class Ensemble(NamedTuple):
    """A trained ensemble, as a pytree for `jit`, `vmap` and `lax.scan`."""

    shape: Shape  # static
    subsampling: Subsampling  # static
    plan: Any  # pytree shared by the members; see Subsampling.plan
    architecture: Architecture  # shared by all members
    params: Params  # (capacity, ...) zero where a weight is missing
    # (capacity,) int: region that each member predicts in; see Subsampling.group
    group: Array
    included: Array  # (capacity,) bool: members in the average
    # (capacity,) bool: included although its predictions have no plausible spread, because this
    # holds for every member of its group; see `has_plausible_spread`
    relaxed: Array
    status: Array  # (capacity,) int: how training ended, a position in nets.STATUSES
    epochs: Array  # (capacity,) int: epochs trained; 0 for unused members
    loss: Array  # (capacity,) training loss of the last epoch; NaN for unused members


class EnsemblePrediction(NamedTuple):
    """Prediction of an ensemble at m points."""

    mean: Array  # (m, outputs) average of the members (Wilton, eq. 4)
    std: Array  # (m, outputs) standard deviation of the members


class Moments(NamedTuple):
    """Variance and correlation of the predictions of members over training sets."""

    variance: Array  # (...) variance s² of one member
    correlation: Array  # (...) correlation rho of two members


class _Member(NamedTuple):
    """One trained network."""

    params: Params
    group: Array  # () int
    status: Array  # () int
    epochs: Array  # () int
    loss: Array  # ()
    finite: Array  # () bool: training did not diverge
    # () bool: finite, and predictions vary about as much as the targets
    plausible: Array


def train_ensemble(
    key: PRNGKeyArray,
    shape: Shape,
    settings: Settings,
    design: Design,
    hyper: Hyperparameters,
    data: Examples,
    *,
    capacity: int,
    subsampling: Subsampling = all_data,
    lanes: int = 1,
) -> Ensemble:
    """Train an ensemble of sparse networks; a pure function for `jit`, `vmap` and `lax.scan`.

    Member i depends only on the key and on i, so a larger ensemble contains the smaller one, except
    with `member_data.regions`. Hidden units have the first activation of the shape. Validation rows
    are used only for patience.

    Args:
        key: Random key.
        shape: Shape that holds the members.
        settings: Settings of training.
        design: Depth, width, number of members and density.
        hyper: Hyperparameters of all members.
        data: Training rows, and validation rows if `settings` have patience.
        capacity: Largest number of members, which sets the shape of the result.
        subsampling: Training data of each member; see `bonas.nets.member_data`.
        lanes: Members trained at once by `vmap`. One is fastest on a CPU.
    """
    _check(shape, settings, design, hyper, data, capacity, lanes)
    if settings.patience is None:
        data = data._replace(valid_x=None, valid_y=None)
    members = jnp.asarray(design.members, jnp.int32)
    network = _architecture(shape, design)
    plan = subsampling.plan(data, members)
    epochs = settings.max_epochs if hyper.epochs is None else hyper.epochs

    def train_member(number: Array) -> _Member:
        member_key = jax.random.fold_in(key, number)
        own = subsampling.member(
            jax.random.fold_in(member_key, _FOR_DATA), number, plan, data
        )
        limit = jnp.where(number < members, jnp.asarray(epochs, jnp.int32), 0)
        train_key = jax.random.fold_in(member_key, _FOR_TRAINING)
        mask, params = _init_member(
            train_key, shape, network, settings.initial, data.x.dtype, own.columns
        )
        run = Run(
            key=train_key,
            shape=shape,
            settings=settings,
            architecture=network,
            hyper=hyper._replace(epochs=limit),
            data=data._replace(weight=own.weight),
            mask=mask,
        )
        result = fit(run, params)
        outputs = apply(shape, result.params, data.x, network)
        loss = result.losses[jnp.maximum(result.epochs - 1, 0)]
        finite = jnp.isfinite(outputs).all() & (result.status != DIVERGED)
        plausible = finite & has_plausible_spread(outputs, data.y, own.weight)
        return _Member(
            result.params,
            own.group,
            result.status,
            result.epochs,
            loss,
            finite,
            plausible,
        )

    numbers = jnp.arange(capacity, dtype=jnp.int32)
    trained = jax.lax.map(
        train_member, numbers, batch_size=lanes if lanes > 1 else None
    )
    used = jnp.arange(capacity) < members
    plausible = used & trained.plausible
    same_group = trained.group[:, None] == trained.group[None, :]
    relaxed = used & trained.finite & ~(same_group & plausible[None, :]).any(axis=1)
    return Ensemble(
        shape=shape,
        subsampling=subsampling,
        plan=plan,
        architecture=network,
        params=trained.params,
        group=trained.group,
        included=plausible | relaxed,
        relaxed=relaxed,
        status=trained.status,
        epochs=trained.epochs,
        loss=trained.loss,
    )


def has_plausible_spread(
    outputs: Float[Array, "n c"],
    targets: Float[Array, "n c"],
    weight: Float[Array, " n"] | None = None,
) -> Bool[Array, ""]:
    """Return whether predictions and targets vary by about the same amount over training rows.

    A spread is plausible if the standard deviation of the predictions is between a tenth and ten
    times that of the targets, or if the targets do not vary. A network without connection to its
    inputs predicts a constant and fails. Wilton removes networks that lost too many weights "on the
    basis of variability in predictions", but does not state the rule. The limit of a tenth follows
    from least squares: the standard deviation of fitted values is R times that of the targets, so
    R = 0.1 explains one percent of the variance.

    Args:
        outputs: Predictions for the training rows.
        targets: Targets of the training rows.
        weight: Weight of each row; equal weights if None.
    """
    weight = jnp.ones(len(outputs), outputs.dtype) if weight is None else weight
    predicted = _weighted_std(outputs, weight)
    observed = _weighted_std(targets, weight)
    in_range = (predicted >= MIN_SPREAD * observed) & (
        predicted * MIN_SPREAD <= observed
    )
    return (observed == 0.0) | in_range


def _weighted_std(values: Array, weight: Array) -> Array:
    """Return the weighted standard deviation () of rows (n, c), over all outputs together."""
    share = (weight / jnp.sum(weight))[:, None]
    return jnp.sqrt(
        jnp.sum(share * (values - jnp.sum(share * values, axis=0)[None, :]) ** 2)
    )


def member_outputs(
    ensemble: Ensemble, x: Float[Array, "m inputs"]
) -> Float[Array, "capacity m outputs"]:
    """Compute the outputs of every member, including those excluded from the average."""

    def outputs(params: Params) -> Array:
        return apply(ensemble.shape, params, x, ensemble.architecture)

    return jax.vmap(outputs)(ensemble.params)


def predict(ensemble: Ensemble, x: Float[Array, "m inputs"]) -> EnsemblePrediction:
    """Predict the mean and standard deviation over the included members; NaN without any.

    With regions, only the members of a point's region predict there, unless all of them diverged.
    """
    outputs = member_outputs(ensemble, x)
    group = ensemble.subsampling.group(ensemble.plan, x)
    used = ensemble.included[:, None] & (ensemble.group[:, None] == group[None, :])
    # If all members of a group diverged, the other groups predict in its region.
    orphaned = ~used.any(axis=0)[None, :]
    used = (used | (ensemble.included[:, None] & orphaned))[:, :, None]
    n = jnp.sum(used, axis=0).astype(outputs.dtype)
    mean = jnp.sum(jnp.where(used, outputs, 0.0), axis=0) / n
    deviation = jnp.where(used, outputs - mean[None], 0.0)
    return EnsemblePrediction(mean, jnp.sqrt(jnp.sum(deviation**2, axis=0) / n))


def variance_of_mean(moments: Moments, members: ArrayLike) -> Array:
    """Return the variance rho s² + s² (1 − rho)/N of the average of N members (Wilton, eq. 5).

    Its limit for large N is rho s². Averaging does not change the bias, so an ensemble is better
    than the average member, but not necessarily better than every member.
    """
    variance, correlation = moments
    return correlation * variance + variance * (1.0 - correlation) / members


def estimate_moments(outputs: Float[Array, "repeats members *points"]) -> Moments:
    """Estimate variance and correlation of members from repeated training on new training sets.

    s² is the average variance of a member over repeats, and rho s² the average covariance of two
    members; both estimates are unbiased.

    Args:
        outputs: Predictions of every member after every repeat; at least 2 of each.
    """
    if outputs.ndim < 2 or outputs.shape[0] < 2 or outputs.shape[1] < 2:
        raise ValueError(
            "outputs must have shape (repeats, members, ...) with at least 2 repeats and "
            f"2 members; got shape {outputs.shape}"
        )
    n = outputs.shape[1]
    variance = jnp.var(outputs, axis=0, ddof=1).mean(axis=0)
    variance_of_sum = jnp.var(outputs.sum(axis=1), axis=0, ddof=1)
    return Moments(variance, (variance_of_sum / n - variance) / ((n - 1) * variance))


def _architecture(shape: Shape, design: Design) -> Architecture:
    """Return the architecture of every member."""
    width = jnp.asarray(design.width, jnp.int32)
    widths = jnp.where(jnp.arange(shape.depth) < design.depth, width, 0)
    return Architecture(
        widths, jnp.zeros((), jnp.int32), jnp.asarray(design.density, jnp.float32)
    )


def _init_member(
    key: Array,
    shape: Shape,
    network: Architecture,
    initial: str,
    dtype: Any,
    columns: Array,
) -> tuple[Params, Params]:
    """Draw mask and initial parameters of a member, without weights of inputs it does not use."""
    mask, _ = init_network(key, shape, network, initial, dtype)
    mask["first"]["kernel"] = mask["first"]["kernel"] & columns[:, None]
    start_key = jax.random.fold_in(key, _FOR_START)
    return mask, init(start_key, shape, network, mask, initial, dtype)


def _check(
    shape: Shape,
    settings: Settings,
    design: Design,
    hyper: Hyperparameters,
    data: Examples,
    capacity: int,
    lanes: int,
) -> None:
    check(shape, settings, hyper, data)
    if data.y.ndim != 2:
        raise ValueError(
            f"expected targets of shape (n, {shape.outputs}), because an ensemble averages outputs;"
            f" got labels of shape {data.y.shape}"
        )
    check_positive_integer("capacity", capacity)
    check_positive_integer("lanes", lanes)
    limits: dict[str, tuple[float, float]] = {
        "depth": (1, shape.depth),
        "width": (1, shape.width),
        "members": (1, capacity),
        "density": (0.0, 1.0),
    }
    for name, value in design._asdict().items():
        if jnp.shape(value) != ():
            raise ValueError(
                "expected scalar depth, width, members and density; "
                f"got {name} of shape {jnp.shape(value)}"
            )
        low, high = limits[name]
        if (
            not isinstance(value, jax.core.Tracer)
            and not low <= np.asarray(value) <= high
        ):
            raise ValueError(f"{name} must be between {low} and {high}; got {value}")
