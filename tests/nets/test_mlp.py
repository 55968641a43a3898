import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nets.small import cut, forward, gradient

from bonas import nets
from bonas.nets import mlp

SHAPE = nets.Shape(inputs=3, outputs=2, depth=4, width=6)
X, Y = (
    np.random.default_rng(0).normal(size=(5, 3)),
    np.random.default_rng(1).normal(size=(5, 2)),
)
LARGE = nets.Shape(inputs=30, outputs=40, depth=3, width=60)
WIDTHS = [
    (0, 0, 0, 0),
    (1, 0, 0, 0),
    (6, 0, 0, 0),
    (4, 5, 0, 0),
    (2, 6, 3, 0),
    (6, 6, 6, 6),
    (0, 4, 0, 5),
    (0, 0, 0, 2),
]


@jax.jit
def drawn(key, architecture):
    mask = mlp.masks(key, SHAPE, architecture)
    return mask, mlp.init(key, SHAPE, architecture, mask, "unit")


@jax.jit
def outputs(params, architecture):
    return nets.apply(SHAPE, params, X, architecture)


@jax.jit
def gradients(params, architecture):
    return jax.grad(
        lambda params: jnp.mean((nets.apply(SHAPE, params, X, architecture) - Y) ** 2)
    )(params)


def leaves_equal(a, b, **tolerance):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for one, other in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(one, other, **tolerance)


# A padded network is the small one


@pytest.mark.parametrize("activation", SHAPE.activations)
@pytest.mark.parametrize("widths", WIDTHS)
def test_a_padded_network_computes_what_the_small_one_does(widths, activation):
    network = nets.architecture(SHAPE, widths, activation)
    _, params = drawn(jax.random.key(1), network)
    np.testing.assert_allclose(
        outputs(params, network),
        forward(cut(params, widths, 3), X, activation),
        rtol=1e-12,
    )


@pytest.mark.slow
@pytest.mark.parametrize("activation", SHAPE.activations)
@pytest.mark.parametrize("widths", WIDTHS)
def test_a_padded_network_has_the_gradients_of_the_small_one(widths, activation):
    network = nets.architecture(SHAPE, widths, activation)
    _, params = drawn(jax.random.key(2), network)
    found = cut(gradients(params, network), widths, 3)
    leaves_equal(
        found,
        gradient(cut(params, widths, 3), X, Y, activation),
        rtol=1e-10,
        atol=1e-14,
    )


def test_vmap_over_architectures_agrees_with_one_at_a_time():
    networks = [
        nets.architecture(SHAPE, widths, i % 3) for i, widths in enumerate(WIDTHS)
    ]
    params = [drawn(jax.random.key(3), network)[1] for network in networks]
    together = jax.jit(jax.vmap(lambda p, a: nets.apply(SHAPE, p, X, a)))(
        nets.stack(params), nets.stack(networks)
    )
    np.testing.assert_allclose(
        together,
        jnp.stack([outputs(*pair) for pair in zip(params, networks, strict=True)]),
        rtol=1e-12,
    )


def test_all_architectures_of_a_shape_are_one_compiled_program():
    for i, widths in enumerate(WIDTHS):
        network = nets.architecture(SHAPE, widths, i % 3)
        outputs(drawn(jax.random.key(1), network)[1], network)
    assert outputs._cache_size() == 1


@pytest.mark.typed
def test_layers_of_no_units_are_dropped_wherever_they_stand():
    """As Twist's trainneuralnetwork does with zeros in the pattern of hidden layers."""
    results = [
        outputs(drawn(jax.random.key(4), a)[1], a)
        for a in (nets.architecture(SHAPE, w) for w in ((0, 5, 0, 3), (5, 3)))
    ]
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("output", ["sigmoid", "tanh"])
def test_the_output_has_its_own_activation(output):
    bounded = nets.Shape(inputs=3, outputs=2, depth=4, width=6, output=output)
    network = nets.architecture(SHAPE, (4, 5), "relu")
    _, params = drawn(jax.random.key(1), network)
    expected = {"sigmoid": lambda z: 1 / (1 + np.exp(-z)), "tanh": np.tanh}[output](
        outputs(params, network)
    )
    np.testing.assert_allclose(
        jax.jit(nets.apply)(bounded, params, X, network), expected, rtol=1e-12
    )


def test_activations_and_deltas_are_those_of_the_reference(reference):
    """Twist's backpropagation, eqs.

    5–8: dC/db of each layer is its delta, dC/dW is delta times the activations before it.
    """
    known = reference("twist_sgd")
    shape = nets.Shape(
        2, 2, depth=3, width=4, activations=("sigmoid",), output="sigmoid"
    )
    network, params = (
        nets.architecture(shape, (3, 2)),
        from_reference(shape, known["W0"], known["b0"]),
    )
    first = known["order"][0]
    x, y = np.array(known["X"]).T[first][None], np.array(known["Y"]).T[first][None]
    loss = jax.jit(
        jax.value_and_grad(
            lambda p: nets.half_squared_error(nets.apply(shape, p, x, network), y)[0]
        )
    )
    error, found = loss(params)
    output = np.array(known["first_point"]["activations"][-1])
    np.testing.assert_allclose(error, 0.5 * np.sum((output - y[0]) ** 2), rtol=1e-12)
    for (kernel, bias), delta, before in zip(
        cut(found, (3, 2), 2),
        known["first_point"]["delta"],
        known["first_point"]["activations"],
        strict=False,
    ):
        np.testing.assert_allclose(bias, delta, rtol=1e-11)
        np.testing.assert_allclose(kernel, np.outer(before, delta), rtol=1e-11)


def from_reference(shape, weights, biases):
    """Padded parameters of a network with two hidden layers; the reference writes W as (units,
    incoming).
    """
    kernels, biases = (
        [np.asarray(w).T for w in weights],
        [np.asarray(b) for b in biases],
    )
    small = {
        "first": {"kernel": kernels[0], "bias": biases[0]},
        "hidden": {"kernel": kernels[1][None], "bias": biases[1][None]},
        "last": {"kernel": kernels[2], "bias": biases[2]},
    }
    return mlp.resize(small, shape)


# What exists


@pytest.mark.parametrize("widths", WIDTHS)
def test_a_network_has_as_many_parameters_as_its_layers_need(widths):
    mask, _ = drawn(jax.random.key(1), nets.architecture(SHAPE, widths))
    sizes = [3, *(w for w in widths if w), 2]
    expected = sum((before + 1) * after for before, after in itertools.pairwise(sizes))
    assert sum(int(leaf.sum()) for leaf in jax.tree.leaves(mask)) == expected


@jax.jit
def large_masks(keys, density):
    network = nets.architecture(LARGE, (50, 20, 60), density=density)
    return jax.vmap(lambda key: mlp.masks(key, LARGE, network))(keys)


@pytest.mark.parametrize("part", ["kernel", "bias"])
@pytest.mark.parametrize("density", [0.2, 0.9])
def test_a_weight_or_bias_exists_with_the_given_chance(density, part):
    """Fixed seed; the tolerance is five standard errors of a proportion."""
    mask = large_masks(jax.random.split(jax.random.key(5), 20), density)
    possible = {
        "kernel": {"first": 30 * 50, "hidden": 50 * 20 + 20 * 60, "last": 60 * 40},
        "bias": {"first": 50, "hidden": 20 + 60, "last": 40},
    }[part]
    for name, each in possible.items():
        n = 20 * each
        assert abs(int(mask[name][part].sum()) / n - density) < 5 * np.sqrt(
            density * (1 - density) / n
        )


# How networks start


def test_the_start_does_not_depend_on_the_padding():
    wide = nets.Shape(inputs=3, outputs=2, depth=5, width=9)
    small, large = (
        nets.architecture(shape, (4, 5), "tanh", density=0.7) for shape in (SHAPE, wide)
    )

    @jax.jit
    def padded(key):
        mask = mlp.masks(key, wide, large)
        return mask, mlp.init(key, wide, large, mask, "unit")

    expected = drawn(jax.random.key(6), small)
    found = [mlp.resize(tree, SHAPE) for tree in padded(jax.random.key(6))]
    leaves_equal(found, list(expected), rtol=1e-14)


# variance of the weights and of the biases of the layers, from the number of incoming weights
STARTS = {
    "scaled": (lambda incoming, gain: gain / incoming, lambda incoming: 0.0),
    "unit": (lambda incoming, gain: 1.0, lambda incoming: 1.0),
    "uniform": (
        lambda incoming, gain: 1.0 / (3.0 * incoming),
        lambda incoming: 1.0 / (3.0 * incoming),
    ),
}


@pytest.mark.parametrize("initial", STARTS)
def test_weights_start_at_the_scale_of_the_live_fan_in(initial):
    """Fixed seed.

    The sample variance of k normal draws has a standard error of √(2/k) of itself: five of them
    are allowed.
    """
    network = nets.architecture(LARGE, (50, 20), "relu")
    start = jax.jit(
        lambda key: mlp.init(
            key, LARGE, network, mlp.masks(key, LARGE, network), initial
        )
    )
    layers = [
        cut(start(key), (50, 20), 30) for key in jax.random.split(jax.random.key(7), 4)
    ]
    weight_variance, bias_variance = STARTS[initial]
    for number, (incoming, gain) in enumerate([(30, 2.0), (50, 2.0), (20, 1.0)]):
        for part, expected in (
            (0, weight_variance(incoming, gain)),
            (1, bias_variance(incoming)),
        ):
            values = np.concatenate([np.ravel(layer[number][part]) for layer in layers])
            assert (
                abs(np.mean(values**2) - expected)
                <= 5 * np.sqrt(2 / values.size) * expected
            )
            assert initial != "uniform" or np.abs(values).max() <= 1 / np.sqrt(incoming)


def test_a_sparse_unit_starts_at_the_scale_of_the_weights_that_it_has():
    """With chance 0.1 a unit has about 5 of 50 incoming weights: the sum of their variances must
    still be the gain, 1 for tanh.

    Fixed seed; 600 sums of k squared normals over k, k at least 1: their mean has a standard error
    below √(2/600).
    """
    network = nets.architecture(LARGE, (50, 60), "tanh", density=0.1)
    masks = jax.jit(lambda key: mlp.masks(key, LARGE, network))
    start = jax.jit(lambda key, mask: mlp.init(key, LARGE, network, mask))
    sums = []
    for key in jax.random.split(jax.random.key(8), 10):
        mask = masks(key)
        kernel = np.asarray(start(key, mask)["hidden"]["kernel"][0])
        sums.append(
            (kernel**2).sum(axis=0)[np.asarray(mask["hidden"]["kernel"][0]).any(axis=0)]
        )
    values = np.concatenate(sums)
    assert abs(values.mean() - 1.0) < 5 * np.sqrt(2 / values.size)


def test_parameters_have_the_precision_asked_for():
    network = nets.architecture(SHAPE, (4, 5))
    mask = jax.eval_shape(drawn, jax.random.key(9), network)[0]
    params = jax.eval_shape(
        lambda key, mask: mlp.init(key, SHAPE, network, mask, dtype=jnp.float32),
        jax.random.key(9),
        mask,
    )
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}


# Shapes and forms


def test_flat_parameters_come_back():
    _, params = drawn(jax.random.key(1), nets.architecture(SHAPE, (4, 5, 6, 1)))
    leaves_equal(mlp.unflatten(mlp.flatten(params), SHAPE), params, rtol=0)


def test_resizing_keeps_what_fits():
    _, params = drawn(jax.random.key(1), nets.architecture(SHAPE, (4, 5)))
    leaves_equal(
        mlp.resize(mlp.resize(params, nets.Shape(3, 2, depth=6, width=11)), SHAPE),
        params,
        rtol=0,
    )


def test_flax_initializes_the_same_structure():
    network = nets.architecture(SHAPE, (4, 5))
    made = jax.eval_shape(
        lambda key: nets.MLP(SHAPE).init(key, X, network)["params"], jax.random.key(0)
    )
    _, params = jax.eval_shape(drawn, jax.random.key(1), network)
    assert jax.tree.map(lambda leaf: leaf.shape, made) == jax.tree.map(
        lambda leaf: leaf.shape, params
    )


# What is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 0}, "width must be an integer of at least 1"),
        ({"depth": 2.0}, "depth must be an integer"),
        ({"activations": ()}, "non-empty tuple"),
        ({"activations": "relu"}, "tuple of names"),
        ({"activations": ("swish",)}, "one of relu, tanh, sigmoid"),
        ({"output": "softmax"}, "got 'softmax'"),
    ],
)
def test_impossible_shapes_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        nets.Shape(**{"inputs": 3, "outputs": 2, "depth": 4, "width": 6, **change})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"widths": (1, 2, 3, 4, 5)}, "at most 4 hidden layers"),
        ({"widths": (7,)}, "widths must be between 0 and 6"),
        ({"widths": (-1,)}, "widths must be between 0 and 6"),
        (
            {"widths": (3,), "activation": "identity"},
            "one of relu, tanh, sigmoid, as in the shape",
        ),
        ({"widths": (3,), "activation": 3}, "activation must be between 0 and 2"),
        ({"widths": (3,), "density": 1.5}, "density must be between 0.0 and 1.0"),
    ],
)
def test_architectures_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        nets.architecture(SHAPE, **settings)


def test_rows_of_the_wrong_length_are_refused():
    network = nets.architecture(SHAPE, (4,))
    with pytest.raises(ValueError, match=r"x of shape \(n, 3\); got \(5, 4\)"):
        nets.apply(
            SHAPE, drawn(jax.random.key(1), network)[1], np.zeros((5, 4)), network
        )


def test_an_unknown_start_is_refused():
    network = nets.architecture(SHAPE, (4,))
    with pytest.raises(
        ValueError, match="initial must be one of scaled, unit, uniform; got 'glorot'"
    ):
        mlp.init(jax.random.key(0), SHAPE, network, {}, "glorot")


# What narrow networks can do


def _follows(points, values):
    """A ReLU network of four units a layer, which is as deep as there are points: the polygon
    through them, from 0 to 0.

    A layer hands on x, adds the last hinge to a sum of rising parts or to one of falling parts, and
    makes the next hinge: nothing of it is negative, so that ReLU changes the hinge alone.
    """
    bends = np.diff(np.diff(values) / np.diff(points), prepend=0.0, append=0.0)
    depth = len(points)
    first = np.array([[1.0, 1.0, 0.0, 0.0]]), np.array([0.0, -points[0], 0.0, 0.0])
    kernels, biases = np.zeros((depth - 1, 4, 4)), np.zeros((depth - 1, 4))
    kernels[:, 0, 0] = kernels[:, 0, 1] = kernels[:, 2, 2] = kernels[:, 3, 3] = 1.0
    kernels[:, 1, 2], kernels[:, 1, 3] = (
        np.maximum(bends[:-1], 0.0),
        np.maximum(-bends[:-1], 0.0),
    )
    biases[:, 1] = -points[1:]
    last = np.array([[0.0], [bends[-1]], [1.0], [-1.0]]), np.zeros(1)
    layers = {"first": first, "hidden": (kernels, biases), "last": last}
    return {
        name: {"kernel": jnp.asarray(kernel), "bias": jnp.asarray(bias)}
        for name, (kernel, bias) in layers.items()
    }


@pytest.mark.slow
def test_narrow_networks_come_as_near_to_a_function_as_depth_allows():
    """Wilton, Theorem 3.2.1, for p = 1: with width at most p + 4 = 5, ∫|f − g| over the line falls
    below any ε.
    """
    line = np.linspace(-1.0, 2.0, 6001)  # f and g are 0 outside of it

    def target(x):
        return np.where(
            (x > 0.0) & (x < 1.0), np.sin(3.0 * np.pi * x) ** 2 * (1.0 + x), 0.0
        )

    distances = []
    for depth in (7, 13, 25):
        shape = nets.Shape(
            inputs=1, outputs=1, depth=depth, width=4, activations=("relu",)
        )
        points = np.linspace(0.0, 1.0, depth)
        network = nets.architecture(shape, [4] * depth)
        g = nets.apply(
            shape, _follows(points, target(points)), jnp.asarray(line[:, None]), network
        )[:, 0]
        assert np.abs(np.asarray(g)[(line < 0.0) | (line > 1.0)]).max() < 1e-9
        distances.append(np.trapezoid(np.abs(np.asarray(g) - target(line)), line))
    assert np.all(np.diff(distances) < 0.0)
    assert distances[-1] < 0.05 * np.trapezoid(target(line), line)
