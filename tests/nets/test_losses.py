import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import metrics

from bonas.nets import losses

OUTPUTS = jax.random.normal(jax.random.key(0), (9, 4))
TARGETS = jax.random.normal(jax.random.key(1), (9, 4))
LABELS = jnp.array([0, 1, 2, 3, 3, 2, 1, 0, 0])


@pytest.mark.typed
def test_squared_error_is_that_of_scikit_learn():
    np.testing.assert_allclose(
        losses.squared_error(OUTPUTS, TARGETS).mean(),
        metrics.mean_squared_error(TARGETS, OUTPUTS),
        rtol=1e-12,
    )


def test_the_half_squared_error_by_hand():
    np.testing.assert_allclose(
        losses.half_squared_error(jnp.array([[1.0, 2.0]]), jnp.array([[0.0, 4.0]])),
        [2.5],
    )


def test_cross_entropy_is_that_of_scikit_learn():
    expected = metrics.log_loss(
        LABELS, jax.nn.softmax(OUTPUTS, axis=1), labels=range(4)
    )
    np.testing.assert_allclose(
        losses.cross_entropy(OUTPUTS, LABELS).mean(), expected, rtol=1e-12
    )


def test_labels_and_their_indicators_have_one_cross_entropy():
    np.testing.assert_allclose(
        losses.cross_entropy(OUTPUTS, jax.nn.one_hot(LABELS, 4)),
        losses.cross_entropy(OUTPUTS, LABELS),
        rtol=1e-12,
    )


@pytest.mark.typed
def test_cross_entropy_of_large_logits_is_finite():
    np.testing.assert_allclose(
        losses.cross_entropy(jnp.array([[1e4, 0.0]]), jnp.array([1])), [1e4]
    )


@pytest.mark.parametrize(
    "targets", [LABELS, jax.nn.one_hot(LABELS, 4)], ids=["labels", "indicators"]
)
def test_accuracy_is_that_of_scikit_learn(targets):
    expected = metrics.accuracy_score(LABELS, np.argmax(OUTPUTS, axis=1))
    assert losses.accuracy(OUTPUTS, targets).mean() == pytest.approx(
        expected, rel=1e-12
    )
    assert losses.error(OUTPUTS, targets).mean() == pytest.approx(
        1 - expected, rel=1e-12
    )


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="one of squared_error, half_squared_error"):
        losses.get_loss("hinge")
