"""Wrong arguments give error messages that name what was expected."""

from dataclasses import fields
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import bonas
from bonas import acquire, curves, gp, infer, surrogates
from bonas.problems import functions
from bonas.search import random

CAMEL = functions.six_hump_camel
KEY = jax.random.key(0)
MODEL = surrogates.linear()


def first_suggestion(surrogate):
    """Trace a search up to its first fit."""
    search = bonas.bayes(CAMEL.space, surrogate=surrogate, initial=2, output="plain")
    jax.eval_shape(lambda: bonas.run(search, CAMEL.objective, KEY, 3))


def test_a_kernel_is_not_a_surrogate():
    with pytest.raises(ValueError, match=r"got a kernel: use surrogates.gp\(kernel\)"):
        bonas.bayes(CAMEL.space, surrogate=gp.matern52())


@pytest.mark.parametrize(
    "given", ["gp", surrogates.gp, 0], ids=["name", "function", "zero"]
)
def test_a_name_or_a_function_is_not_a_surrogate(given):
    with pytest.raises(
        ValueError, match=r"expected a surrogate, such as surrogates.gp\(\); got"
    ):
        bonas.bayes(CAMEL.space, surrogate=given)


@pytest.mark.parametrize(
    "given", ["random", bonas.bayes, random], ids=["name", "bayes", "random"]
)
def test_a_name_or_a_function_is_not_a_search(given, tmp_path):
    words = r"expected a search, such as bonas.bayes\(space\)"
    with pytest.raises(ValueError, match=words):
        bonas.minimize(lambda config: 0.0, CAMEL.space, search=given)
    with pytest.raises(ValueError, match=words):
        bonas.run(given, CAMEL.objective, KEY, 3)
    with pytest.raises(ValueError, match=words):
        bonas.run_many(given, CAMEL.objective, KEY[None], 3)
    with pytest.raises(ValueError, match=words):
        bonas.Study(tmp_path / "runs.db", CAMEL.space, search=given)
    assert not (tmp_path / "runs.db").exists()


def test_a_dict_is_not_a_space(tmp_path):
    words = r"expected a space, such as bonas.Space\(.*\); got \{'rate': 1\}"
    makers = (bonas.bayes, bonas.search.turbo, bonas.search.add_gp_ucb)
    baselines = (random, bonas.search.sobol, bonas.search.grid, bonas.search.evolution)
    for make in (*makers, *baselines, partial(bonas.curve_search, steps=(1, 2))):
        with pytest.raises(ValueError, match=words):
            make({"rate": 1})
    with pytest.raises(ValueError, match=words):
        bonas.Study(tmp_path / "runs.db", {"rate": 1})


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: surrogates.gp(steps=np.array(3)), "GaussianProcess.steps"),
        (lambda: surrogates.gp(samples=jnp.array(3)), "GaussianProcess.samples"),
        (
            lambda: surrogates.last_layer(activation=np.array("relu")),
            "LastLayer.activation",
        ),
    ],
)
def test_an_array_as_a_setting_of_a_surrogate_is_named(make, name):
    with pytest.raises(TypeError, match=f"{name} must be hashable, .* got "):
        bonas.bayes(CAMEL.space, surrogate=make())


def test_an_array_as_a_setting_of_a_search_is_named():
    search = bonas.search.evolution(CAMEL.space, population=np.array(3))
    with pytest.raises(TypeError, match=r"Evolution.population must be hashable"):
        bonas.run(search, CAMEL.objective, KEY, 3)
    search = bonas.bayes(
        CAMEL.space, acquisition=acquire.max_value_entropy(minima=np.array(4))
    )
    with pytest.raises(TypeError, match=r"Bayes.acquisition.minima must be hashable"):
        bonas.run(search, CAMEL.objective, KEY, 3)


def test_widths_and_groups_may_be_arrays():
    assert surrogates.ensemble(widths=np.array([4, 4])) == surrogates.ensemble(
        widths=(4, 4)
    )
    groups = np.array([[0], [1]])
    assert surrogates.additive(groups) == surrogates.additive([[0], [1]])


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (
            {"maximizer": "refined"},
            "expected a maximizer, such as acquire.gradient_ascent",
        ),
        ({"pending": "believer"}, "pending must be a callable"),
        ({"output": ["plain", "log"]}, "output must be one of"),
        ({"output": ()}, "output must have at least one scale"),
        ({"batch": 2.0}, "batch must be an integer of at least 1; got 2.0"),
        (
            {"pending": acquire.constant_liar},
            r"call it, as in acquire.constant_liar\(\)",
        ),
        ({"acquisition": acquire.thompson}, r"call it, as in acquire.thompson\(\)"),
        ({"acquisition": acquire.joint_ei}, r"call it, as in acquire.joint_ei\(...\)"),
        ({"acquisition": acquire.hedge}, r"call it, as in acquire.hedge\(\)"),
        (
            {"acquisition": acquire.log_q_ei},
            r"cannot call acquire.log_q_ei\(mean, cov, best, normals\) with three arrays",
        ),
        ({"acquisition": acquire.Acquisition}, "pass an instance"),
        (
            {"acquisition": lambda *arrays: acquire.thompson()},
            "must return scores, one for each point; got Thompson",
        ),
        ({"surrogate": surrogates.gp(mean=0.5)}, "expected a mean, such as gp.zero"),
    ],
)
def test_a_wrong_setting_is_refused_when_the_search_is_made(setting, words):
    with pytest.raises(ValueError, match=words):
        bonas.bayes(CAMEL.space, **setting)


@pytest.mark.parametrize(
    "factory",
    [
        acquire.batch_ei,
        acquire.closed_form_acquisition,
        acquire.feasible,
        acquire.max_value_entropy,
        acquire.penalize,
        acquire.per_second,
        acquire.scheduled_lcb,
        acquire.top_two,
        acquire.under_sampled,
    ],
)
def test_a_function_that_creates_an_acquisition_must_be_called(factory):
    words = rf"call it, as in acquire.{factory.__name__}\("
    with pytest.raises(ValueError, match=words):
        bonas.bayes(CAMEL.space, acquisition=factory)
    with pytest.raises(ValueError, match=words):
        acquire.under_sampled(factory)


def test_unknown_settings_of_a_closed_form_are_named():
    with pytest.raises(ValueError, match="with three arrays with the settings kapa"):
        acquire.closed_form_acquisition(acquire.lcb, kapa=1.0)


START = jnp.zeros(2)
CHECKPOINTS = (1, 2)
CURVES = bonas.curve_search(CAMEL.space, CHECKPOINTS)
TRACED = {
    "steps": lambda n: bonas.run(random(CAMEL.space), CAMEL.objective, KEY, n),
    "capacity": lambda n: random(CAMEL.space).init(KEY, n),
    "capacity ": lambda n: bonas.bayes(CAMEL.space).init(KEY, n),
    "initial": lambda n: bonas.bayes(CAMEL.space, initial=n),
    "batch": lambda n: bonas.bayes(CAMEL.space, batch=n),
    "samples": lambda n: surrogates.gp(samples=n),
    "steps ": lambda n: surrogates.gp(steps=n),
    "the range of parameter 'x'": lambda n: bonas.Space(x=bonas.Float(0.0, n)),
    "the range of parameter 'n'": lambda n: bonas.Space(n=bonas.Int(0, n)),
    "candidates": lambda n: bonas.search.turbo(CAMEL.space, candidates=n),
    "population": lambda n: bonas.search.evolution(CAMEL.space, population=n),
    "burn": lambda n: surrogates.saas(burn=n),
    "burn ": lambda n: surrogates.gp(burn=n),
    "restarts": lambda n: surrogates.gp(restarts=n),
    "members": lambda n: surrogates.ensemble(n),
    "chains": lambda n: surrogates.hmc_network(chains=n),
    "depth": lambda n: surrogates.hmc_network(depth=n),
    "widths": lambda n: surrogates.last_layer((4, n)),
    "members ": lambda n: surrogates.variational_network(members=n),
    "samples ": lambda n: curves.gpar_surrogate(samples=n),
    "draws": lambda n: curves.gpar_surrogate(draws=n),
    "batch ": lambda n: acquire.joint_ei(n),
    "draws ": lambda n: acquire.noisy_ei(n),
    "draws  ": lambda n: acquire.batch_ei(n),
    "points": lambda n: acquire.knowledge_gradient(n),
    "minima": lambda n: acquire.max_value_entropy(n),
    "near": lambda n: acquire.gradient_ascent(CAMEL.space, near=n),
    "candidates ": lambda n: acquire.random_candidates(CAMEL.space, candidates=n),
    "capacity  ": lambda n: bonas.empty(n, 2),
    "d": lambda n: bonas.empty(2, n),
    "capacity   ": lambda n: bonas.grow(bonas.empty(2, 2), n),
    "samples  ": lambda n: infer.slice_sample(KEY, jnp.sum, START, samples=n),
    "samples   ": lambda n: infer.nuts(KEY, jnp.sum, START, samples=n),
    "thin": lambda n: infer.metropolis(KEY, jnp.sum, START, samples=2, thin=n),
    "burn  ": lambda n: infer.slice_sample(KEY, jnp.sum, START, samples=2, burn=n),
    "steps  ": lambda n: infer.maximize(KEY, jnp.sum, START, steps=n),
    "budget": lambda n: bonas.run_curves(CURVES, abs, CHECKPOINTS, KEY, n),
    "lie": lambda n: acquire.constant_liar(n),
    "corrected": lambda n: acquire.under_sampled(corrected=n),
    "features": lambda n: surrogates.linear(n),
    "infer": lambda n: surrogates.gp(infer=n),
    "groups": lambda n: surrogates.additive([(n,)]),
    "warm": lambda n: surrogates.ensemble(warm=n),
    "weight_prior": lambda n: surrogates.hmc_network(weight_prior=(n, 1.0)),
    "output": lambda n: bonas.bayes(CAMEL.space, output=n),
    "failures": lambda n: bonas.bayes(CAMEL.space, failures=n),
    "known_noise": lambda n: bonas.bayes(CAMEL.space, known_noise=n),
    "direction": lambda n: bonas.run(
        bonas.bayes(CAMEL.space), CAMEL.objective, KEY, 2, direction=n
    ),
    "steps   ": lambda n: bonas.curve_search(CAMEL.space, (1, n)),
}


@pytest.mark.parametrize("name", TRACED)
def test_a_tracer_in_place_of_a_static_value_is_refused(name):
    words = (
        f"^{name.strip()} must be static, because it determines the compiled program"
    )
    with pytest.raises(TypeError, match=words):
        jax.eval_shape(TRACED[name], 3)


def test_a_tracer_as_a_setting_is_named():
    with pytest.raises(TypeError, match=r"static; got a tracer as Bayes.repeats"):
        jax.eval_shape(
            lambda n: bonas.run(
                bonas.bayes(CAMEL.space, repeats=n), CAMEL.objective, KEY, 3
            ),
            True,
        )


@pytest.mark.parametrize("given", [0, -3, 6.0, "6", True])
def test_numbers_of_evaluations_are_positive_integers(given):
    search = random(CAMEL.space)
    words = f"must be an integer of at least 1; got {given!r}"
    with pytest.raises(ValueError, match=f"steps {words}"):
        bonas.run(search, CAMEL.objective, KEY, given)
    with pytest.raises(ValueError, match=f"steps {words}"):
        bonas.run_many(search, CAMEL.objective, KEY[None], given)
    with pytest.raises(ValueError, match=f"trials {words}"):
        bonas.minimize(lambda config: 0.0, CAMEL.space, trials=given)
    with pytest.raises(ValueError, match=f"samples {words}"):
        surrogates.gp(infer="slice", samples=given)
    with pytest.raises(ValueError, match=f"steps {words}"):
        surrogates.gp(steps=given)


@pytest.mark.parametrize("given", [-1, 1.5, "2", True])
def test_counts_that_may_be_0_are_integers(given):
    words = f"must be an integer of at least 0; got {given!r}"
    with pytest.raises(ValueError, match=f"restarts {words}"):
        surrogates.gp(restarts=given)
    with pytest.raises(ValueError, match=f"burn {words}"):
        surrogates.gp(burn=given)


@pytest.mark.parametrize("make", [gp.arc, gp.box, gp.wedge])
def test_a_dict_is_not_a_prior_of_a_conditional_kernel(make):
    with pytest.raises(TypeError, match="prior must be a function of the number of"):
        make(CAMEL.space, prior={"variance": dist.LogNormal(0.0, 1.0)})


def test_counts_may_be_integers_of_numpy():
    assert bonas.run(random(CAMEL.space), CAMEL.objective, KEY, np.int64(2)).y.size == 2


def test_several_keys_are_for_run_many():
    for keys in (jax.random.split(KEY, 2), jax.random.split(jax.random.PRNGKey(0), 2)):
        with pytest.raises(ValueError, match=r"got keys of shape .*use bonas.run_many"):
            bonas.run(random(CAMEL.space), CAMEL.objective, keys, 3)


def test_a_prior_without_a_parameter_of_the_kernel_is_refused():
    kernel = gp.matern52(lambda d: {"lengthscale": dist.LogNormal(0.0, 1.0)})
    words = "needs the parameter 'variance', but its prior has lengthscale: add"
    with pytest.raises(ValueError, match=words):
        first_suggestion(surrogates.gp(kernel))


def test_a_kernel_needs_a_function():
    with pytest.raises(TypeError, match="value must be a function of params"):
        gp.Kernel(prior={"scale": dist.HalfNormal(1.0)}, value=1.0)


def test_a_number_is_not_a_key():
    search = random(CAMEL.space)
    for call in (bonas.run, bonas.run_many):
        with pytest.raises(
            ValueError, match=r"expected a key, such as jax.random.key\(0\); got 5"
        ):
            call(search, CAMEL.objective, 5, 3)


def test_keys_of_the_old_kind_still_run():
    assert bonas.run(
        random(CAMEL.space), CAMEL.objective, jax.random.PRNGKey(0), 3
    ).y.shape == (3,)


def with_method(name, method):
    """Return MODEL with one method replaced, by a subclass."""
    changed = type("Changed", (type(MODEL),), {name: method})
    return changed(
        **{field.name: getattr(MODEL, field.name) for field in fields(MODEL)}
    )


@pytest.mark.parametrize(
    "predict",
    [
        lambda self, state, x: MODEL.predict(state, x).mean,
        lambda self, state, x: gp.Prediction(jnp.zeros(len(x)), jnp.ones(len(x))),
        lambda self, state, x: gp.Prediction(
            jnp.zeros((1, len(x))), jnp.ones((2, len(x)))
        ),
    ],
    ids=["no prediction", "one axis", "unequal"],
)
def test_predictions_of_another_shape_are_refused(predict):
    words = r"a surrogate must predict gp.Prediction\(mean, std\) of shape \(s, 3\)"
    with pytest.raises(ValueError, match=words):
        first_suggestion(with_method("predict", predict))


def test_a_fit_that_changes_the_shape_of_its_state_is_refused():
    def fit(self, key, data, state):
        def double(leaf):
            return jnp.concatenate([leaf, leaf]) if jnp.ndim(leaf) else leaf

        return jax.tree.map(double, state), None

    words = "fit must return a state like that of its init: .* must be .*; got"
    with pytest.raises(ValueError, match=words):
        first_suggestion(with_method("fit", fit))


def test_a_fit_that_returns_another_kind_of_state_is_refused():
    def fit(self, key, data, state):
        return (1.0, 2.0), None

    with pytest.raises(
        ValueError, match="fit must return a state like that of its init"
    ):
        first_suggestion(with_method("fit", fit))


FLOAT32_BOUNDS = [
    (bonas.Float(-1e300, 1e300), "expected bounds within ±3.4e[+]38 in float32"),
    (bonas.Float(1e-300, 1e-290, log=True), "expected low >= 1.18e-38 in float32"),
    (bonas.Int(0, 2**40), "expected bounds within ±2.15e[+]09 in int32"),
]


@pytest.mark.parametrize(("parameter", "message"), FLOAT32_BOUNDS)
def test_bounds_beyond_the_precision_are_refused(parameter, message):
    space = bonas.Space(a=parameter)
    random(space).init(jax.random.key(0), 3)
    with jax.enable_x64(False):
        for use in (bonas.bayes, lambda space: bonas.minimize(abs, space)):
            with pytest.raises(ValueError, match=f"'a': {message}"):
                use(space)


def test_integers_beyond_64_bits_are_refused():
    with pytest.raises(ValueError, match="in int64; got 0 and 18446744073709551616"):
        bonas.bayes(bonas.Space(a=bonas.Int(0, 2**64)))
