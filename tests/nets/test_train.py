import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from nets import small
from nets.small import cut
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from bonas import nets
from bonas.nets import mlp
from bonas.nets.optimisers import keep_mask
from bonas.nets.train import COMPLETE, DIVERGED, SETTLED, STALE, batches, go_on, start

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(10, 3)), RNG.normal(size=(10, 2))
SHAPE = nets.Shape(inputs=3, outputs=2, depth=3, width=5)
DATA = nets.examples(X, Y, dtype="float64")
FULL = nets.Settings(batch=None, max_epochs=7, optimiser="sgd")
EVERY = slice(None)

# a line: no hidden layer, so every update can be worked out by hand
LINE = nets.Shape(inputs=2, outputs=1, depth=1, width=1, activations=("relu",))
NO_LAYER = nets.architecture(LINE, ())
SLOPES, LEVEL = np.array([[1.0], [-2.0]]), np.array([0.5])

train = jax.jit(nets.train)


def line(kernel, bias):
    """Parameters of the network without hidden layers, and its layers for the plain version."""
    first = {"kernel": np.zeros((2, 1)), "bias": np.zeros(1)}
    hidden = {"kernel": np.zeros((0, 1, 1)), "bias": np.zeros((0, 1))}
    return {"first": first, "hidden": hidden, "last": {"kernel": kernel, "bias": bias}}, [(kernel, bias)]


def same(found, expected, **tolerance):
    for pair, other in zip(found, expected, strict=True):
        for leaf, known in zip(pair, other, strict=True):
            np.testing.assert_allclose(leaf, known, **tolerance)


def start_of(shape, network, seed, initial="scaled"):
    key = jax.random.key(seed)
    mask = mlp.masks(key, shape, network)
    return mlp.init(key, shape, network, mask, initial)


start_of = jax.jit(start_of, static_argnames=("initial",))


# A padded network trains as the small one does


@pytest.mark.parametrize(("widths", "activation"), [((), "relu"), ((4,), "sigmoid"), ((3, 0, 5), "tanh"), ((5, 5, 5), "relu")])
@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adadelta"])
def test_a_padded_network_trains_as_the_small_one_does(optimiser, widths, activation):
    network = nets.architecture(SHAPE, widths, activation)
    params = start_of(SHAPE, network, 1, "unit")
    settings = nets.Settings(batch=None, max_epochs=7, optimiser=optimiser)
    hyper = nets.Hyper(learning_rate=0.02, momentum=0.8 if optimiser == "sgd" else None)
    plain = {"sgd": small.sgd(0.02, 0.8), "adam": small.adam(0.02), "adadelta": small.adadelta(0.02)}[optimiser]
    found = train(jax.random.key(0), SHAPE, settings, network, hyper, DATA, params=params)
    layers, losses = small.train(cut(params, widths, 3), X, Y, activation, plain, [EVERY] * 7)
    same(cut(found.params, widths, 3), layers, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.losses, losses, rtol=1e-9)


def test_batches_that_are_not_full_count_their_own_rows():
    network = nets.architecture(SHAPE, (4, 3), "tanh")
    params = start_of(SHAPE, network, 1)
    settings = nets.Settings(batch=4, max_epochs=3, optimiser="sgd", shuffle=False)
    found = train(jax.random.key(0), SHAPE, settings, network, nets.Hyper(learning_rate=0.1), DATA, params=params)
    rows = [np.arange(4), np.arange(4, 8), np.arange(8, 10)] * 3
    layers, losses = small.train(cut(params, (4, 3), 3), X, Y, "tanh", small.sgd(0.1, 0.0), rows)
    same(cut(found.params, (4, 3), 3), layers, rtol=1e-9)
    np.testing.assert_allclose(found.losses, losses.reshape(3, 3) @ [0.4, 0.4, 0.2], rtol=1e-10)


def test_single_point_descent_is_that_of_the_reference(reference):
    """One epoch of Twist's Algorithm 3, in the order of the reference."""
    known = reference("twist_sgd")
    shape = nets.Shape(2, 2, depth=3, width=4, activations=("sigmoid",), output="sigmoid")
    kernels, biases = [np.array(w).T for w in known["W0"]], [np.array(b) for b in known["b0"]]
    exact = {
        "first": {"kernel": kernels[0], "bias": biases[0]},
        "hidden": {"kernel": kernels[1][None], "bias": biases[1][None]},
        "last": {"kernel": kernels[2], "bias": biases[2]},
    }
    x, y = np.array(known["X"]).T, np.array(known["Y"]).T
    data = nets.examples(x[known["order"]], y[known["order"]], x, y, dtype="float64")
    settings = nets.Settings(loss="half_squared_error", optimiser="sgd", batch=1, max_epochs=1, shuffle=False)
    hyper, network = nets.Hyper(learning_rate=known["eta"]), nets.architecture(shape, (3, 2))
    found = train(jax.random.key(0), shape, settings, network, hyper, data, params=mlp.resize(exact, shape))
    for (kernel, bias), weight, level in zip(cut(found.params, (3, 2), 2), known["W_after"], known["b_after"], strict=True):
        np.testing.assert_allclose(kernel, np.array(weight).T, rtol=1e-12)
        np.testing.assert_allclose(bias, level, rtol=1e-12)
    np.testing.assert_allclose(found.final, [known["cost_after"]], rtol=1e-12)


def signed(outputs, targets):
    return -outputs[:, 0] * targets[:, 0]


def test_every_row_is_used_once_an_epoch():
    """With the loss -y f and rate 1 the bias gains the target of each row used: powers of two, so the sum tells which."""
    settings = nets.Settings(loss=signed, optimiser="sgd", batch=1, max_epochs=3)
    data = nets.examples(np.zeros((8, 2)), 2.0 ** np.arange(8), dtype="float64")
    params, _ = line(SLOPES, np.zeros(1))
    found = train(jax.random.key(0), LINE, settings, NO_LAYER, nets.Hyper(learning_rate=1.0), data, params=params)
    assert found.params["last"]["bias"][0] == 3 * 255


def test_every_epoch_has_its_own_order():
    draw = jax.jit(lambda key: batches(key, jnp.ones(50), 1, True)[0])
    orders = [np.ravel(draw(jax.random.key(seed))) for seed in range(2)]
    for order in orders:
        np.testing.assert_array_equal(np.sort(order), np.arange(50))
        assert (order != np.arange(50)).any()
    assert (orders[0] != orders[1]).any()


def test_rows_without_weight_are_as_if_they_were_not_there():
    weight = np.array([1, 0, 2, 1, 0, 1, 1, 0, 1, 1])
    data = nets.examples(X[:, :2], Y[:, :1], weight=weight, dtype="float64")
    params, layers = line(SLOPES, LEVEL)
    found = train(jax.random.key(0), LINE, FULL, NO_LAYER, nets.Hyper(learning_rate=0.1), data, params=params)
    rows = np.repeat(np.arange(10), weight)
    expected, _ = small.train(layers, X[:, :2], Y[:, :1], "relu", small.sgd(0.1, 0.0), [rows] * 7)
    same(cut(found.params, (), 2), expected, rtol=1e-11)


def test_layers_may_have_their_own_learning_rates():
    """With two hidden layers of at most three, the output still has the last rate."""
    network = nets.architecture(SHAPE, (4, 3), "tanh")
    params = start_of(SHAPE, network, 1)
    once = nets.Settings(batch=None, max_epochs=1, optimiser="sgd")
    hyper = nets.Hyper(learning_rate=np.array([0.1, 0.2, 0.3, 0.4]))
    found = train(jax.random.key(0), SHAPE, once, network, hyper, DATA, params=params)
    before = cut(params, (4, 3), 3)
    slopes = small.gradient(before, X, Y, "tanh")
    expected = [
        (kernel - rate * slope, bias - rate * tilt)
        for (kernel, bias), (slope, tilt), rate in zip(before, slopes, (0.1, 0.2, 0.4), strict=True)
    ]
    same(cut(found.params, (4, 3), 3), expected, rtol=1e-10)


# Regularisation


def test_weights_decay_and_biases_do_not():
    """Inputs of zero leave nothing but decay to the weights, (1 - rate decay)^7, and plain descent to the bias."""
    data = nets.examples(np.zeros((4, 2)), np.full(4, 3.0), dtype="float64")
    params, _ = line(SLOPES, LEVEL)
    hyper = nets.Hyper(learning_rate=0.1, weight_decay=0.3)
    found = train(jax.random.key(0), LINE, FULL, NO_LAYER, hyper, data, params=params)
    np.testing.assert_allclose(found.params["last"]["kernel"], SLOPES * 0.97**7, rtol=1e-12)
    np.testing.assert_allclose(found.params["last"]["bias"], 3.0 + (LEVEL - 3.0) * 0.8**7, rtol=1e-12)


HARSH = nets.Settings(batch=3, max_epochs=4, optimiser="sgd", initial="unit")
LIMITS = np.array([0.5, 0.8, 0.8, 1.1])


@pytest.fixture(scope="module")
def harsh():
    """Sparse sigmoid networks, which have no zeros by themselves, with everything that moves weights switched on."""
    hyper = nets.Hyper(learning_rate=0.5, momentum=0.9, dropout=0.3, input_dropout=0.2, weight_decay=0.1, max_norm=LIMITS)

    @jax.jit
    def run(key, widths):
        network = nets.architecture(SHAPE, widths, "sigmoid", density=0.5)
        return mlp.masks(jax.random.fold_in(key, 0), SHAPE, network), nets.train(key, SHAPE, HARSH, network, hyper, DATA)

    return [run(jax.random.key(seed), jnp.array(widths)) for seed, widths in enumerate([(4, 0, 0), (3, 5, 0), (5, 4, 5)])]


def test_what_does_not_exist_stays_exactly_zero(harsh):
    for mask, found in harsh:
        for live, leaf in zip(jax.tree.leaves(mask), jax.tree.leaves(found.params), strict=True):
            assert (np.asarray(leaf)[~np.asarray(live)] == 0).all()


def test_what_exists_is_trained(harsh):
    for mask, found in harsh:
        for live, leaf in zip(jax.tree.leaves(mask), jax.tree.leaves(found.params), strict=True):
            assert (np.asarray(leaf)[np.asarray(live)] != 0).all()


def test_the_limit_on_incoming_weights_is_felt(harsh):
    lengths = np.concatenate([np.linalg.norm(found.params["first"]["kernel"], axis=0) for _, found in harsh])
    assert (np.abs(lengths - 0.5) < 1e-12).any()


def test_incoming_weights_stay_within_the_limit_of_their_layer(harsh):
    for _, found in harsh:
        lengths = {name: np.linalg.norm(layer["kernel"], axis=-2) for name, layer in found.params.items()}
        for name, limit in {"first": 0.5, "hidden": 0.8, "last": 1.1}.items():
            assert (lengths[name] <= limit * (1 + 1e-12)).all()


@pytest.mark.parametrize("rate", [0.1, 0.8])
def test_dropout_keeps_the_mean(rate):
    """Fixed seed. A multiplier is 0 or 1/(1 - rate), with variance rate/(1 - rate): five standard errors are allowed."""
    keep = np.asarray(
        jax.jit(keep_mask, static_argnums=(2, 3))(jax.random.key(3), jnp.array([rate, rate]), (2, 400, 30), "float64")
    )
    np.testing.assert_allclose(np.unique(keep), [0.0, 1 / (1 - rate)])
    assert abs(keep.mean() - 1.0) < 5 * np.sqrt(rate / (1 - rate) / keep.size)


def test_dropout_does_not_depend_on_the_padding():
    draw = jax.jit(keep_mask, static_argnums=(2, 3))
    small_one, large_one = (
        draw(jax.random.key(3), jnp.full(sizes[0], 0.5), sizes, "float64") for sizes in ((2, 5, 4), (3, 5, 9))
    )
    np.testing.assert_array_equal(large_one[:2, :, :4], small_one)


ONE_ROW = nets.Shape(inputs=20, outputs=1, depth=1, width=20, activations=("tanh",))


@pytest.mark.parametrize(("widths", "name"), [((20,), "dropout"), ((), "input_dropout")])
def test_dropped_units_do_not_learn_and_the_others_make_up_for_them(widths, name):
    """One row, outputs weights of zero, rate 1: each moves by 2 y times what feeds it, which is dropped or doubled."""
    x, y = RNG.normal(size=(1, 20)), np.array([1.5])
    params = mlp.resize(
        {part: {"kernel": np.zeros((1, 1)), "bias": np.zeros(1)} for part in ("first", "last")} | NOTHING, ONE_ROW
    )
    params["first"]["kernel"] = np.eye(20)
    hyper = nets.Hyper(learning_rate=1.0, dropout=0.0, input_dropout=0.0)._replace(**{name: 0.5})
    settings = nets.Settings(batch=None, max_epochs=1, optimiser="sgd")
    network = nets.architecture(ONE_ROW, widths)
    found = train(jax.random.key(2), ONE_ROW, settings, network, hyper, nets.examples(x, y, dtype="float64"), params=params)
    feeds = np.tanh(x[0]) if widths else x[0]
    share = np.asarray(found.params["last"]["kernel"][:, 0]) / (2 * 1.5 * feeds)
    np.testing.assert_allclose(np.unique(share.round(9)), [0.0, 2.0])


NOTHING = {"hidden": {"kernel": np.zeros((0, 1, 1)), "bias": np.zeros((0, 1))}}


# When a run ends

SLOW = nets.Hyper(learning_rate=0.02)


def descent(rate, epochs):
    _, layers = line(SLOPES, LEVEL)
    return small.train(layers, X[:, :2], Y[:, :1], "relu", small.sgd(rate, 0.0), [EVERY] * epochs)


@pytest.mark.parametrize("least", [1, 60])
def test_a_settled_run_ends_where_a_plain_loop_would(least):
    """By itself it settles after a number of epochs between the two least numbers."""
    tolerance, most = 3e-3, 80
    settings = nets.Settings(batch=None, max_epochs=most, min_epochs=least, optimiser="sgd", tolerance=tolerance)
    data, hyper = nets.examples(X[:, :2], Y[:, :1], dtype="float64"), nets.Hyper(learning_rate=0.1)
    found = train(jax.random.key(0), LINE, settings, NO_LAYER, hyper, data, params=line(SLOPES, LEVEL)[0])
    settled = np.flatnonzero(np.abs(np.diff(descent(0.1, most)[1])) < tolerance) + 2  # epochs, counted from one
    assert 1 < settled[0] < 60
    expected = settled[settled >= least][0]
    assert (int(found.epochs), int(found.kept), int(found.status)) == (expected, expected, SETTLED)
    same(cut(found.params, (), 2), descent(0.1, expected)[0], rtol=1e-10)
    assert np.isfinite(found.losses[:expected]).all()
    assert np.isnan(found.losses[expected:]).all()


def validated(rate, epochs, valid_x, valid_y):
    return np.array([small.squared(descent(rate, epoch)[0], valid_x, valid_y, "relu") for epoch in epochs])


# halfway between the start and where training goes: validation improves first, and then no more
MIDDLE = (descent(0.02, 40)[0][0], descent(0.02, 0)[0][0])
VALID_X = RNG.normal(size=(6, 2))
VALID_Y = VALID_X @ (MIDDLE[0][0] + MIDDLE[1][0]) / 2 + (MIDDLE[0][1] + MIDDLE[1][1]) / 2
HELD = nets.examples(X[:, :2], Y[:, :1], VALID_X, VALID_Y, dtype="float64")
PATIENT = nets.Settings(batch=None, max_epochs=60, optimiser="sgd", patience=3, checkpoints=2)


@pytest.fixture(scope="module")
def patient():
    return train(jax.random.key(0), LINE, PATIENT, NO_LAYER, SLOW, HELD, params=line(SLOPES, LEVEL)[0])


def test_validation_happens_at_the_checkpoints(patient):
    epochs = np.arange(2, int(patient.epochs) + 1, 2)
    np.testing.assert_allclose(patient.metrics[: len(epochs), 0], validated(0.02, epochs, VALID_X, VALID_Y), rtol=1e-9)
    assert patient.metrics.shape == (30, 1)
    assert np.isnan(patient.metrics[len(epochs) :]).all()


def test_patience_ends_a_run_where_a_plain_loop_would(patient):
    best, stale, kept = np.inf, 0, 0
    for epoch in range(2, 61, 2):
        value = validated(0.02, [epoch], VALID_X, VALID_Y)[0]
        best, stale, kept = (value, 0, epoch) if value < best else (best, stale + 1, kept)
        if stale == 3:
            break
    assert 2 < kept < epoch < 60
    assert (int(patient.epochs), int(patient.kept), int(patient.status)) == (epoch, kept, STALE)


def test_patience_keeps_the_best_parameters(patient):
    same(cut(patient.params, (), 2), descent(0.02, int(patient.kept))[0], rtol=1e-10)
    np.testing.assert_allclose(patient.final, np.nanmin(patient.metrics, axis=0), rtol=1e-12)


def test_a_run_that_ends_before_its_first_checkpoint_keeps_what_it_has():
    found = train(jax.random.key(0), LINE, PATIENT, NO_LAYER, SLOW._replace(epochs=1), HELD, params=line(SLOPES, LEVEL)[0])
    assert (int(found.epochs), int(found.kept), int(found.status)) == (1, 1, COMPLETE)
    same(cut(found.params, (), 2), descent(0.02, 1)[0], rtol=1e-10)


LOOKS = nets.Settings(
    batch=None, max_epochs=9, optimiser="sgd", checkpoints=(1, 4, 9), metrics=("squared_error", "half_squared_error")
)


def given(rate, epochs):
    hyper = nets.Hyper(learning_rate=rate, epochs=epochs)
    return nets.train(jax.random.key(0), LINE, LOOKS, NO_LAYER, hyper, HELD, params=line(SLOPES, LEVEL)[0])


@pytest.fixture(scope="module")
def one_at_a_time():
    program = jax.jit(given)
    return [program(rate, epochs) for rate, epochs in ((0.02, 9), (1e100, 9), (0.05, 5), (0.01, 0))]


def test_validation_happens_after_given_epochs_and_measures_every_metric(one_at_a_time):
    expected = validated(0.02, [1, 4, 9], VALID_X, VALID_Y)
    np.testing.assert_allclose(one_at_a_time[0].metrics, np.stack([expected, expected / 2], axis=1), rtol=1e-9)


def test_checkpoints_after_the_end_are_not_a_number(one_at_a_time):
    np.testing.assert_array_equal(np.isnan(one_at_a_time[2].metrics[:, 0]), [False, False, True])


def test_a_network_trains_its_own_number_of_epochs(one_at_a_time):
    assert [(int(found.epochs), int(found.status)) for found in one_at_a_time[2:]] == [(5, COMPLETE), (0, COMPLETE)]
    same(cut(one_at_a_time[2].params, (), 2), descent(0.05, 5)[0], rtol=1e-10)
    same(cut(one_at_a_time[3].params, (), 2), [(SLOPES, LEVEL)], rtol=0)


def test_a_diverged_run_ends_with_its_epoch_and_the_last_finite_parameters(one_at_a_time):
    found = one_at_a_time[1]
    with np.errstate(all="ignore"):
        plain = [descent(1e100, epoch) for epoch in range(1, 10)]
    finite = [np.isfinite(losses).all() and all(np.isfinite(leaf).all() for leaf in layers[0]) for layers, losses in plain]
    expected = finite.index(False) + 1
    assert expected > 1
    assert (int(found.epochs), int(found.kept), int(found.status)) == (expected, expected - 1, DIVERGED)
    same(cut(found.params, (), 2), plain[expected - 2][0], rtol=1e-10)
    assert np.isnan(found.final).all()


@pytest.mark.parametrize("axis", [None, "networks"])
def test_vmap_agrees_with_one_at_a_time_and_a_diverged_lane_harms_no_other(one_at_a_time, axis):
    def lane(rate, epochs):
        hyper = nets.Hyper(learning_rate=rate, epochs=epochs)
        return nets.train(jax.random.key(0), LINE, LOOKS, NO_LAYER, hyper, HELD, params=line(SLOPES, LEVEL)[0], axis=axis)

    rates, epochs = jnp.array([0.02, 1e100, 0.05, 0.01]), jnp.array([9, 9, 5, 0])
    together = jax.jit(jax.vmap(lane, axis_name="networks"))(rates, epochs)
    for found, expected in zip(jax.tree.leaves(together), jax.tree.leaves(nets.stack(one_at_a_time)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_other_hyperparameters_and_keys_compile_nothing_new():
    """And neither do equal settings that were written twice."""
    data, before = nets.examples(X[:, :2], Y[:, :1], dtype="float64"), train._cache_size()
    for seed, rate in ((0, 0.1), (1, 0.2)):
        settings, hyper = nets.Settings(batch=5, max_epochs=7), nets.Hyper(learning_rate=rate, epochs=seed + 3)
        train(jax.random.key(seed), LINE, settings, NO_LAYER, hyper, data)
    assert train._cache_size() == before + 1


# Classification


def test_cross_entropy_finds_the_maximum_likelihood_of_scikit_learn():
    rng = np.random.default_rng(3)
    labels = np.repeat([0, 1, 2], 15)
    x = rng.normal(size=(45, 2)) + np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])[labels]
    shape = nets.Shape(inputs=2, outputs=3, depth=1, width=1, activations=("relu",))
    settings = nets.Settings(
        loss="cross_entropy", metrics=("cross_entropy", "accuracy"), batch=None, max_epochs=3000, checkpoints=3000
    )
    data = nets.examples(x, labels, x, labels, dtype="float64")
    found = train(jax.random.key(0), shape, settings, nets.architecture(shape, ()), nets.Hyper(learning_rate=0.02), data)
    known = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x, labels)
    np.testing.assert_allclose(found.final[0], log_loss(labels, known.predict_proba(x)), rtol=1e-4)
    np.testing.assert_allclose(found.final[1], known.score(x, labels), atol=1e-12)


# Precision


def test_training_is_in_float32_unless_told_otherwise():
    """Hyperparameters of another precision change nothing."""
    hyper = nets.Hyper(*(jnp.asarray(0.1) for _ in nets.Hyper._fields))._replace(epochs=jnp.asarray(3))
    assert hyper.momentum.dtype == jnp.dtype("float64")
    data, network = nets.examples(X, Y, X, Y), nets.architecture(SHAPE, (4,))
    found = jax.eval_shape(lambda key, hyper: nets.train(key, SHAPE, FULL, network, hyper, data), jax.random.key(0), hyper)
    kinds = {leaf.dtype for leaf in jax.tree.leaves((found.params, found.losses, found.metrics, found.final))}
    assert kinds == {jnp.dtype("float32")}


def test_training_can_be_exported_for_accelerators():
    def program(key):
        return nets.train(jax.random.wrap_key_data(key), LINE, FULL, NO_LAYER, nets.Hyper(), HELD).final

    exported = jax.export.export(jax.jit(program), platforms=["cuda", "tpu"])(jax.ShapeDtypeStruct((2,), jnp.uint32))
    assert set(exported.platforms) == {"cuda", "tpu"}


# In parts


def test_a_run_in_parts_is_the_run():
    """Shuffled batches, dropped units and Adam's moments go on where they were."""
    settings, network = nets.Settings(batch=4, max_epochs=7), nets.architecture(SHAPE, (4, 5), "tanh", 0.8)
    told = (jax.random.key(3), SHAPE, settings, network, nets.Hyper(dropout=0.2, weight_decay=0.1), DATA)
    state = jax.jit(start)(*told)
    for until in (2, 3, 100):
        state = jax.jit(go_on)(*told, state, until)
    whole = train(*told)
    np.testing.assert_allclose(state.params, mlp.flat(whole.params), rtol=1e-12)
    np.testing.assert_array_equal(state.losses, whole.losses)
    assert int(state.epochs) == 7
