"""Ensembles of sparse networks, whose outputs are averaged: Wilton 2020, Section 3.3 (W-D3, W-D4).

A design θ = (L, D, N, p) is N networks of L hidden layers of width D, in each of which every weight and every bias exists
with probability p. All of it may be traced, so a whole search over designs is compiled once: members beyond N are trained
for no epoch, and on a CPU they cost nothing.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from bonas.nets.epoch import Run
from bonas.nets.mlp import Architecture, Params, Shape, apply, init
from bonas.nets.settings import Examples, Hyper, Settings, check
from bonas.nets.train import DIVERGED, begin, fit
from bonas.nets.views import Views, everything

# A member whose predictions vary by less than this share of what the targets do, or by more than its inverse, is left out.
SHARE = 0.1

# What the key of a member is folded with for each of its uses.
_VIEW, _TRAIN, _START = range(3)


class Design(NamedTuple):
    """Wilton's θ = (L, D, N, p); all of it may be traced."""

    depth: ArrayLike  # () int: L hidden layers, at least 1
    width: ArrayLike  # () int: D units in each
    members: ArrayLike  # () int: N networks
    density: ArrayLike  # () p, the chance that a weight or a bias exists


class Ensemble(NamedTuple):
    """Trained networks, with room for more. Shape and views are static, so an ensemble passes through jit, vmap and scan."""

    shape: Shape
    views: Views
    plan: Array | tuple  # what the views share
    architecture: Architecture  # that of every member
    params: Params  # (most, ...) zero where a weight was lost
    group: Array  # (most,) int: where each member answers; 0 but for pieces
    counted: Array  # (most,) bool: the members that are averaged
    relaxed: Array  # (most,) bool: those that count only because none of their group passed `sound`
    status: Array  # (most,) int: how training ended, a position in nets.STATUSES
    epochs: Array  # (most,) int: epochs trained; 0 for members that are not there
    loss: Array  # (most,) training loss of the last epoch; NaN for members that are not there


class Combined(NamedTuple):
    """What an ensemble says of points."""

    mean: Array  # (m, outputs) average of the members (Wilton, eq. 4)
    std: Array  # (m, outputs) their standard deviation around it


class Moments(NamedTuple):
    """How predictions vary from one training to the next."""

    variance: Array  # (...) s² of one member
    correlation: Array  # (...) rho of two


def train_ensemble(
    key: Array,
    shape: Shape,
    settings: Settings,
    design: Design,
    hyper: Hyper,
    data: Examples,
    *,
    most: int,
    views: Views = everything,
    lanes: int = 1,
) -> Ensemble:
    """Train an ensemble: a pure function for `jit`, `vmap` and `lax.scan`.

    The i-th member depends on the key and on i alone, so a larger ensemble holds the smaller (but for `views.pieces`). Its
    hidden units have the first activation of the shape. Validation rows are for patience alone.

    most: members that there is room for; design.members is at most this.
    views: what each member sees; see `bonas.nets.views`.
    lanes: members trained at once by `vmap`. One is fastest on a CPU, where no network then waits for another.
    """
    _check(shape, settings, design, hyper, data, most, lanes)
    data = data if settings.patience is not None else data._replace(valid_x=None, valid_y=None)
    members, network = jnp.asarray(design.members, jnp.int32), _architecture(shape, design)
    plan = views.plan(data, members)

    def one(number: Array) -> _Member:
        member_key = jax.random.fold_in(key, number)
        view = views.view(jax.random.fold_in(member_key, _VIEW), number, plan, data)
        seen = data._replace(weight=view.weight)
        epochs = settings.max_epochs if hyper.epochs is None else hyper.epochs
        own = hyper._replace(epochs=jnp.where(number < members, jnp.asarray(epochs, jnp.int32), 0))
        train_key = jax.random.fold_in(member_key, _TRAIN)
        mask, params = _begin(train_key, shape, network, settings.initial, data.x.dtype, view.columns)
        result = fit(Run(train_key, shape, settings, network, own, seen, mask), params)
        outputs = apply(shape, result.params, data.x, network)
        last = result.losses[jnp.maximum(result.epochs - 1, 0)]
        finite = jnp.isfinite(outputs).all() & (result.status != DIVERGED)
        fine = finite & sound(outputs, data.y, view.weight)
        return _Member(result.params, view.group, result.status, result.epochs, last, finite, fine)

    found = jax.lax.map(one, jnp.arange(most, dtype=jnp.int32), batch_size=lanes if lanes > 1 else None)
    there = jnp.arange(most) < members
    passed = there & found.fine
    relaxed = there & found.finite & ~((found.group[:, None] == found.group[None, :]) & passed[None, :]).any(axis=1)
    return Ensemble(
        shape=shape,
        views=views,
        plan=plan,
        architecture=network,
        params=found.params,
        group=found.group,
        counted=passed | relaxed,
        relaxed=relaxed,
        status=found.status,
        epochs=found.epochs,
        loss=found.loss,
    )


class _Member(NamedTuple):
    """One trained network."""

    params: Params
    group: Array  # () int
    status: Array  # () int
    epochs: Array  # () int
    loss: Array  # ()
    finite: Array  # () bool: it did not diverge
    fine: Array  # () bool: and its predictions vary as they should


def sound(outputs: Array, targets: Array, weight: Array | None = None) -> Array:
    """() bool: whether predictions (n, c) vary over training rows about as much as the targets (n, c) do.

    Wilton leaves out networks "on the basis of variability in predictions", which lost too many weights; his rule is not
    stated. This one: the standard deviation of the predictions is at least a tenth and at most ten times that of the
    targets. A network cut off from its inputs predicts a constant; and since the predictions of a least-squares fit vary by
    R times what the targets do, a tenth is a fit that explains one per cent of the variance. Both sides have the units of
    the targets, so nothing depends on how they are scaled, nor on how many other members are bad. Where the targets do not
    vary, a constant is right.
    """
    weight = jnp.ones(len(outputs), outputs.dtype) if weight is None else weight
    ours, theirs = _spread(outputs, weight), _spread(targets, weight)
    return (theirs == 0.0) | ((ours >= SHARE * theirs) & (ours * SHARE <= theirs))


def _spread(values: Array, weight: Array) -> Array:
    """The weighted standard deviation () of rows (n, c) around their mean, all outputs together."""
    share = (weight / jnp.sum(weight))[:, None]
    return jnp.sqrt(jnp.sum(share * (values - jnp.sum(share * values, axis=0)[None, :]) ** 2))


def member_outputs(ensemble: Ensemble, x: Array) -> Array:
    """Outputs (most, m, outputs) of every member for rows x (m, inputs), of those that do not count too."""
    return jax.vmap(lambda params: apply(ensemble.shape, params, x, ensemble.architecture))(ensemble.params)


def predict(ensemble: Ensemble, x: Array) -> Combined:
    """Mean and standard deviation of the members that count and answer at rows x (m, inputs); NaN where none counts."""
    outputs = member_outputs(ensemble, x)
    place = ensemble.views.group(ensemble.plan, x)
    answers = ensemble.counted[:, None] & (ensemble.group[:, None] == place[None, :])
    # a piece whose members all diverged is left to the others
    answers = (answers | (ensemble.counted[:, None] & ~answers.any(axis=0)[None, :]))[:, :, None]
    n = jnp.sum(answers, axis=0).astype(outputs.dtype)
    mean = jnp.sum(jnp.where(answers, outputs, 0.0), axis=0) / n
    around = jnp.where(answers, outputs - mean[None], 0.0)
    return Combined(mean, jnp.sqrt(jnp.sum(around**2, axis=0) / n))


def variance_of_mean(moments: Moments, members: ArrayLike) -> Array:
    """Var(ḡ) = rho s² + s² (1 − rho)/N, of the average of N members: Wilton, eq. 5.

    It falls towards rho s² and no further. The bias is that of one member, so an ensemble beats the average member, not each
    of them (W-X8).
    """
    variance, correlation = moments
    return correlation * variance + variance * (1.0 - correlation) / members


def moments_of(outputs: Array) -> Moments:
    """s² and rho from predictions (repeats, N, ...) of N >= 2 members, each repeat trained on a new training set.

    s² is the average variance of a member over repeats, rho s² the average covariance of two; both without bias.
    """
    if outputs.ndim < 2 or outputs.shape[0] < 2 or outputs.shape[1] < 2:
        raise ValueError(f"expected predictions (repeats, members, ...) with two of each at least; got {outputs.shape}")
    n = outputs.shape[1]
    variance = jnp.var(outputs, axis=0, ddof=1).mean(axis=0)
    of_sum = jnp.var(outputs.sum(axis=1), axis=0, ddof=1)
    return Moments(variance, (of_sum / n - variance) / ((n - 1) * variance))


def _architecture(shape: Shape, design: Design) -> Architecture:
    widths = jnp.where(jnp.arange(shape.depth) < design.depth, jnp.asarray(design.width, jnp.int32), 0)
    return Architecture(widths, jnp.zeros((), jnp.int32), jnp.asarray(design.density, jnp.float32))


def _begin(key: Array, shape: Shape, network: Architecture, initial: str, dtype, columns: Array) -> tuple[Params, Params]:
    """The mask of a member and what it starts from, without the weights of inputs that it does not see."""
    mask, _ = begin(key, shape, network, initial, dtype)
    mask["first"]["kernel"] = mask["first"]["kernel"] & columns[:, None]
    return mask, init(jax.random.fold_in(key, _START), shape, network, mask, initial, dtype)


def _check(shape: Shape, settings: Settings, design: Design, hyper: Hyper, data: Examples, most: int, lanes: int) -> None:
    check(shape, settings, hyper, data)
    if data.y.ndim != 2:
        raise ValueError(f"an ensemble averages outputs: expected targets (n, {shape.outputs}); got labels {data.y.shape}")
    for name, value in (("most", most), ("lanes", lanes)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}")
    limits = {"depth": (1, shape.depth), "width": (1, shape.width), "members": (1, most), "density": (0.0, 1.0)}
    for name, value in design._asdict().items():
        if jnp.shape(value) != ():
            raise ValueError(f"a design is four numbers; got {name} of shape {jnp.shape(value)}")
        low, high = limits[name]
        if not isinstance(value, jax.core.Tracer) and not low <= np.asarray(value) <= high:
            raise ValueError(f"{name} must be between {low} and {high}; got {value}")
