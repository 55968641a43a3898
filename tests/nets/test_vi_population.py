"""Populations of variational networks: each is trained as it would be alone."""

from functools import partial

import jax
import numpy as np
import pytest

from bonas import nets
from bonas.nets.bnn_vi import VI
from bonas.nets.vi_population import train_vi_many
from bonas.nets.vi_settings import TrainingPlan, VIHyperparameters
from bonas.nets.vi_train import train_vi

KEY = jax.random.key(0)
SHAPE = nets.Shape(2, 1, depth=2, width=20, activations=("relu",))
COURSE = TrainingPlan(checkpoints=(10, 30), draws=8)
CALM = VI(forward="deterministic")
X = np.random.default_rng(0).normal(size=(24, 2))
Y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
DATA = nets.examples(X, Y, X[:6] + 0.1, np.sin(X[:6, 0] + 0.1), dtype="float64")


@pytest.mark.slow
def test_a_population_is_its_networks_trained_alone():
    widths = [[3, 4], [0, 3], [20], [20, 18], []]
    networks = nets.stack([nets.architecture(SHAPE, each) for each in widths])
    train = jax.jit(partial(train_vi, shape=SHAPE, vi=CALM, plan=COURSE))
    keys, traits = (
        jax.random.split(KEY, 5),
        VIHyperparameters(prior_variance=np.array([1.0, 0.1, 1.0, 2.0, 1.0])),
    )
    population = train_vi_many(keys, SHAPE, CALM, COURSE, networks, traits, DATA)
    for i in (0, 1, 3):
        alone = nets.architecture(SHAPE, widths[i])
        own = VIHyperparameters(*(np.broadcast_to(leaf, 5)[i] for leaf in traits))
        q, found = train(keys[i], architecture=alone, hyper=own, data=DATA)
        np.testing.assert_allclose(
            population.checkpoints.bound[i], found.bound, rtol=1e-6
        )
        np.testing.assert_allclose(
            population.q.mean["last"]["kernel"][i],
            q.mean["last"]["kernel"],
            rtol=1e-4,
            atol=1e-7,
        )
    assert population.checkpoints.active.shape == (5, 2, 2)
    assert (np.diff(population.seconds, axis=1) > 0.0).all()


@pytest.mark.slow
def test_lanes_train_what_one_does():
    networks = nets.stack([nets.architecture(SHAPE, each) for each in ([3], [5], [9])])
    keys = jax.random.split(KEY, 3)
    one, two = (
        train_vi_many(
            keys,
            SHAPE,
            VI(samples=2),
            COURSE,
            networks,
            VIHyperparameters(),
            DATA,
            lanes=k,
        )
        for k in (1, 2)
    )
    np.testing.assert_allclose(two.checkpoints.bound, one.checkpoints.bound, rtol=1e-5)


def test_architectures_without_a_key_each_are_refused():
    networks = nets.stack([nets.architecture(SHAPE, [3])])
    with pytest.raises(ValueError, match="one per key"):
        train_vi_many(
            jax.random.split(KEY, 2),
            SHAPE,
            CALM,
            COURSE,
            networks,
            VIHyperparameters(),
            DATA,
        )
