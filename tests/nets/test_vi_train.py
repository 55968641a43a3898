"""Training of variational networks: the exact posterior of a linear model, and going on after a
stop.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bonas import nets
from bonas.nets import vi_train
from bonas.nets.bnn_vi import VI
from bonas.nets.vi_settings import TrainingPlan, VIHyperparameters
from bonas.nets.vi_train import (
    VIRun,
    init_training,
    train_to_checkpoint,
    train_vi,
)

KEY = jax.random.key(0)
SHAPE = nets.Shape(2, 1, depth=2, width=20, activations=("relu",))
COURSE = TrainingPlan(checkpoints=(10, 30), draws=8)
CALM = VI(forward="deterministic")


def rows(n=24, seed=0, **more):
    x = np.random.default_rng(seed).normal(size=(n, 2))
    return nets.examples(
        x,
        np.sin(x[:, 0]) + 0.1 * x[:, 1],
        x[:6] + 0.1,
        np.sin(x[:6, 0] + 0.1),
        dtype="float64",
        **more,
    )


DATA = rows()


@pytest.fixture(scope="module")
def trained():
    return jax.jit(partial(train_vi, shape=SHAPE, vi=CALM, plan=COURSE))


@pytest.mark.slow
def test_a_linear_model_finds_its_posterior_and_its_bound_the_evidence():
    """Orthogonal columns make the posterior of the weights independent, so that q can be exact."""
    shape = nets.Shape(2, 1, depth=1, width=1, activations=("relu",))
    x = np.tile(
        np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]) * [0.7, 1.9],
        (3, 1),
    )
    y = x @ [0.8, -0.5] + 0.3 + 0.5 * np.random.default_rng(1).normal(size=12)
    data = nets.examples(x, y, x, y, dtype="float64")
    course, traits = (
        TrainingPlan(checkpoints=(3000, 4000), draws=2),
        VIHyperparameters(learning_rate=0.01, prior_variance=1.7, noise=0.3),
    )
    train = jax.jit(
        partial(
            train_vi,
            shape=shape,
            vi=VI(prior="fixed", forward="deterministic"),
            plan=course,
        )
    )
    q, found = train(
        KEY, architecture=nets.architecture(shape, []), hyper=traits, data=data
    )
    noise, design = (
        float(jnp.exp(q.log_noise)),
        np.concatenate([x, np.ones((12, 1))], axis=1),
    )
    precision = np.diag(design.T @ design) / noise + 1.0 / 1.7
    mean = design.T @ y / noise / precision
    np.testing.assert_allclose(
        np.append(q.mean["last"]["kernel"][:2, 0], q.mean["last"]["bias"]),
        mean,
        atol=2e-3,
    )
    spread = np.exp(
        np.append(q.log_std["last"]["kernel"][:2, 0], q.log_std["last"]["bias"])
    )
    np.testing.assert_allclose(spread, precision**-0.5, rtol=0.01)
    cov = 1.7 * design @ design.T + noise * np.eye(12)
    evidence = -0.5 * (
        y @ np.linalg.solve(cov, y) + np.linalg.slogdet(2 * np.pi * cov)[1]
    )
    assert evidence - 0.01 < 12 * found.bound[-1] <= evidence + 1e-9


@pytest.mark.slow
def test_a_network_goes_on_where_it_stopped(trained):
    run = VIRun(
        KEY,
        SHAPE,
        CALM,
        COURSE,
        nets.architecture(SHAPE, [3]),
        VIHyperparameters(),
        DATA,
    )
    on = jax.jit(train_to_checkpoint)
    state, first = on(run, init_training(run), 10)
    _, second = on(run, state, 30)
    _, found = trained(KEY, architecture=run.architecture, hyper=run.hyper, data=DATA)
    np.testing.assert_allclose([first.bound, second.bound], found.bound, rtol=1e-6)
    np.testing.assert_allclose(
        second.valid, jax.tree.map(lambda leaf: leaf[1], found.valid), rtol=1e-6
    )


def test_a_checkpoint_in_other_units_is_that_of_values_in_them():
    """Change of variables: a linear model of 7 y whose weights, their prior and the noise are 7
    times as wide.
    """
    run = VIRun(
        KEY,
        SHAPE,
        VI(prior="fixed"),
        TrainingPlan((1,), draws=8),
        nets.architecture(SHAPE, []),
        VIHyperparameters(1e-30),
        DATA,
    )
    stretched = run._replace(
        hyper=run.hyper._replace(prior_variance=49.0),
        data=DATA._replace(y=7.0 * DATA.y, valid_y=7.0 * DATA.valid_y),
    )
    q = vi_train.unpack(init_training(run).vector, SHAPE)
    wide = (
        jax.tree.map(lambda leaf: 7.0 * leaf, q.mean),
        jax.tree.map(lambda leaf: leaf + np.log(7.0), q.log_std),
    )
    state = init_training(stretched)._replace(
        vector=vi_train.pack(type(q)(*wide, q.log_noise + 2.0 * np.log(7.0)))
    )
    on = jax.jit(train_to_checkpoint)
    found, wanted = (
        nets.unscale_checkpoint(on(run, init_training(run), 1)[1], 7.0),
        on(stretched, state, 1)[1],
    )
    for ours, theirs in zip(
        jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_data_that_count_twice_are_data_repeated(trained):
    """Repeating data only multiplies the likelihood (Hutchinson, on data multiplication)."""
    network = nets.architecture(SHAPE, [3])
    twice = nets.Examples(
        *(jnp.concatenate([leaf, leaf]) for leaf in DATA[:2]), *DATA[2:4]
    )
    _, repeated = trained(
        KEY, architecture=network, hyper=VIHyperparameters(), data=twice
    )
    _, counted = trained(
        KEY, architecture=network, hyper=VIHyperparameters(repeats=2.0), data=DATA
    )
    np.testing.assert_allclose(counted.bound, repeated.bound, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [None, 5])
def test_rows_without_weight_do_not_count(batch):
    strange = DATA._replace(y=DATA.y.at[3].set(1e3), weight=jnp.ones(24).at[3].set(0.0))
    course = TrainingPlan(checkpoints=(20,), draws=2, batch=batch)
    train = jax.jit(partial(train_vi, shape=SHAPE, vi=CALM, plan=course))
    network = nets.architecture(SHAPE, [3])
    found, other = (
        train(KEY, architecture=network, hyper=VIHyperparameters(), data=data)[1].bound
        for data in (strange, strange._replace(y=strange.y.at[3].set(-50.0)))
    )
    np.testing.assert_array_equal(found, other)


@pytest.mark.slow
def test_batches_take_every_row_once_a_pass():
    run = VIRun(
        KEY,
        SHAPE,
        CALM,
        TrainingPlan(checkpoints=(1,), draws=2, batch=7),
        nets.architecture(SHAPE, [3]),
        VIHyperparameters(),
        DATA,
    )
    state, taken = init_training(run), []
    for turn in range(8):
        state, _ = (
            train_to_checkpoint(run, state, turn + 1)
            if turn == 0
            else _step(run, state)
        )
        taken.append(np.asarray(state.order))
    assert all((order == taken[0]).all() for order in taken[:4])
    assert (taken[4] != taken[0]).any()
    assert sorted(taken[0]) == sorted(taken[7]) == list(range(24))


def _step(run, state):
    return vi_train._update(run, vi_train._mask(run), state)


def test_a_network_that_diverges_keeps_its_last_numbers(trained):
    wild = VIHyperparameters(learning_rate=1e30)
    q, found = trained(
        KEY, architecture=nets.architecture(SHAPE, [3]), hyper=wild, data=DATA
    )
    assert np.isnan(found.valid.log_likelihood[-1])
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(q))


@pytest.mark.slow
def test_a_variance_head_follows_noise_that_grows():
    x = np.linspace(-1.0, 1.0, 200)[:, None]
    y = np.where(x[:, 0] > 0.0, 1.0, 0.05) * np.random.default_rng(0).normal(size=200)
    data, shape = (
        nets.examples(x, y, x, y, dtype="float64"),
        nets.Shape(1, 2, depth=1, width=16, activations=("relu",)),
    )
    course, traits = (
        TrainingPlan(checkpoints=(1500,), draws=20),
        VIHyperparameters(learning_rate=0.01, noise=0.3),
    )
    one = nets.Shape(1, 1, depth=1, width=16, activations=("relu",))
    with_head, without = (
        jax.jit(
            partial(train_vi, shape=kind, vi=VI(samples=2, head=head), plan=course)
        )(KEY, architecture=nets.architecture(kind, [16]), hyper=traits, data=data)[
            1
        ].valid.log_likelihood[-1]
        for kind, head in ((shape, True), (one, False))
    )
    assert with_head > without + 0.3


@pytest.mark.parametrize(
    "wrong",
    [
        {"checkpoints": (3, 2)},
        {"checkpoints": ()},
        {"draws": 0},
        {"batch": 0},
        {"checkpoints": (5, 7), "window": 3},
    ],
    ids=str,
)
def test_courses_that_are_refused(wrong):
    with pytest.raises(ValueError):
        TrainingPlan(**wrong)


def test_what_does_not_fit_is_refused():
    network, call = nets.architecture(SHAPE, [3]), partial(train_vi, KEY, SHAPE)
    for vi, course, traits, data, message in (
        (
            CALM,
            COURSE,
            VIHyperparameters(),
            DATA._replace(valid_x=None, valid_y=None),
            "validation rows",
        ),
        (VI(head=True), COURSE, VIHyperparameters(), DATA, "variance head"),
        (
            CALM,
            TrainingPlan(batch=25),
            VIHyperparameters(),
            DATA,
            r"exceeds the number of rows \(24\)",
        ),
        (CALM, COURSE, VIHyperparameters(noise=0.0), DATA, "noise must be positive"),
        (
            CALM,
            COURSE,
            VIHyperparameters(),
            DATA._replace(x=DATA.x[:, :1]),
            r"x of shape \(n, 2\)",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call(vi, course, network, traits, data)
