"""Whole runs: when they end, what they validate and keep, in one call or in parts."""

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from nets import small
from nets.small import cut, line, same
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from bonas import nets
from bonas.nets import mlp
from bonas.nets.trainer import (
    COMPLETE,
    CONVERGED,
    DIVERGED,
    STOPPED,
    resume_training,
    start_training,
)

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(10, 3)), RNG.normal(size=(10, 2))
SHAPE = nets.Shape(inputs=3, outputs=2, depth=3, width=5)
DATA = nets.examples(X, Y, dtype="float64")
FULL = nets.Settings(batch=None, max_epochs=7, optimizer="sgd")
EVERY = slice(None)

# a line: no hidden layer, so every update can be worked out by hand
LINE = nets.Shape(inputs=2, outputs=1, depth=1, width=1, activations=("relu",))
NO_LAYER = nets.architecture(LINE, ())
SLOPES, LEVEL = np.array([[1.0], [-2.0]]), np.array([0.5])

train = jax.jit(nets.train)


# When a run ends

SLOW = nets.Hyperparameters(learning_rate=0.02)


def descent(rate, epochs):
    _, layers = line(SLOPES, LEVEL)
    return small.train(
        layers, X[:, :2], Y[:, :1], "relu", small.sgd(rate, 0.0), [EVERY] * epochs
    )


@pytest.mark.parametrize("least", [1, 60])
def test_a_settled_run_ends_where_a_plain_loop_would(least):
    """By itself it settles after a number of epochs between the two least numbers."""
    tolerance, most = 3e-3, 80
    settings = nets.Settings(
        batch=None,
        max_epochs=most,
        min_epochs=least,
        optimizer="sgd",
        tolerance=tolerance,
    )
    data, hyper = (
        nets.examples(X[:, :2], Y[:, :1], dtype="float64"),
        nets.Hyperparameters(learning_rate=0.1),
    )
    found = train(
        jax.random.key(0),
        LINE,
        settings,
        NO_LAYER,
        hyper,
        data,
        params=line(SLOPES, LEVEL)[0],
    )
    settled = (
        np.flatnonzero(np.abs(np.diff(descent(0.1, most)[1])) < tolerance) + 2
    )  # epochs, counted from one
    assert 1 < settled[0] < 60
    expected = settled[settled >= least][0]
    assert (int(found.epochs), int(found.kept), int(found.status)) == (
        expected,
        expected,
        CONVERGED,
    )
    same(cut(found.params, (), 2), descent(0.1, expected)[0], rtol=1e-10)
    assert np.isfinite(found.losses[:expected]).all()
    assert np.isnan(found.losses[expected:]).all()


def validated(rate, epochs, valid_x, valid_y):
    return np.array(
        [
            small.squared(descent(rate, epoch)[0], valid_x, valid_y, "relu")
            for epoch in epochs
        ]
    )


# halfway between the start and where training goes: validation improves first, and then no more
MIDDLE = (descent(0.02, 40)[0][0], descent(0.02, 0)[0][0])
VALID_X = RNG.normal(size=(6, 2))
VALID_Y = (
    VALID_X @ (MIDDLE[0][0] + MIDDLE[1][0]) / 2 + (MIDDLE[0][1] + MIDDLE[1][1]) / 2
)
HELD = nets.examples(X[:, :2], Y[:, :1], VALID_X, VALID_Y, dtype="float64")
PATIENT = nets.Settings(
    batch=None, max_epochs=60, optimizer="sgd", patience=3, checkpoints=2
)


@pytest.fixture(scope="module")
def patient():
    return train(
        jax.random.key(0),
        LINE,
        PATIENT,
        NO_LAYER,
        SLOW,
        HELD,
        params=line(SLOPES, LEVEL)[0],
    )


def test_validation_happens_at_the_checkpoints(patient):
    epochs = np.arange(2, int(patient.epochs) + 1, 2)
    np.testing.assert_allclose(
        patient.metrics[: len(epochs), 0],
        validated(0.02, epochs, VALID_X, VALID_Y),
        rtol=1e-9,
    )
    assert patient.metrics.shape == (30, 1)
    assert np.isnan(patient.metrics[len(epochs) :]).all()


def test_patience_ends_a_run_where_a_plain_loop_would(patient):
    best, stale, kept = np.inf, 0, 0
    for epoch in range(2, 61, 2):
        value = validated(0.02, [epoch], VALID_X, VALID_Y)[0]
        best, stale, kept = (
            (value, 0, epoch) if value < best else (best, stale + 1, kept)
        )
        if stale == 3:
            break
    assert 2 < kept < epoch < 60
    assert (int(patient.epochs), int(patient.kept), int(patient.status)) == (
        epoch,
        kept,
        STOPPED,
    )


def test_patience_keeps_the_best_parameters(patient):
    same(cut(patient.params, (), 2), descent(0.02, int(patient.kept))[0], rtol=1e-10)
    np.testing.assert_allclose(
        patient.final, np.nanmin(patient.metrics, axis=0), rtol=1e-12
    )


def test_a_run_that_ends_before_its_first_checkpoint_keeps_what_it_has():
    found = train(
        jax.random.key(0),
        LINE,
        PATIENT,
        NO_LAYER,
        SLOW._replace(epochs=1),
        HELD,
        params=line(SLOPES, LEVEL)[0],
    )
    assert (int(found.epochs), int(found.kept), int(found.status)) == (1, 1, COMPLETE)
    same(cut(found.params, (), 2), descent(0.02, 1)[0], rtol=1e-10)


LOOKS = nets.Settings(
    batch=None,
    max_epochs=9,
    optimizer="sgd",
    checkpoints=(1, 4, 9),
    metrics=("squared_error", "half_squared_error"),
)


def given(rate, epochs):
    hyper = nets.Hyperparameters(learning_rate=rate, epochs=epochs)
    return nets.train(
        jax.random.key(0),
        LINE,
        LOOKS,
        NO_LAYER,
        hyper,
        HELD,
        params=line(SLOPES, LEVEL)[0],
    )


@pytest.fixture(scope="module")
def one_at_a_time():
    program = jax.jit(given)
    return [
        program(rate, epochs)
        for rate, epochs in ((0.02, 9), (1e100, 9), (0.05, 5), (0.01, 0))
    ]


def test_validation_happens_after_given_epochs_and_measures_every_metric(one_at_a_time):
    expected = validated(0.02, [1, 4, 9], VALID_X, VALID_Y)
    np.testing.assert_allclose(
        one_at_a_time[0].metrics, np.stack([expected, expected / 2], axis=1), rtol=1e-9
    )


def test_checkpoints_after_the_end_are_not_a_number(one_at_a_time):
    np.testing.assert_array_equal(
        np.isnan(one_at_a_time[2].metrics[:, 0]), [False, False, True]
    )


def test_a_network_trains_its_own_number_of_epochs(one_at_a_time):
    assert [(int(found.epochs), int(found.status)) for found in one_at_a_time[2:]] == [
        (5, COMPLETE),
        (0, COMPLETE),
    ]
    same(cut(one_at_a_time[2].params, (), 2), descent(0.05, 5)[0], rtol=1e-10)
    same(cut(one_at_a_time[3].params, (), 2), [(SLOPES, LEVEL)], rtol=0)


def test_a_diverged_run_ends_with_its_epoch_and_the_last_finite_parameters(
    one_at_a_time,
):
    found = one_at_a_time[1]
    with np.errstate(all="ignore"):
        plain = [descent(1e100, epoch) for epoch in range(1, 10)]
    finite = [
        np.isfinite(losses).all() and all(np.isfinite(leaf).all() for leaf in layers[0])
        for layers, losses in plain
    ]
    expected = finite.index(False) + 1
    assert expected > 1
    assert (int(found.epochs), int(found.kept), int(found.status)) == (
        expected,
        expected - 1,
        DIVERGED,
    )
    same(cut(found.params, (), 2), plain[expected - 2][0], rtol=1e-10)
    assert np.isnan(found.final).all()


@pytest.mark.slow
@pytest.mark.parametrize("axis", [None, "networks"])
def test_vmap_agrees_with_one_at_a_time_and_a_diverged_lane_harms_no_other(
    one_at_a_time, axis
):
    def lane(rate, epochs):
        hyper = nets.Hyperparameters(learning_rate=rate, epochs=epochs)
        return nets.train(
            jax.random.key(0),
            LINE,
            LOOKS,
            NO_LAYER,
            hyper,
            HELD,
            params=line(SLOPES, LEVEL)[0],
            axis=axis,
        )

    rates, epochs = jnp.array([0.02, 1e100, 0.05, 0.01]), jnp.array([9, 9, 5, 0])
    together = jax.jit(jax.vmap(lane, axis_name="networks"))(rates, epochs)
    for found, expected in zip(
        jax.tree.leaves(together),
        jax.tree.leaves(nets.stack(one_at_a_time)),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_other_hyperparameters_and_keys_compile_nothing_new():
    """And neither do equal settings that were written twice."""
    data, before = (
        nets.examples(X[:, :2], Y[:, :1], dtype="float64"),
        train._cache_size(),
    )
    for seed, rate in ((0, 0.1), (1, 0.2)):
        settings, hyper = (
            nets.Settings(batch=5, max_epochs=7),
            nets.Hyperparameters(learning_rate=rate, epochs=seed + 3),
        )
        train(jax.random.key(seed), LINE, settings, NO_LAYER, hyper, data)
    assert train._cache_size() == before + 1


# Classification


def test_cross_entropy_finds_the_maximum_likelihood_of_scikit_learn():
    rng = np.random.default_rng(3)
    labels = np.repeat([0, 1, 2], 15)
    x = (
        rng.normal(size=(45, 2))
        + np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])[labels]
    )
    shape = nets.Shape(inputs=2, outputs=3, depth=1, width=1, activations=("relu",))
    settings = nets.Settings(
        loss="cross_entropy",
        metrics=("cross_entropy", "accuracy"),
        batch=None,
        max_epochs=3000,
        checkpoints=3000,
    )
    data = nets.examples(x, labels, x, labels, dtype="float64")
    found = train(
        jax.random.key(0),
        shape,
        settings,
        nets.architecture(shape, ()),
        nets.Hyperparameters(learning_rate=0.02),
        data,
    )
    known = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x, labels)
    np.testing.assert_allclose(
        found.final[0], log_loss(labels, known.predict_proba(x)), rtol=1e-4
    )
    np.testing.assert_allclose(found.final[1], known.score(x, labels), atol=1e-12)


# Precision


def test_training_is_in_float32_unless_told_otherwise():
    """Hyperparameters of another precision change nothing."""
    hyper = nets.Hyperparameters(
        *(jnp.asarray(0.1) for _ in nets.Hyperparameters._fields)
    )._replace(epochs=jnp.asarray(3))
    assert hyper.momentum.dtype == jnp.dtype("float64")
    data, network = nets.examples(X, Y, X, Y), nets.architecture(SHAPE, (4,))
    found = jax.eval_shape(
        lambda key, hyper: nets.train(key, SHAPE, FULL, network, hyper, data),
        jax.random.key(0),
        hyper,
    )
    kinds = {
        leaf.dtype
        for leaf in jax.tree.leaves(
            (found.params, found.losses, found.metrics, found.final)
        )
    }
    assert kinds == {jnp.dtype("float32")}


def test_training_can_be_exported_for_accelerators():
    def program(key):
        return nets.train(
            jax.random.wrap_key_data(key),
            LINE,
            FULL,
            NO_LAYER,
            nets.Hyperparameters(),
            HELD,
        ).final

    exported = jax.export.export(jax.jit(program), platforms=["cuda", "tpu"])(
        jax.ShapeDtypeStruct((2,), jnp.uint32)
    )
    assert set(exported.platforms) == {"cuda", "tpu"}


# In parts


@pytest.mark.slow
def test_a_run_in_parts_is_the_run():
    """Shuffled batches, dropped units and Adam's moments go on where they were."""
    settings, network = (
        nets.Settings(batch=4, max_epochs=7),
        nets.architecture(SHAPE, (4, 5), "tanh", 0.8),
    )
    arguments = (
        jax.random.key(3),
        SHAPE,
        settings,
        network,
        nets.Hyperparameters(dropout=0.2, weight_decay=0.1),
        DATA,
    )
    state = jax.jit(start_training)(*arguments)
    for until in (2, 3, 100):
        state = jax.jit(resume_training)(*arguments, state, until)
    whole = train(*arguments)
    np.testing.assert_allclose(state.params, mlp.flatten(whole.params), rtol=1e-12)
    np.testing.assert_array_equal(state.losses, whole.losses)
    assert int(state.epochs) == 7
