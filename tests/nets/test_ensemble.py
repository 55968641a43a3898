import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nets import small
from nets.small import cut

from bonas import nets
from bonas.nets import ensemble as en
from bonas.nets.trainer import COMPLETE, DIVERGED

RNG = np.random.default_rng(0)
X = RNG.normal(size=(16, 2))
Y = X[:, :1] - 0.5 * X[:, 1:] ** 2
DATA = nets.examples(X, Y, dtype="float64")
SHAPE = nets.Shape(inputs=2, outputs=1, depth=2, width=4, activations=("relu",))
SETTINGS = nets.Settings(optimizer="adadelta", batch=None, max_epochs=30)
MOST = 4
FULL = en.Design(depth=2, width=4, members=4, density=1.0)
KEY = jax.random.key(1)

train = jax.jit(en.train_ensemble, static_argnames=("capacity", "subsampling", "lanes"))
predict = jax.jit(en.predict)
member_outputs = jax.jit(en.member_outputs)


def trained(design, *, key=KEY, epochs=30, rate=1.0, data=DATA):
    """All designs are floats and all options are given: one program."""
    design = en.Design(
        *(
            jnp.asarray(value, kind)
            for value, kind in zip(design, (int, int, int, float), strict=True)
        )
    )
    hyper = nets.Hyperparameters(
        learning_rate=jnp.asarray(rate), epochs=jnp.asarray(epochs)
    )
    return train(key, SHAPE, SETTINGS, design, hyper, data, capacity=MOST)


def member(ensemble, i):
    return jax.tree.map(lambda leaf: leaf[i], ensemble.params)


# Members


@pytest.mark.parametrize(("depth", "width"), [(1, 3), (2, 4)])
def test_each_member_trains_as_a_network_of_its_own(depth, width):
    design = en.Design(depth, width, 3, 1.0)
    before, after = trained(design, epochs=0), trained(design, epochs=5)
    for i in range(3):
        layers = cut(member(before, i), [width] * depth, 2)
        expected, losses = small.train(
            layers, X, Y, "relu", small.adadelta(1.0), [slice(None)] * 5
        )
        for pair, known in zip(
            cut(member(after, i), [width] * depth, 2), expected, strict=True
        ):
            for leaf, other in zip(pair, known, strict=True):
                np.testing.assert_allclose(leaf, other, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(after.loss[i], losses[-1], rtol=1e-9)


def test_members_differ():
    kernels = np.asarray(trained(FULL, epochs=0).params["first"]["kernel"])
    assert len(np.unique(kernels)) == kernels.size


def test_members_lose_weights_and_biases_for_good():
    """Of 4 × 37 parameters of density 0.6, 59 are expected to be missing, with a standard deviation
    of 6.
    """
    ensemble = trained(FULL._replace(density=0.6))
    gone = jax.tree.map(
        lambda start: np.asarray(start == 0.0),
        trained(FULL._replace(density=0.6), epochs=0).params,
    )
    weights = sum(leaf["kernel"].sum() for leaf in gone.values())
    assert 30 < weights < 90
    for name, layer in gone.items():
        assert (
            np.asarray(ensemble.params[name]["kernel"])[layer["kernel"]] == 0.0
        ).all()


def test_members_that_are_not_there_are_not_trained():
    ensemble = trained(FULL._replace(members=2))
    np.testing.assert_array_equal(ensemble.epochs, [30, 30, 0, 0])
    np.testing.assert_array_equal(ensemble.included, [True, True, False, False])
    np.testing.assert_array_equal(np.isnan(ensemble.loss), [False, False, True, True])


def test_a_larger_ensemble_holds_the_smaller():
    few, many = trained(FULL._replace(members=2)), trained(FULL)
    for leaf, other in zip(
        jax.tree.leaves(few.params), jax.tree.leaves(many.params), strict=True
    ):
        np.testing.assert_array_equal(leaf[:2], other[:2])


def test_all_designs_share_one_program():
    trained(FULL)
    before = train._cache_size()
    for depth, width, members, density in [
        (1, 1, 1, 0.0),
        (2, 3, 4, 0.5),
        (1, 4, 2, 1.0),
    ]:
        trained(en.Design(depth, width, members, density), key=jax.random.key(members))
    assert train._cache_size() == before


@pytest.mark.slow
def test_lanes_change_nothing():
    """Three lanes do not divide the four members."""
    alone = trained(FULL._replace(members=3, density=0.8))
    together = train(
        KEY,
        SHAPE,
        SETTINGS,
        en.Design(2, 4, 3, 0.8),
        nets.Hyperparameters(learning_rate=1.0, epochs=30),
        DATA,
        capacity=MOST,
        lanes=3,
    )
    for name in ("included", "status", "epochs"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(together, name))
    for leaf, other in zip(
        jax.tree.leaves(alone.params), jax.tree.leaves(together.params), strict=True
    ):
        np.testing.assert_allclose(leaf, other, rtol=1e-9, atol=1e-12)


def test_a_whole_scan_over_designs_is_one_program():
    """As in a search: designs traced, one after the other."""
    widths = jnp.array([1, 3, 4])

    def step(_, width):
        ensemble = en.train_ensemble(
            KEY,
            SHAPE,
            SETTINGS,
            FULL._replace(width=width),
            nets.Hyperparameters(),
            DATA,
            capacity=MOST,
        )
        return None, en.predict(ensemble, DATA.x).mean

    _, means = jax.jit(lambda: jax.lax.scan(step, None, widths))()
    for width, mean in zip(widths, means, strict=True):
        expected = predict(trained(FULL._replace(width=int(width))), DATA.x).mean
        np.testing.assert_allclose(mean, expected, rtol=1e-7, atol=1e-10)


# Predictions


def test_the_prediction_is_the_average_of_the_members_that_count():
    ensemble = trained(FULL._replace(members=3))
    outputs = np.asarray(member_outputs(ensemble, DATA.x))[:3]
    mean, std = predict(ensemble, DATA.x)
    np.testing.assert_allclose(mean, outputs.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(std, outputs.std(axis=0), rtol=1e-10)


def test_one_member_has_no_spread():
    mean, std = predict(trained(FULL._replace(members=1)), DATA.x)
    assert (np.asarray(std) == 0.0).all()
    assert np.isfinite(mean).all()


# Exclusion


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_soundness_is_a_matter_of_variation_in_the_units_of_the_targets(scale):
    y = scale * Y
    assert en.has_plausible_spread(0.9 * y + 3.0 * scale, y)
    assert en.has_plausible_spread(y.mean() + 0.11 * (y - y.mean()), y)
    assert not en.has_plausible_spread(y.mean() + 0.09 * (y - y.mean()), y)
    assert not en.has_plausible_spread(np.full_like(y, y.mean()), y)
    assert not en.has_plausible_spread(-11.0 * y, y)
    assert not en.has_plausible_spread(np.full_like(y, np.nan), y)


def test_rows_that_do_not_count_say_nothing_about_soundness():
    weight = jnp.arange(16.0) < 8
    outputs = np.where(np.arange(16)[:, None] < 8, 0.0, Y)
    assert en.has_plausible_spread(outputs, Y)
    assert not en.has_plausible_spread(outputs, Y, weight.astype(float))


def test_where_targets_are_constant_a_constant_is_right():
    assert en.has_plausible_spread(np.ones((5, 1)), np.ones((5, 1)))


@pytest.fixture(scope="module")
def sparse():
    """An ensemble of which some members are cut off from their inputs."""
    for seed in range(50):
        ensemble = trained(
            FULL._replace(density=0.45), key=jax.random.key(seed), epochs=30
        )
        spread = np.asarray(member_outputs(ensemble, DATA.x)).std(axis=(1, 2)) / Y.std()
        if 0 < (spread < 1e-3).sum() < MOST and (spread > 0.2).any():
            return ensemble, spread
    raise AssertionError("no such ensemble in 50")


def test_dead_members_are_left_out(sparse):
    ensemble, spread = sparse
    np.testing.assert_array_equal(
        ensemble.included, (spread >= en.MIN_SPREAD) & (spread <= 1 / en.MIN_SPREAD)
    )
    assert not ensemble.relaxed.any()
    assert not ensemble.included[int(np.argmin(spread))]
    outputs = np.asarray(member_outputs(ensemble, DATA.x))[
        np.asarray(ensemble.included)
    ]
    np.testing.assert_allclose(
        predict(ensemble, DATA.x).mean, outputs.mean(axis=0), rtol=1e-12
    )


def test_where_all_are_dead_all_are_kept_and_that_is_said():
    ensemble = trained(FULL._replace(members=3, density=0.0))
    np.testing.assert_array_equal(ensemble.included, [True, True, True, False])
    np.testing.assert_array_equal(ensemble.relaxed, ensemble.included)
    assert (np.asarray(predict(ensemble, DATA.x).mean) == 0.0).all()


def test_diverged_members_never_count():
    """Members that lost every weight that leads to the output cannot diverge; the others do, and
    are not kept with them.
    """
    for seed in range(50):
        ensemble = trained(
            FULL._replace(density=0.2), key=jax.random.key(seed), rate=1e300
        )
        if {DIVERGED, COMPLETE} == set(np.asarray(ensemble.status).tolist()):
            break
    else:
        raise AssertionError("no such ensemble in 50")
    np.testing.assert_array_equal(
        ensemble.included, np.asarray(ensemble.status) == COMPLETE
    )
    assert np.isfinite(predict(ensemble, DATA.x).mean).all()


def test_an_ensemble_whose_members_all_diverged_predicts_nothing():
    ensemble = trained(FULL, rate=1e300)
    assert (np.asarray(ensemble.status) == DIVERGED).all()
    assert not ensemble.included.any()
    assert np.isnan(predict(ensemble, DATA.x).mean).all()


# The variance law


@pytest.mark.parametrize(
    ("rho", "n"), [(0.0, 2), (0.3, 5), (0.3, 30), (0.9, 10), (1.0, 4)]
)
def test_the_variance_of_an_average_of_correlated_gaussians(rho, n):
    """g_i = s (√rho z + √(1 − rho) z_i): a sample variance of r Gaussians has the standard error
    √(2/(r − 1)) of itself.
    """
    repeats, s = 20_000, 3.0
    common, own = np.split(
        np.random.default_rng(n).normal(size=(repeats, n + 1)), [1], axis=1
    )
    members = s * (np.sqrt(rho) * common + np.sqrt(1.0 - rho) * own)
    law = en.variance_of_mean(en.Moments(s**2, rho), n)
    error = np.sqrt(2.0 / (repeats - 1))
    np.testing.assert_allclose(members.mean(axis=1).var(ddof=1), law, rtol=5 * error)
    found = en.estimate_moments(jnp.asarray(members))
    np.testing.assert_allclose(found.variance, s**2, rtol=5 * error)
    # a covariance of r pairs has the standard error √((1 + rho²)/(r − 1)) s², at most that of the
    # variance it is divided by
    np.testing.assert_allclose(found.correlation, rho, atol=10 * error)


@pytest.mark.slow
def test_the_variance_law_holds_for_trained_ensembles():
    """s² and rho from two members of each of 400 trainings, on new data each time, foretell the
    variance of an average of 6.

    The two agree up to chance, of which 20 blocks of the trainings tell the size: five standard
    errors are allowed. And averaging helps, less than it would if members were independent.
    """
    repeats, n, blocks = 400, 6, 20
    points = jnp.linspace(-1.5, 1.5, 7)[:, None]
    shape = nets.Shape(1, 1, 1, 4, activations=("relu",))
    settings = nets.Settings(optimizer="adam", batch=None, max_epochs=60)

    def one(key):
        x_key, noise_key, train_key = jax.random.split(key, 3)
        x = jax.random.normal(x_key, (10, 1))
        data = nets.Examples(
            x, jnp.sin(2.0 * x) + 0.3 * jax.random.normal(noise_key, x.shape)
        )
        hyper = nets.Hyperparameters(learning_rate=0.05)
        ensemble = en.train_ensemble(
            train_key, shape, settings, en.Design(1, 4, n, 0.9), hyper, data, capacity=n
        )
        return en.member_outputs(ensemble, points)[:, :, 0]

    keys = jax.random.split(jax.random.key(0), repeats)
    outputs = np.asarray(jax.jit(lambda keys: jax.lax.map(one, keys))(keys))

    def miss(rows):
        """Foretold minus found, relative, averaged over the points."""
        found = rows.mean(axis=1).var(axis=0, ddof=1)
        return np.mean(
            en.variance_of_mean(en.estimate_moments(jnp.asarray(rows[:, :2])), n)
            - found
        ) / np.mean(found)

    parts = [miss(part) for part in np.split(outputs, blocks)]
    error = np.std(parts, ddof=1) / np.sqrt(blocks)
    assert error < 0.1
    assert abs(miss(outputs)) < 5 * error
    single, average = (
        outputs.var(axis=0, ddof=1).mean(),
        outputs.mean(axis=1).var(axis=0, ddof=1).mean(),
    )
    assert 1.5 * single / n < average < single / 1.2


# What is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"design": FULL._replace(members=5)},
            "members must be between 1 and 4; got 5",
        ),
        ({"design": FULL._replace(depth=0)}, "depth must be between 1 and 2; got 0"),
        (
            {"design": FULL._replace(density=1.1)},
            "density must be between 0.0 and 1.0; got 1.1",
        ),
        (
            {"design": FULL._replace(width=np.ones(2))},
            r"scalar depth, width, members and density; got width of shape \(2,\)",
        ),
        ({"capacity": 0}, "capacity must be an integer of at least 1; got 0"),
        ({"lanes": 1.5}, "lanes must be an integer"),
        (
            {
                "data": nets.examples(X, [0] * 16),
                "settings": nets.Settings(loss="cross_entropy", batch=None),
            },
            r"expected targets of shape \(n, 1\).* got labels",
        ),
    ],
)
def test_ensembles_that_do_not_fit_are_refused(change, message):
    arguments = {
        "design": FULL,
        "capacity": MOST,
        "data": DATA,
        "settings": SETTINGS,
    } | change
    with pytest.raises(ValueError, match=message):
        en.train_ensemble(KEY, SHAPE, hyper=nets.Hyperparameters(), **arguments)


def test_moments_need_two_members_and_two_trainings():
    with pytest.raises(ValueError, match=r"got shape \(5, 1, 3\)"):
        en.estimate_moments(jnp.zeros((5, 1, 3)))
