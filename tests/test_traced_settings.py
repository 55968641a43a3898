"""Numerical settings may be traced: a mapped search equals that of a Python number."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import bonas
from bonas import acquire, gp, surrogates
from bonas import search as searches
from bonas.traced_settings import TracedSetting, as_setting, setting_value

SPACE = bonas.Space(x=bonas.Float(0.0, 1.0), y=bonas.Float(0.0, 1.0))
PARTS = bonas.Space(
    a=bonas.Float(0.0, 1.0),
    k=bonas.Int(1, 2),
    b=bonas.Float(0.0, 1.0, when={"k": (">=", 2)}),
)
KEY = jax.random.key(3)
STEPS = 7
NETWORK = {"chains": 1, "samples": 2, "burn": 1, "first_burn": 2, "steps": 2}
VARIATIONAL = {"members": 1, "draws": 2, "steps": 4, "refit_steps": 2, "samples": 1}


def objective(key, u):
    return ((u - 0.3) ** 2).sum() + 0.1 * jnp.sin(9.0 * u[0])


def model(space=SPACE, **settings):
    settings.setdefault("surrogate", surrogates.gp(gp.matern52(), steps=3))
    return bonas.bayes(
        space,
        initial=3,
        maximizer=acquire.random_candidates(space, candidates=20),
        output="plain",
        **settings,
    )


def scored(function, **settings):
    return model(acquisition=acquire.closed_form_acquisition(function, **settings))


def priors(scale, d):
    log_scale = np.log(scale) if isinstance(scale, float) else jnp.log(scale)
    return {
        "variance": dist.LogNormal(0.0, scale),
        "lengthscale": dist.LogNormal(log_scale, 1.0).expand([d]),
    }


def fixed(scale):
    """Return a kernel without parameters."""
    return gp.Kernel({}, lambda p, a, b: jnp.exp(-((a - b) @ (a - b)) / scale))


def with_prior(scale):
    return surrogates.gp(gp.matern52(partial(priors, scale)), steps=3)


def with_omega(scale):
    prior = {"omega": dist.LogNormal(0.0, scale)}
    kernel = gp.arc(PARTS, prior=lambda d: {"omega": prior["omega"].expand([d])})
    return model(PARTS, surrogate=surrogates.gp(kernel, steps=3))


# Searches as functions of a number near 1.
QUICK = {
    "lcb": lambda v: scored(acquire.lcb, kappa=v),
    "step of evolution": lambda v: searches.evolution(
        SPACE, population=4, step=0.1 * v
    ),
}
SLOW = {
    "hedge": lambda v: model(
        acquisition=acquire.hedge(
            *(
                acquire.closed_form_acquisition(function, xi=0.1 * v)
                for function in (acquire.ei, acquire.pi, acquire.log_ei, acquire.log_pi)
            ),
            eta=v,
        )
    ),
    "penalize": lambda v: model(
        acquisition=acquire.penalize(acquire.scheduled_lcb(0.5 * v), jnp.sum, weight=v)
    ),
    "top_two": lambda v: model(acquisition=acquire.top_two(beta=0.6 * v)),
    "noise": lambda v: model(
        acquisition=acquire.knowledge_gradient(4),
        surrogate=surrogates.gp(gp.matern52(), steps=3, noise=0.01 * v),
    ),
    "prior of a kernel": lambda v: model(surrogate=with_prior(v)),
    "prior of a conditional kernel": with_omega,
    "prior of the noise": lambda v: model(
        surrogate=surrogates.gp(
            gp.matern52(),
            noise=dist.LogNormal(-8.0, v),
            mean=gp.learned_constant(v),
            steps=3,
        )
    ),
    "a fixed kernel": lambda v: model(
        surrogate=surrogates.gp(fixed(v), noise=1e-4, mean=gp.constant(v))
    ),
    "saas": lambda v: model(
        surrogate=surrogates.saas(alpha=0.1 * v, samples=2, thin=1, burn=2, depth=2),
    ),
    "add_gp_ucb": lambda v: searches.add_gp_ucb(
        SPACE, size=1, initial=3, kappa=v, noise=0.01 * v
    ),
    "trust region": lambda v: searches.turbo(
        SPACE,
        initial=3,
        candidates=20,
        length=0.5 * v,
        min_length=0.4 * v,
        max_length=v,
    ),
    "ensemble": lambda v: model(
        surrogate=surrogates.ensemble(
            2,
            (4,),
            steps=4,
            learning_rate=0.02 * v,
            weight_decay=0.01 * v,
            prior=v,
            floor=0.1 * v,
        )
    ),
    "last layer": lambda v: model(
        surrogate=surrogates.last_layer(
            (4,), steps=4, learning_rate=0.02 * v, weight_decay=0.01 * v, samples=2
        )
    ),
    "HMC network": lambda v: model(
        surrogate=surrogates.hmc_network(
            (4,),
            output="sampled",
            floor=0.1 * v,
            initial_step_size=0.01 * v,
            target=0.6 * v,
            **NETWORK,
        )
    ),
    "variational network": lambda v: model(
        surrogate=surrogates.variational_network(
            (4,),
            learning_rate=0.02 * v,
            repeats=v,
            prior_variance=v,
            floor=0.1 * v,
            **VARIATIONAL,
        )
    ),
}
CASES = [
    *(pytest.param(make, id=name) for name, make in QUICK.items()),
    *(
        pytest.param(make, id=name, marks=pytest.mark.slow)
        for name, make in SLOW.items()
    ),
]
VALUES = (0.7, 1.3)


@pytest.mark.parametrize("make", CASES)
def test_a_mapped_setting_is_the_search_of_each_number_in_one_program(make):
    traces = []

    def points(value):
        traces.append(value)
        search = make(value)
        return bonas.run(search, objective, KEY, STEPS).x

    mapped = jax.jit(jax.vmap(points))
    found = mapped(jnp.array(VALUES))
    mapped(jnp.array(VALUES[::-1]))
    assert len(traces) == 1
    # networks are trained in float32
    np.testing.assert_allclose(found[1], points(VALUES[1]), atol=1e-4)


def test_a_sequential_map_gives_the_same_bits_as_python_numbers():
    def points(kappa):
        search = scored(acquire.lcb, kappa=kappa)
        return bonas.run(search, objective, KEY, STEPS).x

    found = jax.jit(lambda kappas: jax.lax.map(points, kappas))(jnp.array(VALUES))
    for kappa, one in zip(VALUES, found, strict=True):
        np.testing.assert_array_equal(one, points(kappa))
    assert (found[0] != found[1]).any()


def test_run_many_accepts_a_search_with_a_traced_setting():
    keys = jax.random.split(KEY, 2)

    def values(step):
        search = searches.evolution(SPACE, population=4, step=step)
        return bonas.run_many(search, objective, keys, STEPS).y

    found = jax.jit(jax.vmap(values))(jnp.array([0.1, 0.2]))
    np.testing.assert_allclose(found[1], values(0.2), rtol=1e-9)


def test_gradients_pass_through_a_setting():
    def score(kappa):
        acquisition = acquire.closed_form_acquisition(acquire.lcb, kappa=kappa)
        settings = dict(acquisition.settings)
        mean, std = jnp.zeros((1, 1)), jnp.full((1, 1), 3.0)
        return acquisition.function(
            mean, std, 0.0, kappa=setting_value(settings["kappa"])
        ).sum()

    assert jax.grad(score)(2.0) == 3.0


@pytest.mark.slow
def test_a_search_with_traced_settings_leaks_no_tracers():
    def run(value):
        search = model(
            acquisition=acquire.closed_form_acquisition(acquire.lcb, kappa=value),
            surrogate=surrogates.gp(gp.se(), noise=value, steps=3),
        )
        return bonas.run(search, objective, KEY, 5)

    with jax.checking_leaks():
        history = jax.eval_shape(jax.vmap(run), jnp.ones(2))
    assert history.x.shape == (2, 5, 2)


def test_numbers_of_all_kinds_are_the_same_setting():
    same = [2, 2.0, np.float32(2.0), np.asarray(2), jnp.asarray(2.0)]
    assert {as_setting("beta", value) for value in same} == {2.0}
    made = {acquire.closed_form_acquisition(bonas.lcb, kappa=value) for value in same}
    assert len(made) == 1


def test_a_traced_setting_has_the_precision_of_other_operands():
    def times(value, x):
        setting = as_setting("scale", value)
        assert isinstance(setting, TracedSetting)
        assert hash(setting) == hash(setting)
        return setting_value(setting) * x

    shapes = jax.eval_shape(times, 1.0, jnp.ones(2, jnp.float32))
    assert shapes.dtype == jnp.float32
    assert jax.eval_shape(times, 1, jnp.ones(2)).dtype == jnp.result_type(float)


def test_an_array_in_place_of_a_number_is_refused():
    with pytest.raises(ValueError, match=r"^beta must be one number; .* use jax.vmap"):
        acquire.top_two(beta=jnp.ones(3))


def test_a_model_without_unknown_hyperparameters_names_none():
    surrogate = surrogates.gp(fixed(1.0), noise=1e-4)
    state = surrogate.init(4, 2)
    assert surrogates.hyperparameters(surrogate, state) == {"kernel": {}, "mean": {}}


@pytest.mark.parametrize("infer", ["map", "slice", "hmc", "nuts"])
def test_a_model_without_unknown_hyperparameters_is_conditioned_on_the_data(infer):
    x = jnp.linspace(0.0, 1.0, 4)[:, None]
    data = bonas.dataset(x, jnp.sin(5.0 * x[:, 0]))
    surrogate = surrogates.gp(fixed(0.1), noise=0.01, infer=infer, samples=2)
    state, info = surrogate.fit(KEY, data, surrogate.init(4, 1))
    mean, std = surrogate.predict(state, x + 0.1)
    expected = gp.predict(gp.condition(fixed(0.1), {}, data, noise=0.01), x + 0.1)
    np.testing.assert_allclose(mean, jnp.broadcast_to(expected.mean, mean.shape))
    np.testing.assert_allclose(std, jnp.broadcast_to(expected.std, std.shape))
    if infer == "map":
        evidence = gp.log_evidence(fixed(0.1), {}, data, noise=0.01)
        np.testing.assert_allclose(info.log_density, evidence)
        assert info.converged
