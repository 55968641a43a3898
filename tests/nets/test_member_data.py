from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bonas import nets
from bonas.nets import ensemble as en
from bonas.nets import member_data

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, size=(60, 1))
NOISE = 0.1 * RNG.normal(size=60)
# jumps by 4 where x is 0.3
STEP = nets.examples(X, 2.0 * np.sign(X[:, 0] - 0.3) + X[:, 0] + NOISE)
SMOOTH = nets.examples(X, np.sin(4.0 * X[:, 0]) + NOISE)
SHAPE = nets.Shape(inputs=1, outputs=1, depth=1, width=5, activations=("relu",))
SETTINGS = nets.Settings(
    optimizer="adam", batch=None, max_epochs=400, initial="uniform"
)
HYPER = nets.Hyperparameters(learning_rate=0.02)
DESIGN = en.Design(depth=1, width=5, members=8, density=1.0)
PIECES = member_data.regions(4)
KEY = jax.random.key(0)

train = jax.jit(en.train_ensemble, static_argnames=("capacity", "subsampling", "lanes"))
predict = jax.jit(en.predict)


@partial(jax.jit, static_argnames=("seen",))
def plan_of(data, members=8, seen=PIECES):
    return seen.plan(data, jnp.asarray(members))


def trained(data, seen, **change):
    return train(
        KEY,
        SHAPE,
        SETTINGS,
        DESIGN._replace(**change),
        HYPER,
        data,
        capacity=8,
        subsampling=seen,
    )


# Bootstrap samples


def drawn(weight):
    """The counts of 2000 bootstrap samples of ten rows."""
    data = nets.examples(np.zeros((10, 1)), np.zeros(10), weight=weight)
    keys = jax.random.split(KEY, 2000)
    return np.asarray(
        jax.jit(
            jax.vmap(lambda key: member_data.bootstrap.member(key, 0, (), data).weight)
        )(keys)
    )


def test_bootstrap_samples_have_as_many_rows_as_there_are():
    counts = drawn(None)
    assert (counts.sum(axis=1) == 10).all()
    # a count is binomial, mean 1 and variance 0.9: five standard errors of a mean of 2000
    np.testing.assert_allclose(counts.mean(axis=0), 1.0, atol=5 * np.sqrt(0.9 / 2000))
    np.testing.assert_allclose(
        (counts == 0).mean(), 0.9**10, atol=5 * np.sqrt(0.25 / 2000)
    )


def test_bootstrap_samples_leave_rows_without_weight_alone():
    counts = drawn([1, 0, 0, 2, 0, 0, 1, 0, 0, 0])
    assert (counts.sum(axis=1) == 3).all()
    # three draws, a row of half the weight in each with chance 1/2
    np.testing.assert_allclose(
        counts.mean(axis=0)[[0, 3, 6]], [0.75, 1.5, 0.75], atol=5 * np.sqrt(0.75 / 2000)
    )
    assert (counts[:, [1, 2, 4, 5, 7, 8, 9]] == 0).all()


# Random features


@pytest.mark.parametrize(("share", "seen"), [(0.5, 2), (0.1, 1), (1.0, 4)])
def test_members_see_their_share_of_the_inputs(share, seen):
    data = nets.examples(np.zeros((3, 4)), np.zeros(3))
    columns = np.array(
        [
            member_data.random_features(share)
            .member(jax.random.key(i), i, (), data)
            .columns
            for i in range(20)
        ]
    )
    assert (columns.sum(axis=1) == seen).all()
    assert columns.any(axis=0).all()


def test_inputs_that_a_member_does_not_see_change_nothing():
    x = RNG.normal(size=(12, 4))
    data, shape = (
        nets.examples(x, x.sum(axis=1), dtype="float64"),
        nets.Shape(4, 1, 1, 3, activations=("tanh",)),
    )
    settings, design = (
        nets.Settings(optimizer="adam", batch=None, max_epochs=3),
        en.Design(1, 3, 6, 1.0),
    )
    ensemble = train(
        KEY,
        shape,
        settings,
        design,
        nets.Hyperparameters(),
        data,
        capacity=6,
        subsampling=member_data.random_features(0.5),
    )
    connected = (np.asarray(ensemble.params["first"]["kernel"]) != 0.0).any(axis=2)
    assert (connected.sum(axis=1) == 2).all()
    outputs = jax.jit(en.member_outputs)
    every = np.asarray(outputs(ensemble, jnp.asarray(x + 1.0)))
    for i, columns in enumerate(connected):
        np.testing.assert_allclose(
            outputs(ensemble, jnp.asarray(x + columns))[i], every[i], rtol=1e-12
        )


# Pieces


def test_a_jump_is_found():
    (low, high, used), _ = plan_of(STEP)
    below, above = X[X < 0.3].max(), X[X > 0.3].min()
    assert used == 2
    assert below < high[0, 0] < above
    assert low[1, 0] == high[0, 0]
    np.testing.assert_array_equal(
        PIECES.group(plan_of(STEP), jnp.array([[-9.0], [0.0], [0.5], [9.0]])),
        [0, 0, 1, 1],
    )


def test_a_jump_is_found_in_its_column():
    x = np.random.default_rng(1).uniform(size=(80, 3))
    data = nets.examples(
        x, np.where(x[:, 1] > 0.6, 3.0, 0.0) + x[:, 0] + 0.1 * RNG.normal(size=80)
    )
    (_, high, used), _ = plan_of(data, seen=member_data.regions(2))
    assert used == 2
    np.testing.assert_array_equal(np.isfinite(high[0]), [False, True, False])
    assert x[:, 1][x[:, 1] < 0.6].max() < high[0, 1] < x[:, 1][x[:, 1] > 0.6].min()


@pytest.mark.slow
def test_a_smooth_function_is_left_whole():
    """And then the ensemble is that of members who see everything."""
    assert plan_of(SMOOTH)[0].used == 1
    whole, plain = (
        predict(trained(SMOOTH, seen), STEP.x)
        for seen in (PIECES, member_data.all_data)
    )
    np.testing.assert_allclose(whole.mean, plain.mean, rtol=1e-5, atol=1e-6)


def test_there_are_no_more_pieces_than_members():
    assert plan_of(STEP, 1)[0].used == 1


def test_rows_without_weight_draw_no_borders():
    weight = (X[:, 0] < 0.3).astype(float)
    assert plan_of(STEP._replace(weight=jnp.asarray(weight)))[0].used == 1


def test_members_answer_where_they_were_trained():
    ensemble = trained(STEP, PIECES)
    np.testing.assert_array_equal(ensemble.group, np.arange(8) % 2)
    outputs, right = np.asarray(en.member_outputs(ensemble, STEP.x)), X[:, 0] > 0.3
    mean = np.asarray(predict(ensemble, STEP.x).mean)
    counted = np.asarray(ensemble.included)
    for group, here in enumerate((~right, right)):
        mine = counted & (np.arange(8) % 2 == group)
        assert mine.any()
        np.testing.assert_allclose(
            mean[here], outputs[mine][:, here].mean(axis=0), rtol=1e-5
        )


def test_members_see_as_far_beyond_their_piece_as_they_are_told():
    seen = member_data.regions(4, overlap=0.5)
    plan = plan_of(STEP, seen=seen)
    border, margin = float(plan[0].high[0, 0]), 0.5 * X.std()
    np.testing.assert_array_equal(
        seen.member(KEY, jnp.asarray(0), plan, STEP).weight > 0,
        X[:, 0] <= border + margin,
    )
    np.testing.assert_array_equal(
        seen.member(KEY, jnp.asarray(1), plan, STEP).weight > 0,
        X[:, 0] > border - margin,
    )


def test_pieces_follow_a_jump_better_than_members_who_see_everything():
    """Near the jump, against the function without noise: what each of them is off by, as a root
    mean square.
    """
    grid = np.linspace(0.0, 0.6, 200)[:, None]
    truth = 2.0 * np.sign(grid - 0.3) + grid
    off = {}
    for name, seen in (("pieces", PIECES), ("everything", member_data.all_data)):
        mean = predict(trained(STEP, seen), jnp.asarray(grid, jnp.float32)).mean
        off[name] = np.sqrt(np.mean((np.asarray(mean) - truth) ** 2))
    assert off["pieces"] < 0.5 * off["everything"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: member_data.random_features(0.0), "above 0 and at most 1; got 0.0"),
        (lambda: member_data.regions(0), "cells must be >= 1"),
        (lambda: member_data.regions(4, fit_rows=5), "fit_rows >= min_rows"),
    ],
)
def test_views_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
