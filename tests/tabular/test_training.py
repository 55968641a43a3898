"""Training on folds, and the final ensemble."""

import jax
import numpy as np
import pytest

from bonas import nets
from bonas.tabular import saved_model, scores
from bonas.tabular.network_families import MLPFamily, make_family
from bonas.tabular.scores import Predictive, loss, mixture
from bonas.tabular.splits import prepare_table
from bonas.tabular.table import Table
from bonas.tabular.training import (
    REFERENCES,
    ChosenConfig,
    Trainer,
    reference_predictions,
    train_final_ensemble,
)

CONFIGS = {
    "mlp": {
        "depth": 2,
        "width_1": 5,
        "width_2": 4,
        "activation": "tanh",
        "learning_rate": 0.004,
        "weight_decay": 0.01,
        "dropout": 0.1,
    },
    "ensemble": {"depth": 1, "width": 6, "members": 3, "density": 0.7},
    "bnn": {
        "depth": 1,
        "width": 4,
        "activation": "relu",
        "learning_rate": 0.02,
        "prior_variance": 1.0,
    },
}
CASES = [
    ("mlp", "regression"),
    ("mlp", "classification"),
    ("ensemble", "regression"),
    ("bnn", "regression"),
]
each_case = pytest.mark.parametrize("trainer", CASES, indirect=True, ids="-".join)


def table(task, unit=1.0):
    """A straight line with noise, far from the usual units, or whether it lies above zero."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2))
    line = 1000.0 + 50.0 * (x[:, 0] - 2.0 * x[:, 1]) + 5.0 * rng.normal(size=80)
    y = (
        unit * line
        if task == "regression"
        else np.where(line > 1000.0, "above", "below")
    )
    return Table("t", {"a": 3.0 + 10.0 * x[:, 0], "b": x[:, 1], "y": y}, target="y")


@pytest.fixture(scope="module")
def trainers():
    made = {}

    def trainer(name, task):
        if (name, task) not in made:
            prepared = prepare_table(table(task), 0)
            made[name, task] = Trainer(prepared, make_family(name, prepared.size), 0)
        return made[name, task]

    return trainer


@pytest.fixture
def trainer(request, trainers):
    return trainers(*request.param)


def trained(trainer, checkpoints):
    run = trainer.start(CONFIGS[trainer.family.name])
    for _ in range(checkpoints):
        run = trainer.advance(run)
    return run


@pytest.mark.slow
@each_case
def test_training_improves_and_is_reproducible(trainer):
    first, second = trained(trainer, 4), trained(trainer, 4)
    assert first.curve == second.curve
    assert first.curve[-1] < first.curve[0]


@pytest.mark.slow
@pytest.mark.parametrize("trainer", [("mlp", "regression")], indirect=True)
def test_the_loss_matches_networks_trained_fold_by_fold(trainer):
    """Check with `nets` only: the RMSE over all validation rows, in the units of the target."""
    checkpoints, config = trainer.family.checkpoints, CONFIGS["mlp"]
    shape = nets.Shape(2, 1, 3, 32, activations=("relu", "tanh"))
    settings = nets.Settings(batch=8, max_epochs=checkpoints[-1])
    hyper = nets.Hyperparameters(
        0.004, dropout=0.1, weight_decay=0.01, epochs=checkpoints[1]
    )
    squares = []
    for number, split in enumerate(trainer.table.folds):
        own = jax.random.fold_in(trainer.key, 0)
        key = jax.random.fold_in(jax.random.fold_in(own, number), 0)
        network = nets.architecture(shape, (5, 4), config["activation"])
        data = nets.examples(split.train.x, split.train.y)
        params = nets.train(key, shape, settings, network, hyper, data).params
        found = np.asarray(nets.apply(shape, params, split.validation.x, network))[:, 0]
        squares.append(((found - split.validation.y) * split.scaling.y_scale) ** 2)
    assert trained(trainer, 2).curve[1] == pytest.approx(
        np.sqrt(np.mean(squares)), rel=1e-3
    )


@pytest.mark.slow
@each_case
def test_the_saved_ensemble_makes_the_validated_predictions(trainer):
    """Networks of one fold, out of the file's arrays, say of its rows held out what they predicted
    in training.
    """
    until = trainer.family.checkpoints[3]
    config = CONFIGS[trainer.family.name]
    found = train_final_ensemble(trainer, [ChosenConfig(config, until)])
    assert len(found.groups) == len(trainer.table.folds)
    task = trainer.table.columns.task
    predicted = []
    for group, split in zip(found.groups, trainer.table.folds, strict=True):
        rows = split.validation.x * split.scaling.x_scale + split.scaling.x_center
        predicted.append(saved_model.predict_groups(task, [group], rows).mean)
    np.testing.assert_allclose(
        np.concatenate(predicted), found.validation.mean, rtol=1e-3, atol=1e-3
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "trainer", [("mlp", "regression")], indirect=True, ids="-".join
)
def test_a_configuration_that_worsens_the_ensemble_is_left_out(trainer):
    good, poor = (
        ChosenConfig(CONFIGS["mlp"], trainer.family.checkpoints[i]) for i in (-1, 0)
    )
    assert train_final_ensemble(trainer, [good, poor]).chosen == [good]
    assert train_final_ensemble(trainer, [good, good]).chosen == [good]


@pytest.mark.slow
@pytest.mark.parametrize("trainer", CASES[:2], indirect=True, ids="-".join)
def test_with_one_fold_the_ensemble_is_not_worse_than_the_network_of_the_search(
    trainer,
):
    """Use short training runs: some repeats are much worse."""
    one = Trainer(
        trainer.table._replace(folds=trainer.table.folds[:1]), trainer.family, 0
    )
    config = CONFIGS[one.family.name]
    run = one.start(config)
    for until in one.family.checkpoints[:2]:
        run = one.advance(run)
        found = train_final_ensemble(one, [ChosenConfig(config, until)])
        assert loss(
            one.family.score, found.validation, one.validation_targets
        ) <= run.curve[-1] * (1.0 + 1e-6)
        assert 1 <= len(found.groups) <= 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "trainer",
    [("mlp", "regression"), ("bnn", "regression")],
    indirect=True,
    ids="-".join,
)
def test_intervals_contain_their_share_of_validation_targets(trainer):
    """At least 70% of 64 values are inside the 90% intervals: five standard errors below."""
    found = train_final_ensemble(
        trainer,
        [ChosenConfig(CONFIGS[trainer.family.name], trainer.family.checkpoints[-1])],
    )
    assert scores.coverage(found.validation, trainer.validation_targets) >= 0.7
    assert (
        np.median(np.asarray(found.validation.std)) < 60.0
    )  # the target has a standard deviation of about 110


class Diverging(MLPFamily):
    """Plain networks that always diverge."""

    def train(self, training, until):
        return training, NOTHING


@pytest.mark.slow
def test_diverged_networks_have_an_infinite_loss(trainers):
    trainer = trainers("mlp", "regression")
    broken = Trainer(trainer.table, Diverging(trainer.family.size), 0)
    assert broken.advance(broken.start(CONFIGS["mlp"])).curve == (np.inf,)


NOTHING = scores.FoldOutputs(
    np.full((5, 1, 12, 1), np.nan), np.zeros((5, 1), bool), np.zeros(5)
)


def test_a_mixture_has_the_moments_of_its_draws():
    """A million draws from two normals: the tolerance is ten standard errors."""
    one, two = (
        [Predictive(np.array([0.0]), np.array([1.0]))],
        [Predictive(np.array([3.0]), np.array([2.0]))],
    )
    found = mixture([one, two])
    rng = np.random.default_rng(0)
    draws = np.where(
        rng.random(1_000_000) < 0.5,
        rng.normal(0.0, 1.0, 1_000_000),
        rng.normal(3.0, 2.0, 1_000_000),
    )
    assert found.mean[0] == pytest.approx(draws.mean(), abs=0.03)
    assert found.std[0] == pytest.approx(draws.std(), abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_reference_models_learn_a_straight_line(task):
    prepared = prepare_table(table(task), 0)
    for name in REFERENCES:
        validation, test = reference_predictions(name, prepared, 0)
        assert len(validation.mean) == sum(
            len(split.validation.x) for split in prepared.folds
        )
        assert len(test.mean) == len(prepared.development.test.x)
    validation, test = reference_predictions("linear", prepared, 0)
    if task == "regression":
        y = (
            prepared.development.test.y * prepared.development.scaling.y_scale
            + prepared.development.scaling.y_center
        )
        assert scores.rmse(test, y) < 10.0  # the noise is 5
    else:
        assert scores.accuracy(test, prepared.development.test.y) > 0.8
        np.testing.assert_allclose(test.mean.sum(axis=1), 1.0)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("name", "unit"), [("mlp", 1e12), ("mlp", 1e30), ("mlp", 1e35), ("bnn", 1e30)]
)
def test_huge_targets_train_like_ordinary_ones(name, unit, trainers):
    """The last unit brings the largest target to a third of the largest float32 number."""
    expected = np.array(trained(trainers(name, "regression"), 2).curve)
    prepared = prepare_table(table("regression", unit), 0)
    trainer = Trainer(prepared, make_family(name, prepared.size), 0)
    is_log = trainer.family.score == "nats"
    expected = expected + np.log(unit) if is_log else expected * unit
    np.testing.assert_allclose(trained(trainer, 2).curve, expected, rtol=1e-3)
