"""Networks of exactly the shape they have, and their training, in plain numpy: what a padded one
must agree with.
"""

import jax
import numpy as np

from bonas import nets
from bonas.nets import mlp

FUNCTIONS = {  # value, and derivative from the value
    "relu": (lambda z: np.maximum(z, 0.0), lambda a: (a > 0).astype(a.dtype)),
    "tanh": (np.tanh, lambda a: 1.0 - a**2),
    "sigmoid": (lambda z: 1.0 / (1.0 + np.exp(-z)), lambda a: a * (1.0 - a)),
}


def cut(params, widths, inputs):
    """[(kernel, bias), ...] of the layers that there are, input to output, cut out of padded
    parameters.
    """
    params = {
        name: {part: np.asarray(leaf) for part, leaf in layer.items()}
        for name, layer in params.items()
    }
    layers, before = [], inputs
    for number, width in enumerate(width for width in widths if width):
        name, place = ("first", ()) if number == 0 else ("hidden", (number - 1,))
        layers.append(
            (
                params[name]["kernel"][place][:before, :width],
                params[name]["bias"][place][:width],
            )
        )
        before = width
    return [*layers, (params["last"]["kernel"][:before], params["last"]["bias"])]


def line(kernel, bias):
    """Parameters of the network with two inputs, one output and no hidden layer, and its layers for
    the plain version.
    """
    first = {"kernel": np.zeros((2, 1)), "bias": np.zeros(1)}
    hidden = {"kernel": np.zeros((0, 1, 1)), "bias": np.zeros((0, 1))}
    return {
        "first": first,
        "hidden": hidden,
        "last": {"kernel": kernel, "bias": bias},
    }, [(kernel, bias)]


def same(found, expected, **tolerance):
    """Assert that layers agree."""
    for pair, other in zip(found, expected, strict=True):
        for leaf, known in zip(pair, other, strict=True):
            np.testing.assert_allclose(leaf, known, **tolerance)


def activations(layers, x, activation):
    """The inputs, every hidden layer and the output, which is linear."""
    values = [x]
    for kernel, bias in layers[:-1]:
        values.append(FUNCTIONS[activation][0](values[-1] @ kernel + bias))
    kernel, bias = layers[-1]
    return [*values, values[-1] @ kernel + bias]


def forward(layers, x, activation):
    return activations(layers, x, activation)[-1]


def squared(layers, x, y, activation):
    return np.mean((forward(layers, x, activation) - y) ** 2)


def gradient(layers, x, y, activation):
    """Of the mean squared error, by backpropagation (Twist, Lemma 2.1)."""
    values = activations(layers, x, activation)
    delta, found = 2.0 * (values[-1] - y) / y.size, []
    for number in reversed(range(len(layers))):
        found.append((values[number].T @ delta, delta.sum(axis=0)))
        delta = (delta @ layers[number][0].T) * FUNCTIONS[activation][1](values[number])
    return found[::-1]


def sgd(rate, momentum):
    def update(gradient, memory, step):
        memory = momentum * memory + gradient
        return -rate * memory, memory

    return update, lambda leaf: np.zeros_like(leaf)


def adam(rate, first=0.9, second=0.999, small=1e-8):
    """Kingma and Ba 2015, Algorithm 1."""

    def update(gradient, memory, step):
        mean, square = (
            first * memory[0] + (1 - first) * gradient,
            second * memory[1] + (1 - second) * gradient**2,
        )
        corrected = mean / (1 - first**step), square / (1 - second**step)
        return -rate * corrected[0] / (np.sqrt(corrected[1]) + small), np.stack(
            [mean, square]
        )

    return update, lambda leaf: np.zeros((2, *leaf.shape))


def adadelta(rate, decay=0.9, small=1e-6):
    """Zeiler 2012, Algorithm 1."""

    def update(gradient, memory, step):
        square = decay * memory[0] + (1 - decay) * gradient**2
        change = -np.sqrt(memory[1] + small) / np.sqrt(square + small) * gradient
        return rate * change, np.stack(
            [square, decay * memory[1] + (1 - decay) * change**2]
        )

    return update, lambda leaf: np.zeros((2, *leaf.shape))


def train(layers, x, y, activation, optimizer, batches):
    """The layers after one update a batch (an array of rows), and the loss of each batch before its
    update.
    """
    update, start = optimizer
    leaves, losses = [leaf.copy() for layer in layers for leaf in layer], []
    memory = [start(leaf) for leaf in leaves]
    for step, rows in enumerate(batches, start=1):
        pairs = list(zip(leaves[::2], leaves[1::2], strict=True))
        losses.append(squared(pairs, x[rows], y[rows], activation))
        for i, leaf in enumerate(
            leaf
            for layer in gradient(pairs, x[rows], y[rows], activation)
            for leaf in layer
        ):
            change, memory[i] = update(leaf, memory[i], step)
            leaves[i] = leaves[i] + change
    return list(zip(leaves[::2], leaves[1::2], strict=True)), np.array(losses)


def check_descent(known, train, shape, settings):
    """One epoch of single-point descent from the parameters of the reference, in its order, ends at
    its parameters.
    """
    kernels, biases = (
        [np.array(w).T for w in known["W0"]],
        [np.array(b) for b in known["b0"]],
    )
    exact = {
        "first": {"kernel": kernels[0], "bias": biases[0]},
        "hidden": {"kernel": kernels[1][None], "bias": biases[1][None]},
        "last": {"kernel": kernels[2], "bias": biases[2]},
    }
    x, y = np.array(known["X"]).T, np.array(known["Y"]).T
    data = nets.examples(x[known["order"]], y[known["order"]], x, y, dtype="float64")
    hyper, network = (
        nets.Hyperparameters(learning_rate=known["eta"]),
        nets.architecture(shape, (3, 2)),
    )
    found = train(
        jax.random.key(0),
        shape,
        settings,
        network,
        hyper,
        data,
        params=mlp.resize(exact, shape),
    )
    for (kernel, bias), weight, level in zip(
        cut(found.params, (3, 2), 2), known["W_after"], known["b_after"], strict=True
    ):
        np.testing.assert_allclose(kernel, np.array(weight).T, rtol=1e-12)
        np.testing.assert_allclose(bias, level, rtol=1e-12)
    np.testing.assert_allclose(found.final[0], known["cost_after"], rtol=1e-12)
