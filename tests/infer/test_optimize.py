"""The optimizer against closed forms and SciPy, from bad places, and at a cost that is known
before.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from jax.flatten_util import ravel_pytree

from bonas import gp, infer
from bonas.checked_data import dataset

KEY = jax.random.key(0)
CURVATURES = jnp.array([1.0, 3.0, 10.0, 30.0, 100.0])


def _quadratic(z):
    return -0.5 * jnp.sum(CURVATURES[: len(z)] * (z - 0.7) ** 2)


def _rosenbrock(z):
    return -jnp.sum(100.0 * (z[1:] - z[:-1] ** 2) ** 2 + (1.0 - z[:-1]) ** 2)


def _beside_nothing(z):
    """log z − 10 z, highest at 0.1 and NaN below 0, where a first step from 0.9 leads."""
    return jnp.sum(jnp.log(z) - 10.0 * z)


def _beside_a_wall(z):
    """The same with −inf behind the wall, and finite gradients there."""
    return jnp.where(z[0] > 0.0, jnp.sum(jnp.log(jnp.abs(z)) - 10.0 * z), -jnp.inf)


def _two_hills(z):
    """Hills at −2 and, higher, at 3."""
    return jnp.logaddexp(-2.0 * (z[0] + 2.0) ** 2, 1.0 - 2.0 * (z[0] - 3.0) ** 2)


def _near_two(key):
    return 2.0 + 0.1 * jax.random.uniform(key, (1,))


# compiled once for each density, number of steps and shape of start, and shared by the tests
@partial(jax.jit, static_argnums=0, static_argnames=("steps", "draw", "restarts"))
def _maximize(density, start, *, steps=50, draw=None, restarts=0):
    return infer.maximize(
        KEY, density, start, steps=steps, draw=draw, restarts=restarts
    )


def test_a_quadratic_is_solved_in_thirty_evaluations():
    z, _ = _maximize(_quadratic, jnp.zeros(5), steps=30)
    np.testing.assert_allclose(z[0], np.full(5, 0.7), atol=1e-8)


@pytest.mark.parametrize(("d", "steps"), [(2, 60), (5, 120)])
def test_the_valley_of_rosenbrock_is_followed_to_its_end(d, steps):
    z, info = _maximize(_rosenbrock, jnp.full(d, -0.5), steps=steps)
    np.testing.assert_allclose(z[0], np.ones(d), atol=1e-5)
    assert info.accept == 1.0


def _hyperposterior():
    """Twelve values of a smooth function of two columns, the second of which matters less."""
    x = np.random.default_rng(0).uniform(size=(12, 2))
    y = np.sin(5.0 * x[:, 0]) + 0.3 * x[:, 1]
    return gp.hyperposterior(gp.matern52(), dataset(x, (y - y.mean()) / y.std()))


@pytest.mark.slow
def test_hyperparameters_agree_with_scipy():
    target = _hyperposterior()
    z, info = _maximize(target.maximizing, target.start, steps=80)
    start, unflatten = ravel_pytree(target.start)
    loss = jax.jit(
        jax.value_and_grad(lambda vector: -target.maximizing(unflatten(vector)))
    )
    found = scipy.optimize.minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-8, "ftol": 1e-15}
    )
    np.testing.assert_allclose(info.log_density[0], -found.fun, rtol=1e-8)
    np.testing.assert_allclose(ravel_pytree(z)[0], found.x, atol=1e-3)


def test_at_the_optimum_it_stays_and_says_so():
    z, info = _maximize(_quadratic, 0.7 * jnp.ones(5), steps=30)
    np.testing.assert_allclose(z[0], np.full(5, 0.7), atol=1e-12)
    assert info.accept == 1.0


def test_stopping_before_the_optimum_is_reported():
    _, info = _maximize(_rosenbrock, -0.5 * jnp.ones(3), steps=4)
    assert info.accept == 0.0


def test_info_is_about_the_point_returned():
    z, info = _maximize(_rosenbrock, -0.5 * jnp.ones(3), steps=7)
    value, gradient = jax.jit(jax.value_and_grad(_rosenbrock))(z[0])
    np.testing.assert_allclose(info.log_density[0], value, rtol=1e-12)
    np.testing.assert_allclose(info.scale, np.linalg.norm(gradient), rtol=1e-10)


@pytest.mark.parametrize("steps", range(2, 22, 4))
def test_a_converged_fit_is_close_to_the_optimum(steps):
    """The gain is estimated, so more than the tolerance of 0.1 is allowed."""
    _, info = _maximize(_rosenbrock, -0.5 * jnp.ones(2), steps=steps)
    assert info.accept == 0.0 or info.log_density > -0.3


@pytest.fixture(scope="module")
def eight():
    """Eight starts and what becomes of them together."""
    starts = 2.0 * jax.random.normal(jax.random.key(2), (8, 3))
    return starts, jax.jit(
        jax.vmap(lambda start: infer.maximize(KEY, _rosenbrock, start, steps=7))
    )(starts)


def test_vmap_gives_what_each_problem_gives_alone(eight):
    starts, (together, _) = eight
    alone = jnp.stack([_maximize(_rosenbrock, start, steps=7)[0] for start in starts])
    np.testing.assert_allclose(together, alone, rtol=1e-9)


def test_the_result_is_never_worse_than_the_start(eight):
    starts, (_, info) = eight
    assert (info.log_density[:, 0] >= jax.vmap(_rosenbrock)(starts)).all()


def test_restarts_find_the_higher_hill():
    """From −1.5 alone the way leads up to −2."""
    z, _ = _maximize(_two_hills, jnp.array([-1.5]), draw=_near_two, restarts=2)
    np.testing.assert_allclose(z[0, 0], 3.0, atol=1e-5)


@pytest.mark.parametrize("density", [_beside_nothing, _beside_a_wall])
def test_steps_to_where_the_density_is_nan_or_zero_are_taken_back(density):
    assert not jnp.isfinite(density(jnp.array([-0.1])))
    z, info = _maximize(density, jnp.array([0.9]))
    np.testing.assert_allclose(z[0, 0], 0.1, rtol=1e-6)
    assert not info.diverging


def test_a_restart_rescues_a_start_without_density():
    z, info = _maximize(_beside_nothing, jnp.array([-1.0]), draw=_near_two, restarts=2)
    np.testing.assert_allclose(z[0, 0], 0.1, rtol=1e-6)
    assert not info.diverging


def test_finding_no_density_at_all_is_reported():
    _, info = _maximize(_beside_nothing, jnp.array([-1.0]))
    assert info.diverging
    assert info.log_density == -jnp.inf


@pytest.fixture(scope="module")
def counted():
    """Two runs of one problem: reports, evaluations made, and how often the density had been traced
    after each.
    """
    calls, traced, reports = [], [], []

    def density(z):
        traced.append(None)
        jax.debug.callback(lambda _: calls.append(None), z)
        return _quadratic(z)

    for start in (jnp.zeros(1), jnp.ones(1)):
        _, info = _maximize(density, start, draw=_near_two, restarts=2, steps=7)
        jax.effects_barrier()
        reports.append((int(info.evaluations), len(calls), len(traced)))
    return reports


def test_a_second_call_compiles_nothing(counted):
    (_, _, first), (_, _, second) = counted
    assert first == second > 0


def test_evaluations_are_those_made(counted):
    reported, made, _ = counted[0]
    assert reported == made


def test_single_precision_in_gives_single_precision_out():
    z, info = _maximize(
        _quadratic, jnp.zeros(1, jnp.float32), draw=_near_two, restarts=1
    )
    assert z.dtype == jnp.float32
    np.testing.assert_allclose(z[0], [0.7], atol=1e-3)
    assert info.accept == 1.0


def test_restarts_without_a_draw_are_refused():
    with pytest.raises(ValueError, match="draw"):
        infer.maximize(KEY, _quadratic, jnp.zeros(5), restarts=1)


@pytest.fixture(scope="module")
def stopped():
    """Runs from eight starts that stop once a step would gain less than 0.01."""
    starts = 0.7 + jax.random.normal(jax.random.key(5), (8, 3))

    @jax.jit
    def climb(start):
        return infer.maximize(KEY, _quadratic, start, steps=60, stop_below=0.01)

    return [climb(start) for start in starts], jax.jit(jax.vmap(climb))(starts)


def test_it_stops_once_steps_gain_little(stopped):
    alone, _ = stopped
    for _, info in alone:
        assert info.evaluations < 40
        assert info.log_density > -0.05  # the maximum is 0
        assert info.accept == 1.0


def test_lanes_that_stop_early_stay_where_they_stopped(stopped):
    alone, (z, info) = stopped
    np.testing.assert_array_equal(
        info.evaluations, [one.evaluations for _, one in alone]
    )
    np.testing.assert_allclose(z, jnp.stack([one for one, _ in alone]), rtol=1e-9)


def test_a_short_first_step_is_not_taken_back():
    """The whole gradient leads too far, and a hundredth of it does not."""
    start = jnp.full(1, 0.75)

    def density(z):
        return -500.0 * jnp.sum((z - 0.7) ** 2)

    evaluations = [
        infer.maximize(
            KEY, density, start, steps=60, first_step=first, stop_below=1e-6
        )[1].evaluations
        for first in (1.0, 0.01)
    ]
    assert evaluations[1] < evaluations[0]
