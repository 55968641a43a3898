import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bonas import nets

SHAPE = nets.Shape(inputs=3, outputs=2, depth=2, width=4)
X, Y = np.ones((6, 3)), np.ones((6, 2))
DATA = nets.examples(X, Y)


def refused(message, settings=None, hyper=None, data=DATA, shape=SHAPE):
    """By train before anything is compiled."""
    settings = settings or nets.Settings(batch=2)
    network = nets.architecture(shape, (3,))
    with pytest.raises(ValueError, match=message):
        nets.train(
            jax.random.key(0),
            shape,
            settings,
            network,
            hyper or nets.Hyperparameters(),
            data,
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "hinge"}, "one of squared_error"),
        ({"loss": "accuracy"}, "accuracy has no gradient"),
        (
            {"metrics": ("accuracy",), "patience": 3},
            "a high accuracy is better; use error",
        ),
        ({"metrics": "accuracy"}, "metrics must be a tuple"),
        ({"metrics": ("accurate",)}, "got 'accurate'"),
        (
            {"optimizer": "rmsprop"},
            "optimizer must be one of sgd, adam, adadelta; got 'rmsprop'",
        ),
        ({"initial": "zeros"}, "initial must be one of scaled, unit, uniform"),
        ({"batch": 0}, "batch must be an integer of at least 1"),
        ({"max_epochs": 1.5}, "max_epochs must be an integer"),
        ({"patience": True}, "patience must be an integer"),
        ({"tolerance": -1e-4}, "tolerance must not be negative"),
        (
            {"min_epochs": 20, "max_epochs": 10},
            r"min_epochs \(20\) must not exceed max_epochs \(10\)",
        ),
        ({"checkpoints": (5, 3)}, "an increasing tuple"),
        ({"checkpoints": 0}, "an increasing tuple"),
        ({"checkpoints": (5, 200)}, "checkpoint 200 is never reached in 100 epochs"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        nets.Settings(**settings)


def test_checkpoints_are_listed():
    np.testing.assert_array_equal(
        nets.Settings(max_epochs=10, checkpoints=4).checkpoint_epochs, [4, 8]
    )
    np.testing.assert_array_equal(
        nets.Settings(max_epochs=10, checkpoints=(1, 7)).checkpoint_epochs, [1, 7]
    )


@pytest.mark.parametrize(
    ("hyper", "message"),
    [
        (
            {"learning_rate": np.ones(2)},
            r"learning_rate of shape \(\) or \(3,\); got \(2,\)",
        ),
        ({"dropout": np.ones(3)}, r"dropout of shape \(\) or \(2,\); got \(3,\)"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1"),
        ({"input_dropout": -0.1}, "input_dropout must be at least 0"),
        ({"learning_rate": float("nan")}, "learning_rate must be at least 0"),
        ({"epochs": 101}, r"at most max_epochs \(100\)"),
        ({"momentum": 0.9}, "momentum needs optimizer='sgd'; got 'adam'"),
    ],
)
def test_impossible_hyperparameters_are_refused(hyper, message):
    refused(message, hyper=nets.Hyperparameters(**hyper))


def test_a_batch_larger_than_the_data_is_refused():
    refused(r"batch \(7\) exceeds the number of rows \(6\)", nets.Settings(batch=7))


def test_patience_without_validation_rows_is_refused():
    refused("patience needs validation rows", nets.Settings(batch=2, patience=3))


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [(4, 2, r"x of shape \(n, 4\)"), (3, 1, r"y of shape \(n, 1\)")],
)
def test_data_of_another_shape_are_refused(inputs, outputs, message):
    refused(message, shape=nets.Shape(inputs=inputs, outputs=outputs, depth=2, width=4))


def test_labels_are_refused_for_a_squared_error():
    refused(
        "are class labels",
        data=nets.examples(X, np.arange(6)),
        shape=nets.Shape(3, 1, depth=2, width=4),
    )


@pytest.mark.parametrize("labels", [[0, 1, 2, 0, 1, 0], [0, 1, -1, 0, 1, 0]])
def test_labels_of_no_output_are_refused(labels):
    refused(
        "labels must be between 0 and 1",
        nets.Settings(loss="cross_entropy", batch=2),
        data=nets.examples(X, labels),
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones(6), Y), r"x of shape \(n, d\)"),
        ((X, Y[:5]), r"got \(6, 3\) and \(5, 2\)"),
        ((np.where(np.eye(6, 3), np.nan, X), Y), "row 0 contains NaN"),
        ((X, np.where(np.eye(6, 2, -3), np.inf, Y)), "row 3 contains NaN or infinity"),
        ((X, Y, X), "got only valid_x"),
        ((X, Y, X, np.where(np.eye(6, 2, -1), np.nan, Y)), "validation row 1"),
        ((X, Y, X, Y[:, :1]), "columns and dtype of the training rows"),
    ],
)
def test_bad_data_are_refused_and_the_row_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        nets.examples(*arguments)


@pytest.mark.parametrize("weight", [np.ones(5), -np.ones(6), np.zeros(6)])
def test_impossible_weights_are_refused(weight):
    with pytest.raises(ValueError, match="6 non-negative weights, not all zero"):
        nets.examples(X, Y, weight=weight)


def test_a_column_of_targets_may_be_flat():
    assert nets.examples(X, np.arange(6.0)).y.shape == (6, 1)


def test_whole_numbers_are_labels():
    labels = nets.examples(X, np.arange(6)).y
    assert labels.shape == (6,)
    assert jnp.issubdtype(labels.dtype, jnp.integer)
