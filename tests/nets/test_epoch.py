"""One epoch: rows and batches, updates against plain numpy, and what holds weights back."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nets import small
from nets.small import check_descent, cut, line, same

from bonas import nets
from bonas.nets import mlp
from bonas.nets.epoch import dropout_factors, split_batches

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(10, 3)), RNG.normal(size=(10, 2))
SHAPE = nets.Shape(inputs=3, outputs=2, depth=3, width=5)
DATA = nets.examples(X, Y, dtype="float64")
FULL = nets.Settings(batch=None, max_epochs=7, optimizer="sgd")

# a line: no hidden layer, so every update can be worked out by hand
LINE = nets.Shape(inputs=2, outputs=1, depth=1, width=1, activations=("relu",))
NO_LAYER = nets.architecture(LINE, ())
SLOPES, LEVEL = np.array([[1.0], [-2.0]]), np.array([0.5])

train = jax.jit(nets.train)


def start_of(shape, network, seed, initial="scaled"):
    key = jax.random.key(seed)
    mask = mlp.masks(key, shape, network)
    return mlp.init(key, shape, network, mask, initial)


start_of = jax.jit(start_of, static_argnames=("initial",))


# A padded network trains as the small one does


@pytest.mark.slow
@pytest.mark.parametrize(
    ("widths", "activation"),
    [((), "relu"), ((4,), "sigmoid"), ((3, 0, 5), "tanh"), ((5, 5, 5), "relu")],
)
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adadelta"])
def test_a_padded_network_trains_as_the_small_one_does(optimizer, widths, activation):
    network = nets.architecture(SHAPE, widths, activation)
    params = start_of(SHAPE, network, 1, "unit")
    settings = nets.Settings(batch=None, max_epochs=7, optimizer=optimizer)
    hyper = nets.Hyperparameters(
        learning_rate=0.02, momentum=0.8 if optimizer == "sgd" else None
    )
    plain = {
        "sgd": small.sgd(0.02, 0.8),
        "adam": small.adam(0.02),
        "adadelta": small.adadelta(0.02),
    }[optimizer]
    found = train(
        jax.random.key(0), SHAPE, settings, network, hyper, DATA, params=params
    )
    layers, losses = small.train(
        cut(params, widths, 3), X, Y, activation, plain, [slice(None)] * 7
    )
    same(cut(found.params, widths, 3), layers, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.losses, losses, rtol=1e-9)


def test_batches_that_are_not_full_count_their_own_rows():
    network = nets.architecture(SHAPE, (4, 3), "tanh")
    params = start_of(SHAPE, network, 1)
    settings = nets.Settings(batch=4, max_epochs=3, optimizer="sgd", shuffle=False)
    found = train(
        jax.random.key(0),
        SHAPE,
        settings,
        network,
        nets.Hyperparameters(learning_rate=0.1),
        DATA,
        params=params,
    )
    rows = [np.arange(4), np.arange(4, 8), np.arange(8, 10)] * 3
    layers, losses = small.train(
        cut(params, (4, 3), 3), X, Y, "tanh", small.sgd(0.1, 0.0), rows
    )
    same(cut(found.params, (4, 3), 3), layers, rtol=1e-9)
    np.testing.assert_allclose(
        found.losses, losses.reshape(3, 3) @ [0.4, 0.4, 0.2], rtol=1e-10
    )


def test_single_point_descent_is_that_of_the_reference(reference):
    """One epoch of Twist's Algorithm 3, in the order of the reference."""
    shape = nets.Shape(
        2, 2, depth=3, width=4, activations=("sigmoid",), output="sigmoid"
    )
    settings = nets.Settings(
        loss="half_squared_error", optimizer="sgd", batch=1, max_epochs=1, shuffle=False
    )
    check_descent(reference("twist_sgd"), train, shape, settings)


def signed(outputs, targets):
    return -outputs[:, 0] * targets[:, 0]


def test_every_row_is_used_once_an_epoch():
    """With the loss -y f and rate 1 the bias gains the target of each row used: powers of two, so
    the sum tells which.
    """
    settings = nets.Settings(loss=signed, optimizer="sgd", batch=1, max_epochs=3)
    data = nets.examples(np.zeros((8, 2)), 2.0 ** np.arange(8), dtype="float64")
    params, _ = line(SLOPES, np.zeros(1))
    found = train(
        jax.random.key(0),
        LINE,
        settings,
        NO_LAYER,
        nets.Hyperparameters(learning_rate=1.0),
        data,
        params=params,
    )
    assert found.params["last"]["bias"][0] == 3 * 255


def test_every_epoch_has_its_own_order():
    draw = jax.jit(lambda key: split_batches(key, jnp.ones(50), 1, True)[0])
    orders = [np.ravel(draw(jax.random.key(seed))) for seed in range(2)]
    for order in orders:
        np.testing.assert_array_equal(np.sort(order), np.arange(50))
        assert (order != np.arange(50)).any()
    assert (orders[0] != orders[1]).any()


def test_rows_without_weight_are_as_if_they_were_not_there():
    weight = np.array([1, 0, 2, 1, 0, 1, 1, 0, 1, 1])
    data = nets.examples(X[:, :2], Y[:, :1], weight=weight, dtype="float64")
    params, layers = line(SLOPES, LEVEL)
    found = train(
        jax.random.key(0),
        LINE,
        FULL,
        NO_LAYER,
        nets.Hyperparameters(learning_rate=0.1),
        data,
        params=params,
    )
    rows = np.repeat(np.arange(10), weight)
    expected, _ = small.train(
        layers, X[:, :2], Y[:, :1], "relu", small.sgd(0.1, 0.0), [rows] * 7
    )
    same(cut(found.params, (), 2), expected, rtol=1e-11)


def test_layers_may_have_their_own_learning_rates():
    """With two hidden layers of at most three, the output still has the last rate."""
    network = nets.architecture(SHAPE, (4, 3), "tanh")
    params = start_of(SHAPE, network, 1)
    once = nets.Settings(batch=None, max_epochs=1, optimizer="sgd")
    hyper = nets.Hyperparameters(learning_rate=np.array([0.1, 0.2, 0.3, 0.4]))
    found = train(jax.random.key(0), SHAPE, once, network, hyper, DATA, params=params)
    before = cut(params, (4, 3), 3)
    slopes = small.gradient(before, X, Y, "tanh")
    expected = [
        (kernel - rate * slope, bias - rate * tilt)
        for (kernel, bias), (slope, tilt), rate in zip(
            before, slopes, (0.1, 0.2, 0.4), strict=True
        )
    ]
    same(cut(found.params, (4, 3), 3), expected, rtol=1e-10)


# Regularization


def test_weights_decay_and_biases_do_not():
    """Inputs of zero leave nothing but decay to the weights, (1 - rate decay)^7, and plain descent
    to the bias.
    """
    data = nets.examples(np.zeros((4, 2)), np.full(4, 3.0), dtype="float64")
    params, _ = line(SLOPES, LEVEL)
    hyper = nets.Hyperparameters(learning_rate=0.1, weight_decay=0.3)
    found = train(jax.random.key(0), LINE, FULL, NO_LAYER, hyper, data, params=params)
    np.testing.assert_allclose(
        found.params["last"]["kernel"], SLOPES * 0.97**7, rtol=1e-12
    )
    np.testing.assert_allclose(
        found.params["last"]["bias"], 3.0 + (LEVEL - 3.0) * 0.8**7, rtol=1e-12
    )


HARSH = nets.Settings(batch=3, max_epochs=4, optimizer="sgd", initial="unit")
LIMITS = np.array([0.5, 0.8, 0.8, 1.1])


@pytest.fixture(scope="module")
def harsh():
    """Sparse sigmoid networks, which have no zeros by themselves, with everything that moves
    weights switched on.
    """
    hyper = nets.Hyperparameters(
        learning_rate=0.5,
        momentum=0.9,
        dropout=0.3,
        input_dropout=0.2,
        weight_decay=0.1,
        max_norm=LIMITS,
    )

    @jax.jit
    def run(key, widths):
        network = nets.architecture(SHAPE, widths, "sigmoid", density=0.5)
        return mlp.masks(jax.random.fold_in(key, 0), SHAPE, network), nets.train(
            key, SHAPE, HARSH, network, hyper, DATA
        )

    return [
        run(jax.random.key(seed), jnp.array(widths))
        for seed, widths in enumerate([(4, 0, 0), (3, 5, 0), (5, 4, 5)])
    ]


@pytest.mark.slow
def test_what_does_not_exist_stays_exactly_zero(harsh):
    for mask, found in harsh:
        for live, leaf in zip(
            jax.tree.leaves(mask), jax.tree.leaves(found.params), strict=True
        ):
            assert (np.asarray(leaf)[~np.asarray(live)] == 0).all()


def test_what_exists_is_trained(harsh):
    for mask, found in harsh:
        for live, leaf in zip(
            jax.tree.leaves(mask), jax.tree.leaves(found.params), strict=True
        ):
            assert (np.asarray(leaf)[np.asarray(live)] != 0).all()


def test_the_limit_on_incoming_weights_is_felt(harsh):
    lengths = np.concatenate(
        [np.linalg.norm(found.params["first"]["kernel"], axis=0) for _, found in harsh]
    )
    assert (np.abs(lengths - 0.5) < 1e-12).any()


def test_incoming_weights_stay_within_the_limit_of_their_layer(harsh):
    for _, found in harsh:
        lengths = {
            name: np.linalg.norm(layer["kernel"], axis=-2)
            for name, layer in found.params.items()
        }
        for name, limit in {"first": 0.5, "hidden": 0.8, "last": 1.1}.items():
            assert (lengths[name] <= limit * (1 + 1e-12)).all()


@pytest.mark.parametrize("rate", [0.1, 0.8])
def test_dropout_keeps_the_mean(rate):
    """Fixed seed.

    A multiplier is 0 or 1/(1 - rate), with variance rate/(1 - rate): five standard errors are
    allowed.
    """
    keep = np.asarray(
        jax.jit(dropout_factors, static_argnums=(2, 3))(
            jax.random.key(3), jnp.array([rate, rate]), (2, 400, 30), "float64"
        )
    )
    np.testing.assert_allclose(np.unique(keep), [0.0, 1 / (1 - rate)])
    assert abs(keep.mean() - 1.0) < 5 * np.sqrt(rate / (1 - rate) / keep.size)


def test_dropout_does_not_depend_on_the_padding():
    draw = jax.jit(dropout_factors, static_argnums=(2, 3))
    small_one, large_one = (
        draw(jax.random.key(3), jnp.full(sizes[0], 0.5), sizes, "float64")
        for sizes in ((2, 5, 4), (3, 5, 9))
    )
    np.testing.assert_array_equal(large_one[:2, :, :4], small_one)


ONE_ROW = nets.Shape(inputs=20, outputs=1, depth=1, width=20, activations=("tanh",))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("widths", "name"), [((20,), "dropout"), ((), "input_dropout")]
)
def test_dropped_units_do_not_learn_and_the_others_make_up_for_them(widths, name):
    """One row, outputs weights of zero, rate 1: each moves by 2 y times what feeds it, which is
    dropped or doubled.
    """
    x, y = RNG.normal(size=(1, 20)), np.array([1.5])
    params = mlp.resize(
        {
            part: {"kernel": np.zeros((1, 1)), "bias": np.zeros(1)}
            for part in ("first", "last")
        }
        | NOTHING,
        ONE_ROW,
    )
    params["first"]["kernel"] = np.eye(20)
    hyper = nets.Hyperparameters(
        learning_rate=1.0, dropout=0.0, input_dropout=0.0
    )._replace(**{name: 0.5})
    settings = nets.Settings(batch=None, max_epochs=1, optimizer="sgd")
    network = nets.architecture(ONE_ROW, widths)
    found = train(
        jax.random.key(2),
        ONE_ROW,
        settings,
        network,
        hyper,
        nets.examples(x, y, dtype="float64"),
        params=params,
    )
    feeds = np.tanh(x[0]) if widths else x[0]
    share = np.asarray(found.params["last"]["kernel"][:, 0]) / (2 * 1.5 * feeds)
    np.testing.assert_allclose(np.unique(share.round(9)), [0.0, 2.0])


NOTHING = {"hidden": {"kernel": np.zeros((0, 1, 1)), "bias": np.zeros((0, 1))}}
