"""Learning rates, momentum and dropout over the updates of a run."""

import jax
import numpy as np
import pytest

from bonas import nets

LINE = nets.Shape(2, 1, depth=1, width=1)
NO_LAYER = nets.architecture(LINE, ())
NOTHING = nets.examples(np.zeros((2, 2)), np.zeros(2), dtype="float64")
ONES = nets.examples(np.ones((50, 2)), np.zeros(50), dtype="float64")

SCHEDULES = {
    "cosine": (nets.cosine, lambda t: 0.5 * (1 + np.cos(np.pi * t / 6))),
    "linear": (nets.linear, lambda t: 1 - t / 6),
    "inverse time": (nets.inverse_time(2.0), lambda t: 2 / (2 + t)),
    "rising": (
        nets.warmup(0.25, 4),
        lambda t: np.array([0.25, 0.4375, 0.625, 0.8125, 1.0, 1.0])[t],
    ),
    "without the last": (
        nets.zero_at_end(2),
        lambda t: np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])[t],
    ),
}

train = jax.jit(nets.train)


def level(outputs, targets):
    return outputs[:, 0]


def start(slope):
    return {
        "first": {"kernel": np.zeros((2, 1)), "bias": np.zeros(1)},
        "hidden": {"kernel": np.zeros((0, 1, 1)), "bias": np.zeros((0, 1))},
        "last": {"kernel": np.full((2, 1), slope), "bias": np.zeros(1)},
    }


def run(hyper, data=NOTHING, slope=0.0, **schedules):
    """Six epochs of at most eight."""
    settings = nets.Settings(
        loss=level, optimizer="sgd", batch=None, max_epochs=8, **schedules
    )
    return train(
        jax.random.key(0),
        LINE,
        settings,
        NO_LAYER,
        hyper._replace(epochs=6),
        data,
        params=start(slope),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEDULES)
def test_learning_rates_follow_their_formula_over_the_epochs_of_the_network(name):
    """The loss f has the slope 1 in the bias, which so falls by the sum of the rates."""
    schedule, factor = SCHEDULES[name]
    found = run(nets.Hyperparameters(learning_rate=0.5), schedule=schedule)
    np.testing.assert_allclose(
        found.params["last"]["bias"], [-0.5 * factor(np.arange(6)).sum()], rtol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEDULES)
def test_momentum_follows_its_schedule(name):
    schedule, factor = SCHEDULES[name]
    found = run(
        nets.Hyperparameters(learning_rate=0.5, momentum=0.8),
        momentum_schedule=schedule,
    )
    memory, bias = 0.0, 0.0
    for share in factor(np.arange(6)):
        memory = 0.8 * share * memory + 1.0
        bias -= 0.5 * memory
    np.testing.assert_allclose(found.params["last"]["bias"], [bias], rtol=1e-12)


@pytest.mark.typed
def test_the_last_updates_drop_nothing():
    """At a rate of 0 nothing is learned, and the mean of f is 2 where no input is dropped."""
    found = run(
        nets.Hyperparameters(learning_rate=0.0, input_dropout=0.5),
        ONES,
        1.0,
        dropout_schedule=nets.zero_at_end(2),
    )
    losses = np.asarray(found.losses)[:6]
    np.testing.assert_allclose(losses[4:], 2.0, rtol=1e-12)
    assert (np.abs(losses[:4] - 2.0) > 1e-6).all()


def test_hidden_units_are_dropped_by_the_schedule_too():
    shape = nets.Shape(2, 1, depth=1, width=40)
    network = nets.architecture(shape, (40,))
    hyper = nets.Hyperparameters(learning_rate=0.0, dropout=0.5)
    settings = nets.Settings(
        loss=level,
        optimizer="sgd",
        batch=None,
        max_epochs=6,
        dropout_schedule=nets.zero_at_end(2),
    )
    losses = np.asarray(
        train(jax.random.key(0), shape, settings, network, hyper, ONES).losses
    )
    assert losses[4] == losses[5]
    assert len(set(losses[:5])) == 5


def test_equal_schedules_are_one():
    assert nets.Settings(schedule=nets.inverse_time(3.0)) == nets.Settings(
        schedule=nets.inverse_time(3.0)
    )
    assert nets.Settings(momentum_schedule=nets.warmup(0.5, 3)) == nets.Settings(
        momentum_schedule=nets.warmup(0.5, 3)
    )
