"""Inference does not start at a saddle point, as that of a network's weights at 0."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from cases import KERNELS, SPACE

import bonas
from bonas import gp, infer, surrogates
from bonas.gp import priors

D = 3
CONDITIONAL = bonas.Space(
    n=bonas.Int(1, 2),
    x=bonas.Float(0.0, 1.0),
    w=bonas.Float(0.0, 1.0, when={"n": (">=", 2)}),
)


class Features(nn.Module):
    """Two learned features of a point."""

    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(nn.tanh(nn.Dense(6)(x)))


def weight_prior(d, scale=1.0):
    shapes = jax.eval_shape(Features().init, jax.random.key(0), jnp.zeros(d))
    return jax.tree.map(lambda leaf: dist.Normal(0.0, scale).expand(leaf.shape), shapes)


def deep_prior(d):
    return {"weights": weight_prior(d), "variance": dist.LogNormal(0.0, 1.0)}


def deep_value(params, a, b):
    difference = Features().apply(params["weights"], a) - Features().apply(
        params["weights"], b
    )
    return params["variance"] * jnp.exp(-0.5 * difference @ difference)


DEEP = gp.Kernel(deep_prior, deep_value)


def jump(x):
    """A function of one direction, which a deep kernel can learn and a stationary one cannot."""
    return jnp.tanh(20.0 * (x[..., 0] + x[..., 1] - 1.0))


@pytest.fixture(scope="module")
def data():
    x = jax.random.uniform(jax.random.key(1), (40, D))
    return bonas.dataset(x, jump(x))


def largest_weight(tree):
    return max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(tree))


@pytest.mark.typed
def test_weights_start_at_a_draw(data):
    start = gp.hyperposterior(DEEP, data).start
    assert largest_weight(start["kernel"]["weights"]) > 0.5
    # positive parameters keep the middle of their prior
    assert start["kernel"]["variance"] == 0.0


def test_weights_in_one_event_start_at_a_draw(data):
    def prior(d):
        priors = deep_prior(d)
        event = jax.tree.map(
            lambda leaf: leaf.to_event(len(leaf.batch_shape)),
            priors["weights"],
            is_leaf=lambda node: isinstance(node, dist.Distribution),
        )
        return {**priors, "weights": event}

    start = gp.hyperposterior(gp.Kernel(prior, deep_value), data).start
    assert largest_weight(start["kernel"]["weights"]) > 0.5


def scalar_value(params, a, b):
    def feature(x):
        return params["v"] * jnp.tanh(params["w1"] * x[0] + params["w2"] * x[1])

    return jnp.exp(-0.5 * (feature(a) - feature(b)) ** 2)


class Normalized(nn.Module):
    """Features of length 1, whose gradient is NaN where all weights are 0."""

    @nn.compact
    def __call__(self, x):
        features = Features()(x)
        return features / jnp.linalg.norm(features)


def test_weights_of_normalized_features_start_where_the_gradient_is_finite(data):
    shapes = jax.eval_shape(Normalized().init, jax.random.key(0), jnp.zeros(D))
    prior = jax.tree.map(lambda leaf: dist.Normal(0.0, 1.0).expand(leaf.shape), shapes)

    def value(weights, a, b):
        difference = Normalized().apply(weights, a) - Normalized().apply(weights, b)
        return jnp.exp(-difference @ difference)

    posterior = gp.hyperposterior(gp.Kernel(prior, value), data)
    slopes = jax.grad(posterior.maximizing)(posterior.start)
    assert infer.all_finite(slopes)
    assert largest_weight(posterior.start["kernel"]) > 0.5


@pytest.mark.parametrize(
    "weight",
    [
        dist.Normal(0.0, 1.0),
        dist.Uniform(-2.0, 2.0),
        dist.TruncatedNormal(0.0, 1.0, low=-2.0, high=2.0),
    ],
    ids=lambda weight: type(weight).__name__,
)
def test_weights_that_are_numbers_or_bounded_start_at_a_draw(weight, data):
    kernel = gp.Kernel(dict.fromkeys(("v", "w1", "w2"), weight), scalar_value)
    start = gp.hyperposterior(kernel, data).start["kernel"]
    assert min(map(abs, start.values())) > 0.01


def test_other_models_start_at_a_draw_too():
    names = ("v", "w1", "w2")
    kernel = gp.Kernel(dict.fromkeys(names, dist.Normal(0.0, 1.0)), scalar_value)
    model = surrogates.additive([range(D)], base=kernel)
    additive = jax.jit(lambda: model.init(8, D).z)()
    assert min(map(abs, jax.tree.leaves(additive["kernel"]))) > 0.01
    model = bonas.curves.freeze_thaw(kernel)
    curves = jax.jit(lambda: model.init(8, D, jnp.array([0.5, 1.0])).z)()
    assert min(map(abs, curves["kernel"].values())) > 0.01
    np.testing.assert_array_equal(curves["mean"], 0.0)


@pytest.mark.parametrize(
    ("prior", "needed"),
    [
        (dist.Normal(0.0, 1.0), True),
        (dist.Normal(0.0, 1.0).expand([2]).to_event(1), True),
        (dist.Uniform(-2.0, 2.0).expand([3]), True),
        (dist.Uniform(-2.0, 2.0).expand([3]).to_event(1), True),
        (dist.Uniform(0.0, 1.0).expand([3]), False),
        (dist.Uniform(-1.0, 3.0), False),
        (dist.LogNormal(0.0, 1.0).expand([3]), False),
        (dist.HalfNormal(1.0), False),
        (dist.Dirichlet(jnp.ones(3)), False),
    ],
)
def test_gradients_are_computed_for_priors_around_zero(prior, needed):
    assert gp.starting_point.has_centered_leaf({"a": {"b": prior}}) == needed


@pytest.mark.parametrize("name", KERNELS)
def test_default_priors_need_a_gradient_only_if_they_have_unbounded_numbers(name):
    prior = gp.hyperprior(KERNELS[name], SPACE.dim)
    needed = gp.starting_point.has_centered_leaf(prior)
    assert needed == any(part in name for part in ("linear", "nested", "box", "add"))


@pytest.mark.parametrize(
    "kernel",
    [
        gp.blend(),
        gp.linear(),
        gp.matern52(priors.log_normal),
        gp.spherical_linear(),
        gp.arc(CONDITIONAL),
        gp.box(CONDITIONAL),
        gp.additive([(0, 1), (2,)], gp.linear()),
    ],
)
def test_parameters_that_can_move_start_in_the_middle(kernel, data):
    start = gp.hyperposterior(kernel, data).start
    target = infer.target(gp.hyperprior(kernel, D), lambda params: 0.0)
    for ours, middle in zip(
        jax.tree.leaves(start), jax.tree.leaves(target.start), strict=True
    ):
        np.testing.assert_array_equal(ours, middle)


def test_a_learned_constant_starts_in_the_middle(data):
    posterior = gp.hyperposterior(gp.blend(), data, mean=gp.learned_constant())
    assert posterior.start["mean"]["constant"] == 0.0


@pytest.mark.slow
def test_a_deep_kernel_learns(data):
    """From the middle of its prior it would predict a constant: an error of one deviation."""
    surrogate = surrogates.gp(DEEP, steps=60)
    state = surrogate.init(len(data.x), D, 1)
    fitted, info = jax.jit(surrogate.fit)(jax.random.key(0), data, state)
    x = jax.random.uniform(jax.random.key(2), (200, D))
    error = surrogate.predict(fitted, x).mean[0] - jump(x)
    assert jnp.sqrt((error**2).mean()) < 0.5 * jnp.std(jump(x))
    assert info.log_density > 20.0 + surrogate.refresh(data, state)[1].log_density
