"""Common mistakes raise clear errors instead of giving wrong numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import bonas
from bonas import gp, infer

X = np.random.default_rng(0).random((20, 3))
DATA = bonas.dataset(X, np.sin(6 * X[:, 0]), capacity=24)
PARAMS = {"variance": 1.0, "lengthscale": jnp.ones(3)}
VECTOR_VALUED = gp.Kernel(
    {"l": dist.HalfNormal(1.0)},
    lambda params, a, b: jnp.exp(-((a - b) ** 2) / params["l"]),
)

MISTAKES = {
    "no brackets": (
        lambda: gp.condition(gp.matern52, PARAMS, DATA, noise=0.1),
        "call it, as in gp.matern52",
    ),
    "no brackets in a sum": (lambda: gp.add(gp.se(), gp.rq), "expected a kernel"),
    "a pair for a dataset": (
        lambda: gp.condition(gp.se(), PARAMS, (X, X[:, 0]), noise=0.1),
        "expected a Dataset",
    ),
    "a number for a mean": (
        lambda: gp.condition(gp.se(), PARAMS, DATA, noise=0.1, mean=0.5),
        "expected a mean",
    ),
    "a missing parameter": (
        lambda: gp.condition(gp.se(), {"variance": 1.0}, DATA, noise=0.1),
        "'lengthscale' is not among",
    ),
    "all parameters for the kernel's": (
        lambda: gp.condition(gp.se(), {"kernel": PARAMS}, DATA, noise=0.1),
        "not among",
    ),
    "a wrong shape": (
        lambda: gp.condition(
            gp.se(), {**PARAMS, "lengthscale": jnp.ones(2)}, DATA, noise=0.1
        ),
        r"shape \(2,\); expected \(3,\)",
    ),
    "a column of noise": (
        lambda: gp.condition(gp.se(), PARAMS, DATA, noise=np.ones((24, 1))),
        "24 rows of capacity",
    ),
    "a kernel of many numbers": (
        lambda: gp.condition(VECTOR_VALUED, {"l": 1.0}, DATA, noise=0.1),
        r"a sum over columns may be missing",
    ),
    "a column that does not exist": (
        lambda: gp.condition(
            gp.on_columns([5], gp.se()),
            {"variance": 1.0, "lengthscale": 1.0},
            DATA,
            noise=0.1,
        ),
        "expected points of at least",
    ),
    "something else for a space": (lambda: gp.arc(3), "expected a Space"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_in_the_callers_words(mistake):
    call, words = MISTAKES[mistake]
    with pytest.raises(ValueError, match=words):
        call()


def test_samples_are_conditioned_with_the_mean_and_noise_they_were_inferred_with():
    target = gp.hyperposterior(gp.se(), DATA, mean=gp.learned_constant())
    params = jax.tree.map(lambda leaf: leaf[None], target.constrain(target.start))
    with pytest.raises(ValueError, match="params do not match noise= and mean="):
        gp.condition_all(gp.se(), params, DATA)
    with pytest.raises(ValueError, match="params do not match noise= and mean="):
        gp.condition_all(gp.se(), params, DATA, noise=0.1, mean=gp.learned_constant())
    several = gp.condition_all(gp.se(), params, DATA, mean=gp.learned_constant())
    with pytest.raises(ValueError, match=r"jax\.vmap\(gp\.predict"):
        gp.predict(several, X)


def test_a_kernel_built_inside_jit_can_be_used_outside():
    def weights(data):
        return gp.condition(
            gp.on_columns([0, 2], gp.se()),
            {"variance": 1.0, "lengthscale": 1.0},
            data,
            noise=0.1,
        ).alpha

    np.testing.assert_allclose(jax.jit(weights)(DATA), weights(DATA), rtol=1e-9)


def test_points_may_be_lists():
    posterior = gp.condition(gp.se(), PARAMS, DATA, noise=0.1)
    point = [[0.1, 0.2, 0.3]]
    np.testing.assert_array_equal(
        gp.predict(posterior, point).mean,
        gp.predict(posterior, jnp.asarray(point)).mean,
    )


def test_an_arc_kernel_of_a_space_knows_its_conditions_and_its_choices():
    space = bonas.Space(
        depth=bonas.Int(1, 3),
        kind=bonas.Choice("a", "b", "c"),
        width=bonas.Int(1, 9, when={"depth": 2}),
    )
    assert gp.arc(space) == gp.arc(space.active, categories=space.categories)


def test_a_value_that_is_not_a_number_is_not_observed():
    failed = bonas.append(DATA, X[0], np.nan)
    assert failed.size == 21
    with_it, without = (
        gp.predict(gp.condition(gp.se(), PARAMS, data, noise=0.1), X).mean
        for data in (failed, DATA)
    )
    np.testing.assert_allclose(with_it, without, rtol=1e-12)


@pytest.mark.slow
def test_inference_without_hope_does_not_report_success():
    def nowhere(z):
        return -jnp.inf * jnp.ones(())

    assert infer.maximize(jax.random.key(0), nowhere, jnp.zeros(2))[1].accept == 0.0
    assert infer.slice_sample(
        jax.random.key(0), nowhere, jnp.zeros(2), samples=2, burn=0
    )[1].diverging.all()


@pytest.mark.parametrize(
    "method", [infer.slice_sample, infer.metropolis, infer.hmc, infer.nuts]
)
def test_a_start_of_whole_numbers_is_taken_for_real_ones(method):
    samples, _ = method(
        jax.random.key(0),
        lambda z: -0.5 * jnp.sum(z**2),
        jnp.zeros(2, int),
        samples=3,
        burn=1,
    )
    assert samples.dtype == jnp.result_type(float)


def test_a_condition_that_ignores_what_it_reads_is_refused():
    """values["act"] == "relu" is False for every act and would never activate the parameter."""
    with pytest.raises(
        ValueError, match=r"'width'.*does not depend on the value of 'act'"
    ):
        bonas.Space(
            depth=bonas.Int(1, 4),
            act=bonas.Choice("relu", "tanh"),
            width=bonas.Int(
                4, 256, when=lambda p: (p["depth"] >= 2) & (p["act"] == "relu")
            ),
        )


def test_kernels_of_equal_spaces_are_one():
    def space():
        return bonas.Space(
            depth=bonas.Int(1, 3), width=bonas.Int(1, 9, when={"depth": (">=", 2)})
        )

    assert gp.arc(space()) == gp.arc(space())
    assert gp.box(space().active) == gp.box(space().active)


@pytest.mark.parametrize("threshold", [0.01, 0.37, 3e-4])
def test_a_condition_on_a_real_number_holds_at_its_own_threshold(threshold):
    lr = bonas.Float(1e-5, 1.0, log=True)
    space = bonas.Space(
        lr=lr, momentum=bonas.Float(0.0, 1.0, when={"lr": (">=", threshold)})
    )
    config = {"lr": threshold, "momentum": 0.5}
    assert set(space.decode(space.encode(config))) == set(config)


def test_conflicting_values_at_one_point_are_averaged_to_seven_digits():
    """With jitter j the posterior mean at a repeated point is the average to within j."""
    x = np.repeat(np.linspace(0, 1, 8), 2)[:, None]
    y = np.sin(4 * x[:, 0]) + np.tile([0.05, -0.05], 8)
    posterior = gp.condition(
        gp.matern52(),
        {"variance": 1.0, "lengthscale": 0.3},
        bonas.dataset(x, y),
        noise=0.0,
    )
    assert posterior.jitter > 0
    np.testing.assert_allclose(
        gp.predict(posterior, x[::2]).mean, np.sin(4 * x[::2, 0]), atol=1e-6
    )
