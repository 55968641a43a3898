import jax
import numpy as np
import pytest

from bonas import nets
from bonas.nets import population
from bonas.nets.trainer import COMPLETE, DIVERGED

RNG = np.random.default_rng(0)
SHAPE = nets.Shape(inputs=3, outputs=1, depth=2, width=64, activations=("tanh",))
DATA = nets.examples(
    RNG.normal(size=(12, 3)),
    RNG.normal(size=12),
    RNG.normal(size=(6, 3)),
    RNG.normal(size=6),
    dtype="float64",
)
SETTINGS = nets.Settings(batch=4, max_epochs=5, shuffle=False)
WIDTHS = [(3,), (40, 4), (), (32, 32), (64,)]
NETWORKS = nets.stack(
    [nets.architecture(SHAPE, widths, density=0.8) for widths in WIDTHS]
)
RATES = np.array([[0.01], [0.02], [1e300], [0.03], [0.005]]) * np.array(
    [[1.0, 0.5, 2.0]]
)  # of each layer
HYPER = nets.Hyperparameters(
    learning_rate=RATES, epochs=np.array([5, 3, 5, 0, 4]), weight_decay=0.1
)
KEYS = jax.random.split(jax.random.key(0), 5)


@pytest.fixture(scope="module")
def first_search():
    """The results, and how many programs they needed."""
    before = population._fit_one._cache_size()
    return nets.train_many(
        KEYS, SHAPE, SETTINGS, NETWORKS, HYPER, DATA
    ), population._fit_one._cache_size() - before


@pytest.fixture(scope="module")
def found(first_search):
    return first_search[0]


@pytest.fixture(scope="module")
def alone():
    """Each network by itself in the whole shape."""
    rows = [
        jax.tree.map(
            lambda leaf: leaf[i],
            (NETWORKS, HYPER._replace(weight_decay=np.full(5, 0.1))),
        )
        for i in range(5)
    ]
    program = jax.jit(nets.train)
    return nets.stack(
        [
            program(key, SHAPE, SETTINGS, *row, DATA)
            for key, row in zip(KEYS, rows, strict=True)
        ]
    )


def agree(found, expected):
    for name, one, other in zip(found._fields, found, expected, strict=True):
        for leaf, known in zip(
            jax.tree.leaves(one), jax.tree.leaves(other), strict=True
        ):
            np.testing.assert_allclose(leaf, known, rtol=1e-7, atol=1e-12, err_msg=name)


@pytest.mark.slow
def test_a_network_is_trained_alike_in_its_bucket_and_alone(found, alone):
    """Widths, sparsity, learning rates of the layers and epochs that differ by network."""
    agree(found, alone)


@pytest.mark.slow
def test_lanes_change_nothing(found):
    """Two lanes: the buckets of three and two networks leave one lane idle."""
    agree(nets.train_many(KEYS, SHAPE, SETTINGS, NETWORKS, HYPER, DATA, lanes=2), found)


def test_every_network_ends_by_itself(found):
    np.testing.assert_array_equal(
        found.status, [COMPLETE, COMPLETE, DIVERGED, COMPLETE, COMPLETE]
    )
    np.testing.assert_array_equal(np.asarray(found.epochs)[[0, 1, 3, 4]], [5, 3, 0, 4])
    np.testing.assert_array_equal(
        np.isnan(found.final[:, 0]), [False, False, True, False, False]
    )


@pytest.mark.parametrize(
    ("width", "padded"),
    [
        (0, 32),
        (1, 32),
        (16, 32),
        (31, 32),
        (32, 32),
        (33, 64),
        (64, 64),
        (65, 100),
        (100, 100),
    ],
)
def test_widths_are_padded_to_powers_of_two_within_the_shape(width, padded):
    shape = nets.Shape(inputs=3, outputs=1, depth=2, width=100)
    assert nets.bucket(shape, width) == nets.Shape(
        inputs=3, outputs=1, depth=2, width=padded
    )


def test_a_search_compiles_each_bucket_once(first_search):
    """Twenty more networks, in any number at once and with values of any kind, fit into the two
    programs of the first five.
    """
    assert first_search[1] == 2
    before, rng = population._fit_one._cache_size(), np.random.default_rng(1)
    for n, kind in ((1, float), (4, np.float32), (15, np.float64)):
        widths = [rng.integers(0, 65, size=rng.integers(0, 3)) for _ in range(n)]
        networks = nets.stack(
            [
                nets.architecture(SHAPE, [int(w) for w in width], density=kind(0.5))
                for width in widths
            ]
        )
        hyper = nets.Hyperparameters(
            learning_rate=np.full((n, 3), 0.01, kind), weight_decay=kind(0.0), epochs=1
        )
        nets.train_many(
            jax.random.split(jax.random.key(n), n),
            SHAPE,
            SETTINGS,
            networks,
            hyper,
            DATA,
        )
    assert population._fit_one._cache_size() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keys": KEYS[:4]}, "leading axis of 4"),
        (
            {"hyper": nets.Hyperparameters(learning_rate=np.ones(4))},
            r"learning_rate of shape \(5,\) or \(5, 3\) or \(\); got \(4,\)",
        ),
        ({"lanes": 0}, "lanes must be an integer of at least 1"),
        (
            {"architectures": NETWORKS._replace(widths=NETWORKS.widths + 1)},
            "widths must be between 0 and 64",
        ),
    ],
)
def test_populations_that_do_not_fit_are_refused(change, message):
    arguments = {
        "keys": KEYS,
        "hyper": nets.Hyperparameters(),
        "architectures": NETWORKS,
    } | change
    with pytest.raises(ValueError, match=message):
        nets.train_many(shape=SHAPE, settings=SETTINGS, data=DATA, **arguments)


def test_populations_under_jit_are_refused():
    with pytest.raises(ValueError, match=r"outside jit, or use jax.vmap of nets.train"):
        jax.jit(
            lambda networks: nets.train_many(
                KEYS, SHAPE, SETTINGS, networks, nets.Hyperparameters(), DATA
            )
        )(NETWORKS)
