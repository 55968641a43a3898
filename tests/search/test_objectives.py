"""Objectives by name, and values to be maximized."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import plots
from bonas.search import named_objective, random

SPACE = bonas.Space(
    depth=bonas.Int(1, 2),
    rate=bonas.Float(1e-4, 1.0, log=True),
    width=bonas.Int(4, 64, log=True, when={"depth": (">=", 2)}),
    kind=bonas.Choice("x", "y"),
)
ALONE = bonas.Space(rate=bonas.Float(0.0, 1.0))
SEARCH = random(SPACE)
KEY = jax.random.key(0)


def of_points(key, u):
    values = SPACE.values(u)
    second = jnp.where(values["depth"] >= 2, values["width"], 0)
    return jnp.log(values["rate"]) + second + 100 * values["kind"]


def by_name(key, depth, rate, width, kind):
    return jnp.log(rate) + jnp.where(depth >= 2, width, 0) + 100 * kind


def with_defaults(key, kind, depth, rate, *, width, weight=100):
    return by_name(key, depth, rate, width, 0) + weight * kind


def with_mask(key, rate, kind, width, active, **rest):
    assert set(rest) == {"depth"}
    assert set(active) == set(SPACE.names)
    return jnp.log(rate) + jnp.where(active["width"], width, 0) + 100 * kind


def with_rest(key, **values):
    return by_name(key, **values)


class Method:
    def __call__(self, key, depth, rate, width, kind):
        return by_name(key, depth, rate, width, kind)


def values_of(objective, space=SPACE):
    return np.asarray(bonas.run(random(space), objective, KEY, 6).y)


@pytest.mark.parametrize(
    "objective",
    [
        by_name,
        with_defaults,
        with_mask,
        with_rest,
        Method(),
        jax.jit(by_name),
        partial(with_defaults, weight=100),
        named_objective(by_name, SPACE),
        lambda key, u, scale=1.0: scale * of_points(key, u),
        lambda *arguments: of_points(*arguments),
        lambda key, u, /: of_points(key, u),
        lambda key, u, rate=None: of_points(key, u),
    ],
)
def test_parameters_by_name_are_those_of_the_point(objective):
    np.testing.assert_array_equal(values_of(objective), values_of(of_points))


def test_inactive_parameters_have_their_lowest_value():
    def lowest(key, width, active, **rest):
        return jnp.where(active["width"], 4, width)

    assert (values_of(lowest) == 4.0).all()


def test_a_parameter_called_active_is_a_parameter():
    space = bonas.Space(active=bonas.Float(2.0, 3.0), rate=bonas.Float(0.0, 1.0))
    values = values_of(lambda key, active, rate: active, space)
    assert ((values >= 2.0) & (values <= 3.0)).all()


def test_one_parameter_by_name():
    expected = bonas.run(random(ALONE), lambda key, u: u[0], KEY, 6)
    for objective in (
        lambda key, *, rate: rate,
        named_objective(lambda key, rate: rate, ALONE),
        lambda key, rate=None: rate,
        lambda key, row: row[0],
    ):
        np.testing.assert_array_equal(values_of(objective, ALONE), expected.y)


@pytest.mark.parametrize(
    ("space", "objective", "match"),
    [
        (ALONE, lambda key, rate: rate, "could be a point or the parameter"),
        (SPACE, lambda key, rate: rate, r"write objective\(key, \*, rate\)"),
        (SPACE, lambda key, depth, rate, kind: rate, "no argument for .* 'width'"),
        (SPACE, lambda key, rate, widht: rate, "argument 'widht', but the space has"),
        (SPACE, lambda depth, rate, width, kind: rate, "first argument .* random key"),
        (ALONE, lambda rate: rate, "first argument .* random key"),
        (SPACE, lambda key: 0.0, "a key, a point and 0 other arguments"),
        (SPACE, 3.0, "the objective must be a function"),
    ],
)
def test_objectives_that_are_not_clear_are_refused(space, objective, match):
    with pytest.raises(ValueError, match=match):
        bonas.run(random(space), objective, KEY, 2)


def test_equal_named_objectives_are_equal():
    assert named_objective(by_name, SPACE) == named_objective(by_name, SPACE)
    assert hash(named_objective(by_name, SPACE)) == hash(
        named_objective(by_name, SPACE)
    )
    with pytest.raises(ValueError, match="an objective with named arguments"):
        named_objective(lambda *arguments: 0.0, SPACE)


# Maximizing


def accuracy(key, u):
    return jnp.where(u[3] < 0.5, jnp.nan, u[1])


def test_maximizing_is_minimizing_the_negative():
    search = bonas.search.evolution(SPACE, population=3)
    most = bonas.run(search, accuracy, KEY, 12, direction="maximize")
    least = bonas.run(search, lambda key, u: -accuracy(key, u), KEY, 12)
    for found, expected in (
        (most.x, least.x),
        (most.y, -least.y),
        (most.best, -least.best),
        (most.losses, least.y),
        (most.best_index, least.best_index),
        (most.best_value, -least.best_value),
    ):
        np.testing.assert_array_equal(found, expected)
    assert np.isnan(most.y).any()
    assert most.best_value == np.nanmax(most.y)
    assert most.best_config(SPACE) == SPACE.decode(most.x[np.nanargmax(most.y)])


def test_many_runs_are_maximized():
    keys = jax.random.split(KEY, 3)
    many = bonas.run_many(SEARCH, accuracy, keys, 8, direction="maximize")
    np.testing.assert_array_equal(many.best_value, np.nanmax(many.y, axis=1))
    np.testing.assert_array_equal(many.best[:, -1], many.best_value)
    np.testing.assert_array_equal(many.sign, [-1.0] * 3)
    one = bonas.run(SEARCH, accuracy, keys[1], 8, direction="maximize")
    np.testing.assert_array_equal(many.y[1], one.y)
    nothing = bonas.run_many(
        SEARCH, lambda key, u: jnp.nan, keys, 3, direction="maximize"
    )
    assert (nothing.best_value == -np.inf).all()


def test_minimize_can_maximize():
    settings = {"trials": 8, "search": SEARCH, "progress": False}
    most = bonas.minimize(
        lambda config: config["rate"], SPACE, direction="maximize", **settings
    )
    least = bonas.minimize(lambda config: -config["rate"], SPACE, **settings)
    assert most.value == max(each.value for each in most.evaluations) == -least.value
    assert most.config == least.config
    data = [each.state.observations.data.y for each in (most, least)]
    np.testing.assert_array_equal(*data)
    failed = bonas.minimize(
        lambda config: float("nan"), SPACE, direction="maximize", **settings
    )
    assert failed.value == -float("inf")
    assert failed.config is None


@pytest.mark.parametrize("runner", [bonas.run, bonas.run_many])
def test_other_directions_are_refused(runner):
    keys = KEY if runner is bonas.run else KEY[None]
    with pytest.raises(ValueError, match="got 'max'"):
        runner(SEARCH, accuracy, keys, 2, direction="max")


def test_regret_of_maximized_runs_is_below_the_optimum():
    keys = jax.random.split(KEY, 3)
    many = bonas.run_many(SEARCH, lambda key, u: u[1], keys, 6, direction="maximize")
    ax = plots.efficiency({"random": many}, optimum=1.0, spread="quartiles")
    shown = ax.get_lines()[0].get_ydata()
    np.testing.assert_allclose(shown, 1.0 - np.median(many.best, axis=0))
    assert "optimum − best" in ax.get_ylabel()


# Precision


def train(key, rate, momentum, depth):
    """Train in float32 by gradient descent, with parameters in the updates of the scan."""
    x = jax.random.normal(key, (8, 3), jnp.float32)

    def step(carry, _):
        w, speed = carry
        slope = jax.grad(lambda w: jnp.mean((x @ w - 1) ** 2))(w)
        speed = momentum * speed - rate / depth * slope
        return (w + speed, speed), None

    start = (jnp.zeros(3, jnp.float32), jnp.zeros(3, jnp.float32))
    (w, _), _ = jax.lax.scan(step, start, None, length=4)
    assert (w * jnp.log(depth)).dtype == jnp.float32
    return jnp.sum(w)


TRAINING = bonas.Space(
    rate=bonas.Float(1e-4, 1.0, log=True),
    momentum=bonas.Ordinal((0.0, 0.5, 0.9)),
    depth=bonas.Int(1, 4),
)


def test_parameters_by_name_leave_training_in_float32():
    history = bonas.run(random(TRAINING), train, KEY, 4)
    assert history.y.dtype == jnp.float64
    np.testing.assert_array_equal(history.y, history.y.astype(jnp.float32))


def test_parameters_by_name_have_the_bits_of_float64():
    def formula(rate, momentum, depth):
        return jnp.sin(rate) ** momentum / depth + jnp.arange(3.0) @ jnp.ones(3) * rate

    named = bonas.run(
        random(TRAINING), lambda key, **values: formula(**values), KEY, 16
    )
    of_point = bonas.run(
        random(TRAINING), lambda key, u: formula(**TRAINING.values(u)), KEY, 16
    )
    np.testing.assert_array_equal(named.x, of_point.x)
    np.testing.assert_array_equal(named.y, of_point.y)


# Other arguments


def shifted(key, u, table, scale=1.0):
    return scale * of_points(key, u) + table["shift"].sum()


def shifted_by_name(key, table, rate, depth, width, kind):
    return by_name(key, depth, rate, width, kind) + table["shift"].sum()


@pytest.mark.parametrize("objective", [shifted, shifted_by_name])
def test_other_arguments_are_passed_on(objective):
    table = {"shift": jnp.array([1.0, 2.0])}
    expected = bonas.run(
        SEARCH, lambda key, u: of_points(key, u) + 3.0, KEY, 6, record=None
    )
    found = bonas.run(SEARCH, objective, KEY, 6, table)
    np.testing.assert_array_equal(found.y, expected.y)
    many = bonas.run_many(SEARCH, objective, KEY[None], 6, table)
    np.testing.assert_array_equal(many.y[0], expected.y)


def test_problems_that_differ_in_their_arguments_share_a_program():
    traces = []

    def objective(key, u, row):
        traces.append(1)
        return u @ row

    rows = jax.random.normal(KEY, (3, 4))
    found = [bonas.run_many(SEARCH, objective, KEY[None], 4, row).y[0] for row in rows]
    first = len(traces)
    bonas.run_many(SEARCH, objective, KEY[None], 4, 2.0 * rows[0])
    assert len(traces) == first
    together = jax.jit(
        jax.vmap(lambda row: bonas.run(SEARCH, objective, KEY, 4, row).y)
    )(rows)
    np.testing.assert_allclose(together, found, rtol=1e-12)


@pytest.mark.parametrize(
    ("objective", "args", "match"),
    [
        (lambda key, u: u[0], (1.0,), "a key, a point and 1 other"),
        (lambda key, u, table: u[0], (), "got arguments key, u, table"),
        (lambda key, rate, table, **rest: rate, (1.0,), "come between the key"),
        (lambda key, u, table: u[0], ("text",), "arrays"),
    ],
)
def test_other_arguments_that_do_not_fit_are_refused(objective, args, match):
    for start in (
        lambda: bonas.run(SEARCH, objective, KEY, 2, *args),
        lambda: bonas.run_many(SEARCH, objective, KEY[None], 2, *args),
    ):
        with pytest.raises((ValueError, TypeError), match=match):
            start()


@pytest.mark.parametrize("returned", [None, {"loss": 1.0}, "1.0", (None, 1.0), [1.0]])
def test_what_is_no_number_is_refused_in_one_line(returned):
    words = "must return one number.* bonas.minimize for any Python function; got .*"
    with pytest.raises(ValueError, match=words) as caught:
        bonas.run(SEARCH, lambda key, u: returned, KEY, 2)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "objective",
    [
        lambda key, u: float(u[0]),
        lambda key, u: 1.0 if u[0] > 0.5 else 0.0,
        lambda key, u: np.sin(np.asarray(u)).sum(),
        lambda key, u: [1.0, 2.0][u[0].astype(int)],
        lambda key, u: u[u > 0.5].sum(),
        lambda key, depth, rate, width, kind: range(depth)[0] * rate,
    ],
    ids=["float", "if", "numpy", "index", "mask", "named"],
)
@pytest.mark.parametrize("runner", [bonas.run, bonas.run_many])
def test_objectives_that_cannot_be_traced_are_refused_in_one_line(objective, runner):
    keys = KEY if runner is bonas.run else KEY[None]
    words = "must be traceable: .* bonas.minimize for any Python function; got"
    with pytest.raises(TypeError, match=words) as caught:
        runner(SEARCH, objective, keys, 2)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is not None


def test_an_option_is_compared_by_its_position():
    options = bonas.Space(units=bonas.Choice(16, 32))
    sizes = values_of(lambda key, *, units: jnp.array((16, 32))[units], options)
    calls = [lambda: 16, lambda: 32]
    switched = values_of(lambda key, *, units: jax.lax.switch(units, calls), options)
    np.testing.assert_array_equal(sizes, switched)
    assert set(sizes) == {16, 32}
