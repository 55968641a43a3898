"""Twist's problem and his Algorithm 4, against formulas written out in numpy."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nets.small import check_descent, cut
from scipy.stats import norm

import bonas
from bonas import nets
from bonas.nets import mlp
from bonas.problems.synthetic import boundary
from bonas.search import random
from experiments.twist import system as twist

SMALL = twist.Intervals(layers=3, widest=5, epochs=(1, 9), rates=(0.5, 4.5))
SPACE = SMALL.space
DATA = twist.plane(jax.random.key(0), train=30, validation=40)
OTHER = twist.plane(jax.random.key(1), train=30, validation=40)
KEY = jax.random.key(2)

evaluate = jax.jit(lambda key, u, data: twist.objective(data, SMALL)(key, u))
train = jax.jit(nets.train)


def row(*units, epochs=9, rate=2.5):
    return SPACE.encode(
        {f"units_{i}": n for i, n in enumerate(units, 1)}
        | {"epochs": epochs, "learning_rate": rate}
    )


# The space


def test_the_unit_cube_is_that_of_equation_30():
    np.testing.assert_allclose(
        row(1, 0, 5, epochs=3, rate=1.5),
        [1 / 5, 0, 1, (3 - 1) / (9 - 1), (1.5 - 0.5) / (4.5 - 0.5)],
    )


def test_a_design_is_that_of_equation_29_rounded():
    architecture, hyper = SMALL.design(jnp.asarray([0.29, 0.0, 0.71, 0.3, 0.25]))
    np.testing.assert_array_equal(architecture.widths, [1, 0, 4])
    assert hyper.epochs == 3
    np.testing.assert_allclose(hyper.learning_rate, 1.5)


def test_by_default_there_is_a_column_a_layer_and_two_more():
    assert twist.Intervals().space.dim == twist.Intervals().layers + 2


# Training


def test_settings_and_shape_are_those_of_algorithm_3(reference):
    """One epoch in the order of the reference, from its parameters."""
    check_descent(
        reference("twist_sgd"),
        train,
        twist.shape(2, 4),
        replace(twist.settings(1), shuffle=False),
    )


def test_networks_start_from_standard_normal_numbers():
    """With 2000 parameters the standard errors are 1.6% and 0.022; five of them are allowed."""
    architecture, hyper = SMALL.design(row(5, 5, 5))
    untrained = hyper._replace(epochs=jnp.zeros((), jnp.int32))
    starts = [
        train(key, SMALL.shape, twist.settings(9), architecture, untrained, DATA)
        for key in jax.random.split(KEY, 24)
    ]
    drawn = np.concatenate(
        [
            np.ravel(leaf)
            for start in starts
            for layer in cut(start.params, (5, 5, 5), 2)
            for leaf in layer
        ]
    )
    assert len(drawn) > 2000
    assert abs(drawn.std() - 1.0) < 0.08
    assert abs(drawn.mean()) < 0.11


@pytest.mark.slow
def test_a_batch_of_all_points_is_gradient_descent_on_the_cost():
    """Algorithm 1 steps along the gradient of C = (1/N) Σ ½ ‖y − a‖²: finite differences agree."""
    shape, network, rate, step = twist.shape(1, 3), (3,), 0.7, 1e-5
    data = nets.examples(*DATA[:4], dtype="float64")
    how, chosen = (
        twist.settings(1, batch=len(data.x)),
        nets.architecture(shape, network),
    )
    start = mlp.init(KEY, shape, chosen, mlp.masks(KEY, shape, chosen), "unit")
    found = train(
        KEY,
        shape,
        how,
        chosen,
        nets.Hyperparameters(learning_rate=rate),
        data,
        params=start,
    )

    def measured(part, place, by):
        moved = start | {
            "last": start["last"] | {part: start["last"][part].at[place].add(by)}
        }
        outputs = np.asarray(nets.apply(shape, moved, data.x, chosen))
        return 0.5 * np.sum((outputs - data.y) ** 2) / len(data.x)

    for part, place in (("kernel", (1, 0)), ("bias", (1,))):
        slope = (measured(part, place, step) - measured(part, place, -step)) / (
            2 * step
        )
        np.testing.assert_allclose(
            found.params["last"][part][place],
            start["last"][part][place] - rate * slope,
            rtol=1e-8,
        )


# The data


def test_targets_have_a_column_a_class():
    np.testing.assert_array_equal(DATA.y.sum(axis=1), 1.0)
    assert set(np.unique(DATA.y)) == {0.0, 1.0}
    clear = twist.plane(KEY, train=50, validation=10, noise=0.0)
    np.testing.assert_array_equal(
        clear.y[:, 1], clear.x[:, 1] > boundary(np.asarray(clear.x[:, 0], np.float64))
    )


# The figures' training


@pytest.mark.slow
def test_a_training_is_measured_on_training_and_validation_points_apart():
    pattern = (4, 3)
    found = jax.jit(
        lambda key: twist.train(key, pattern, DATA, epochs=6, rate=1.0, every=3)
    )(KEY)
    np.testing.assert_array_equal(found.epochs, [3, 6])
    network = twist.shape(2, 4)
    for part, x, y in (
        (found.train, DATA.x, DATA.y),
        (found.validation, DATA.valid_x, DATA.valid_y),
    ):
        outputs = np.asarray(
            nets.apply(network, found.params, x, nets.architecture(network, pattern))
        )
        cost = np.mean(0.5 * np.sum((outputs - y) ** 2, axis=1))
        wrong = np.mean(np.argmax(outputs, axis=1) != np.argmax(y, axis=1))
        np.testing.assert_allclose(part[-1], [cost, wrong], rtol=1e-5)


# The objective


def test_the_objective_is_the_share_of_validation_points_that_are_wrong():
    u = row(4, 0, 3)
    train_key = jax.random.split(KEY, 1)[0]
    trained = train(train_key, SMALL.shape, twist.settings(9), *SMALL.design(u), DATA)
    outputs = np.asarray(
        nets.apply(SMALL.shape, trained.params, DATA.valid_x, SMALL.design(u)[0])
    )
    wrong = np.mean(
        (outputs[:, 1] > outputs[:, 0]) != (np.asarray(DATA.valid_y)[:, 1] == 1.0)
    )
    np.testing.assert_allclose(evaluate(KEY, u, DATA)[0], wrong, rtol=1e-6)


def test_a_layer_of_no_units_is_no_layer_wherever_it_stands():
    values = [
        evaluate(KEY, row(*units), DATA)[0]
        for units in ((4, 2, 0), (4, 0, 2), (0, 4, 2))
    ]
    assert values[0] == values[1] == values[2]


@pytest.mark.slow
def test_several_trainings_are_averaged_and_paid_for():
    u = row(3, 3, 0)
    value, cost = jax.jit(
        lambda key: twist.objective(DATA, SMALL, trainings=2)(key, u)
    )(KEY)
    each = [
        train(key, SMALL.shape, twist.settings(9), *SMALL.design(u), DATA).final[1]
        for key in jax.random.split(KEY, 2)
    ]
    np.testing.assert_allclose(value, np.mean(each), rtol=1e-6)
    assert cost == 2 * twist.cost(SMALL, u, 30)


@pytest.mark.parametrize(
    ("units", "parameters"),
    [((3, 0, 2), 3 * (2 + 1) + 2 * (3 + 1) + 2 * (2 + 1)), ((0, 0, 0), 2 * (2 + 1))],
)
def test_the_cost_is_parameters_times_epochs_times_points(units, parameters):
    assert evaluate(KEY, row(*units, epochs=7), DATA)[1] == parameters * 7 * 30


def test_all_designs_and_data_are_one_program():
    evaluate(KEY, row(5, 5, 5), DATA)
    before = evaluate._cache_size()
    for u, data in (
        (row(0, 0, 0, epochs=1, rate=4.5), DATA),
        (row(1, 0, 5, rate=0.5), OTHER),
    ):
        evaluate(KEY, u, data)
    assert evaluate._cache_size() == before


# Algorithm 4


def as_published(x, accuracy, candidates, alpha, sigma, lengthscale):
    """Follow Twist's `bayesianopt`: return the candidate with the highest expected improvement."""

    def k(a, b):
        return alpha**2 * np.exp(
            -np.sum((a[:, None] - b[None]) ** 2, axis=2) / (2 * lengthscale**2)
        )

    known = k(x, x) + sigma**2 * np.eye(len(x))
    mean = k(candidates, x) @ np.linalg.solve(known, accuracy)
    covariance = k(candidates, candidates) - k(candidates, x) @ np.linalg.solve(
        known, k(x, candidates)
    )
    gap, std = mean - accuracy.max(), np.sqrt(np.diag(covariance))
    return np.argmax(gap * norm.cdf(gap / std) + std * norm.pdf(gap / std))


SETTINGS = {
    "alpha": 0.8,
    "sigma": 0.1,
    "lengthscale": 0.6,
    "initial": 4,
    "candidates": 200,
}
SEARCH = twist.algorithm4(SPACE, **SETTINGS)
ask, tell, begin = (
    jax.jit(SEARCH.ask),
    jax.jit(SEARCH.tell),
    jax.jit(SEARCH.init, static_argnums=1),
)


def trial(x, y):
    ok = jnp.isfinite(y)
    return bonas.Observation(
        x=x, y=jnp.asarray(y), step=jnp.asarray(0), cost=jnp.asarray(1.0), ok=ok
    )


def hill(x):
    """An accuracy with its top, 0.9, at 0.3 in every column."""
    return 0.9 * jnp.exp(-jnp.sum((x - 0.3) ** 2))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_it_asks_what_the_published_code_would(seed):
    state, seen = begin(jax.random.key(seed), 8), []
    for step in range(8):
        key = jax.random.fold_in(jax.random.key(seed), step)
        x, state, info = ask(key, state)
        assert info.random == (step < 4)
        if step >= 4:
            points, accuracies = (np.array(part) for part in zip(*seen, strict=True))
            candidates = np.asarray(SPACE.sample(key, 200))
            best = as_published(points, accuracies, candidates, 0.8, 0.1, 0.6)
            np.testing.assert_array_equal(x[0], candidates[best])
        seen.append((np.asarray(x[0]), float(hill(x[0]))))
        state = tell(state, trial(x[0], 1.0 - hill(x[0])))


def test_a_failed_evaluation_changes_no_later_question():
    """A failed row is ignored: the answer equals a search without that row."""
    with_failure, without = (begin(KEY, 8) for _ in range(2))
    for i in range(4):
        x, with_failure, _ = ask(KEY, with_failure)
        y = 1.0 - hill(x[0])
        with_failure = tell(with_failure, trial(x[0], jnp.where(i == 1, jnp.nan, y)))
        if i != 1:
            without = tell(without, trial(x[0], y))
    without = tell(without, trial(jnp.zeros(SPACE.dim), jnp.nan))
    np.testing.assert_array_equal(ask(KEY, with_failure)[0], ask(KEY, without)[0])


@pytest.mark.slow
def test_it_climbs_a_hill_better_than_chance():
    """After twenty questions, in the median over twenty seeds."""

    def objective(key, u):
        return 1.0 - hill(u)

    keys = jax.random.split(KEY, 20)
    found, chance = (
        bonas.run_many(search, objective, keys, 20).best[:, -1]
        for search in (SEARCH, random(SPACE))
    )
    assert np.median(found) < np.median(chance)


@pytest.mark.slow
def test_a_search_of_networks_is_one_program_and_knows_its_costs():
    history = jax.jit(
        lambda key, data: bonas.run(SEARCH, twist.objective(data, SMALL), key, 6)
    )(KEY, DATA)
    assert ((history.y >= 0.0) & (history.y <= 1.0)).all()
    costs = [twist.cost(SMALL, u, 30) for u in history.x]
    np.testing.assert_allclose(history.state.observations.cost, costs)


# Invalid arguments


@pytest.mark.parametrize(
    "wrong",
    [
        {"initial": 0},
        {"candidates": 0},
        {"alpha": 0.0},
        {"sigma": -0.1},
        {"lengthscale": 0.0},
    ],
)
def test_settings_that_make_no_search_are_refused(wrong):
    with pytest.raises(
        ValueError,
        match=r"initial and candidates must be at least 1|alpha, .* must be positive",
    ):
        twist.algorithm4(SPACE, **wrong)


def test_an_objective_needs_validation_points_and_trainings():
    with pytest.raises(ValueError, match="validation rows"):
        twist.objective(DATA._replace(valid_x=None, valid_y=None))
    with pytest.raises(ValueError, match="trainings"):
        twist.objective(DATA, trainings=0)


def test_a_plane_needs_points():
    with pytest.raises(ValueError, match="at least 1; got 0 and 5"):
        twist.plane(KEY, train=0, validation=5)


@pytest.mark.parametrize("x", [[1.5, 0.0, 0.0, 0.0, 0.5], [np.nan, 0.0, 0.0, 0.0, 0.5]])
def test_an_observation_outside_the_space_is_refused(x):
    search = twist.algorithm4(SPACE)
    state = search.init(KEY, 2)
    one = jnp.ones(())
    observation = bonas.Observation(
        jnp.asarray(x), one, jnp.asarray(0), one, jnp.asarray(True)
    )
    with pytest.raises(ValueError, match=r"units_1"):
        search.tell(state, observation)
