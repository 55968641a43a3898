"""Networks on folds: checkpoint by checkpoint, scored in the target's units, and the committee that is kept of them."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from bonas import nets
from bonas.tabular import kept, look
from bonas.tabular.committee import Chosen, committee
from bonas.tabular.look import Answer
from bonas.tabular.prepared import prepare
from bonas.tabular.rivals import RIVALS, answers
from bonas.tabular.spaces import family
from bonas.tabular.table import Table
from bonas.tabular.training import Trainer, score, together

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
    "bnn": {"depth": 1, "width": 4, "activation": "relu", "learning_rate": 0.02, "prior_variance": 1.0},
}
CASES = [("mlp", "regression"), ("mlp", "classification"), ("ensemble", "regression"), ("bnn", "regression")]
each_case = pytest.mark.parametrize("trainer", CASES, indirect=True, ids="-".join)


def table(task):
    """A straight line with noise, far from the usual units, or whether it lies above zero."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2))
    line = 1000.0 + 50.0 * (x[:, 0] - 2.0 * x[:, 1]) + 5.0 * rng.normal(size=80)
    y = line if task == "regression" else np.where(line > 1000.0, "above", "below")
    return Table("t", {"a": 3.0 + 10.0 * x[:, 0], "b": x[:, 1], "y": y}, target="y")


@pytest.fixture(scope="module")
def trainers():
    made = {}

    def trainer(name, task):
        if (name, task) not in made:
            prepared = prepare(table(task), 0)
            made[name, task] = Trainer(prepared, family(name, prepared.size), 0)
        return made[name, task]

    return trainer


@pytest.fixture
def trainer(request, trainers):
    return trainers(*request.param)


def trained(trainer, checkpoints):
    going = trainer.begin(CONFIGS[trainer.family.name])
    for _ in range(checkpoints):
        going = trainer.advance(going)
    return going


@pytest.mark.slow
@each_case
def test_training_gets_better_and_depends_on_nothing_else(trainer):
    first, second = trained(trainer, 4), trained(trainer, 4)
    assert first.curve == second.curve
    assert first.curve[-1] < first.curve[0]


@pytest.mark.slow
@pytest.mark.parametrize("trainer", [("mlp", "regression")], indirect=True)
def test_the_loss_is_that_of_networks_trained_fold_by_fold(trainer):
    """With the tools of `nets` alone: the root mean squared error over all rows held out, in the target's units."""
    checkpoints, config = trainer.family.checkpoints, CONFIGS["mlp"]
    shape = nets.Shape(2, 1, 3, 32, activations=("relu", "tanh"))
    settings = nets.Settings(batch=8, max_epochs=checkpoints[-1])
    hyper = nets.Hyper(0.004, dropout=0.1, weight_decay=0.01, epochs=checkpoints[1])
    squares = []
    for number, split in enumerate(trainer.prepared.folds):
        own = jax.random.fold_in(trainer.key, 0)
        key = jax.random.fold_in(jax.random.fold_in(own, number), 0)
        network = nets.architecture(shape, (5, 4), config["activation"])
        data = nets.examples(split.train.x, split.train.y)
        params = nets.train(key, shape, settings, network, hyper, data).params
        found = np.asarray(nets.apply(shape, params, split.validation.x, network))[:, 0]
        squares.append(((found - split.validation.y) * split.scaling.y_scale) ** 2)
    assert trained(trainer, 2).curve[1] == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-3)


@pytest.mark.slow
@each_case
def test_the_committee_kept_is_what_was_validated(trainer):
    """Networks of one fold, out of the file's arrays, say of its rows held out what they said in training."""
    until = trainer.family.checkpoints[3]
    config = CONFIGS[trainer.family.name]
    found = committee(trainer, [Chosen(config, until)])
    assert len(found.groups) == len(trainer.prepared.folds)
    task = trainer.prepared.columns.task
    said = []
    for group, split in zip(found.groups, trainer.prepared.folds, strict=True):
        rows = split.validation.x * split.scaling.x_scale + split.scaling.x_centre
        said.append(kept.answer_of(task, [group], rows).mean)
    np.testing.assert_allclose(np.concatenate(said), found.validation.mean, rtol=1e-3, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("trainer", [("mlp", "regression")], indirect=True, ids="-".join)
def test_a_configuration_that_makes_the_committee_worse_has_no_part_in_it(trainer):
    good, poor = (Chosen(CONFIGS["mlp"], trainer.family.checkpoints[i]) for i in (-1, 0))
    assert committee(trainer, [good, poor]).chosen == [good]
    assert committee(trainer, [good, good]).chosen == [good]


@pytest.mark.slow
@pytest.mark.parametrize("trainer", CASES[:2], indirect=True, ids="-".join)
def test_with_one_fold_the_committee_is_not_worse_than_the_network_of_the_search(trainer):
    """After short trainings, which leave some repeats far behind."""
    one = Trainer(trainer.prepared._replace(folds=trainer.prepared.folds[:1]), trainer.family, 0)
    config = CONFIGS[one.family.name]
    going = one.begin(config)
    for until in one.family.checkpoints[:2]:
        going = one.advance(going)
        found = committee(one, [Chosen(config, until)])
        assert score(one.family.score, found.validation, one.held_out) <= going.curve[-1] * (1.0 + 1e-6)
        assert 1 <= len(found.groups) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("trainer", [("mlp", "regression"), ("bnn", "regression")], indirect=True, ids="-".join)
def test_intervals_hold_what_they_should(trainer):
    """Of 64 values held out at least 70% are within the interval that should hold 90%: five standard errors below."""
    found = committee(trainer, [Chosen(CONFIGS[trainer.family.name], trainer.family.checkpoints[-1])])
    assert look.coverage(found.validation, trainer.held_out) >= 0.7
    assert np.median(np.asarray(found.validation.std)) < 60.0  # the target has a standard deviation of about 110


@pytest.mark.slow
def test_networks_that_diverge_have_an_infinite_loss(trainers):
    trainer = trainers("mlp", "regression")
    wild = replace(trainer.family, advance=lambda training, until: (training, NOTHING))
    broken = Trainer(trainer.prepared, wild, 0)
    assert broken.advance(broken.begin(CONFIGS["mlp"])).curve == (np.inf,)


NOTHING = look.Look(np.full((5, 1, 12, 1), np.nan), np.zeros((5, 1), bool), np.zeros(5))


def test_a_mixture_has_the_moments_of_its_draws():
    """A million draws from two normals: the tolerance is ten standard errors."""
    one, two = [Answer(np.array([0.0]), np.array([1.0]))], [Answer(np.array([3.0]), np.array([2.0]))]
    found = together([one, two])
    rng = np.random.default_rng(0)
    draws = np.where(rng.random(1_000_000) < 0.5, rng.normal(0.0, 1.0, 1_000_000), rng.normal(3.0, 2.0, 1_000_000))
    assert found.mean[0] == pytest.approx(draws.mean(), abs=0.03)
    assert found.std[0] == pytest.approx(draws.std(), abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_rivals_learn_a_straight_line(task):
    prepared = prepare(table(task), 0)
    for rival in RIVALS:
        held, tested = answers(rival, prepared, 0)
        assert len(held.mean) == sum(len(split.validation.x) for split in prepared.folds)
        assert len(tested.mean) == len(prepared.whole.test.x)
    held, tested = answers("linear", prepared, 0)
    if task == "regression":
        y = prepared.whole.test.y * prepared.whole.scaling.y_scale + prepared.whole.scaling.y_centre
        assert look.rmse(tested, y) < 10.0  # the noise is 5
    else:
        assert look.accuracy(tested, prepared.whole.test.y) > 0.8
        np.testing.assert_allclose(tested.mean.sum(axis=1), 1.0)
