"""Bayesian networks: energy, trajectory and conditionals against stored values, and what the prior
says.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from numpyro.infer.hmc_util import euclidean_kinetic_energy, velocity_verlet

import bonas
from bonas.infer import Chain
from bonas.nets import bnn as model
from bonas.nets import bnn_gibbs, bnn_hmc, stable_prior
from bonas.nets.bnn import BNN, Precisions, Weights

KEY = jax.random.key(0)
_begin = jax.jit(bnn_hmc.init_chains, static_argnums=(1, 2))
_prior = jax.jit(bnn_hmc.prior, static_argnums=(1, 2))


# Against stored values


@pytest.fixture(scope="module")
def stored(reference):
    return reference("hmc")


@pytest.fixture(scope="module")
def network(stored):
    """Agrawal's network: one precision for all weights, no width scaling, the weights themselves
    move; masked rows.
    """
    sizes, gibbs = stored["sizes"], stored["gibbs"]["example"]
    prior = (gibbs["a"], gibbs["b"])
    plain = {
        "shared": True,
        "scaled": False,
        "whitened": False,
        "weight_prior": prior,
        "noise_prior": prior,
    }
    bnn = BNN(sizes[0], tuple(sizes[1:-1]), **plain)
    data = bonas.dataset(np.asarray(stored["x"])[:, None], stored["y"], capacity=9)
    rubbish = jnp.arange(9)[:, None] >= 6
    return bnn, data._replace(
        x=jnp.where(rubbish, jnp.nan, data.x), y=jnp.where(rubbish, 1e6, data.y)
    )


def _weights(bnn, q):
    leaves, structure = jax.tree.flatten(
        model.draw_position(KEY, bnn, Precisions(jnp.ones(bnn.groups), jnp.ones(())))
    )
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
    parts = [
        part.reshape(leaf.shape)
        for part, leaf in zip(jnp.split(jnp.asarray(q), ends), leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, parts)


def _flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


@pytest.fixture(scope="module")
def energy(network, stored):
    bnn, data = network
    precisions = Precisions(
        jnp.asarray([stored["tau_p"]]), jnp.asarray(stored["tau_n"])
    )
    return jax.jit(
        jax.value_and_grad(
            lambda position: model.energy(bnn, position, precisions, data)
        )
    )


@pytest.mark.slow
def test_the_energy_and_its_gradient_are_those_stored(network, stored, energy):
    value, gradient = energy(_weights(network[0], stored["q0"]))
    np.testing.assert_allclose(value, stored["energy"], rtol=1e-12)
    np.testing.assert_allclose(_flat(gradient), stored["grad"], rtol=1e-9)


def _trajectory(stored, energy):
    first, update = velocity_verlet(lambda q: energy(q)[0], euclidean_kinetic_energy)
    masses = jnp.ones(len(stored["q0"]))

    def run(q, p):
        step = lambda _, state: update(stored["eps"], masses, state)  # noqa: E731
        state = jax.lax.fori_loop(0, stored["L"], step, first(q, p))
        return state.z, state.r

    return jax.jit(run)


def test_a_trajectory_ends_where_the_stored_one_does_and_runs_backwards(
    network, stored, energy
):
    q, p = (_weights(network[0], stored[name]) for name in ("q0", "p0"))
    run = _trajectory(stored, energy)
    end, momentum = run(q, p)
    np.testing.assert_allclose(_flat(end), stored["q_end"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        _flat(momentum), stored["p_end_before_negation"], rtol=1e-9, atol=1e-12
    )
    back, _ = run(end, jax.tree.map(jnp.negative, momentum))
    np.testing.assert_allclose(_flat(back), stored["q0"], atol=1e-11)


@pytest.mark.slow
def test_a_trajectory_preserves_volume(network, stored, energy):
    run, bnn, k = _trajectory(stored, energy), network[0], len(stored["q0"])

    def both(state):
        end = run(_weights(bnn, state[:k]), _weights(bnn, state[k:]))
        return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(end)])

    jacobian = jax.jit(jax.jacfwd(both))(jnp.asarray(stored["q0"] + stored["p0"]))
    sign, log_volume = np.linalg.slogdet(jacobian)
    assert sign == 1.0
    assert abs(log_volume) < 1e-10


def test_a_move_of_the_chain_is_the_stored_trajectory_when_its_momentum_is(
    network, stored, monkeypatch
):
    """The chain runs the same dynamics: with the stored momentum in place of a random one its move
    is the stored one.
    """
    from numpyro.infer import hmc

    bnn, data = network
    precisions = Precisions(
        jnp.asarray([[stored["tau_p"]]]), jnp.asarray([stored["tau_n"]])
    )
    monkeypatch.setattr(hmc, "momentum_generator", lambda *_: jnp.asarray(stored["p0"]))
    position = jax.tree.map(lambda leaf: leaf[None], _weights(bnn, stored["q0"]))
    chain = Chain(position, precisions, jnp.asarray([stored["eps"]]))
    draws, _, info = bnn_hmc.sample(
        KEY, bnn, data, chain, samples=1, burn=0, steps=stored["L"], precisions="fixed"
    )
    np.testing.assert_allclose(info.accept, stored["accept_prob"], rtol=1e-12)
    np.testing.assert_allclose(
        _flat(draws.weights), stored["q_end"], rtol=1e-9, atol=1e-12
    )


def test_the_conditionals_of_the_precisions_are_those_stored(network, stored):
    bnn, data = network
    shape, rate = bnn_gibbs.conditional(bnn, _weights(bnn, stored["q0"]), data)
    expected = stored["gibbs"]["example"]
    found = [shape.weights[0], rate.weights[0], shape.noise, rate.noise]
    np.testing.assert_allclose(
        found,
        [expected[name] for name in ("shape_p", "rate_p", "shape_n", "rate_n")],
        rtol=1e-12,
    )


def test_gibbs_draws_from_the_conditionals(network, stored):
    bnn, data = network
    weights = _weights(bnn, stored["q0"])
    old = Precisions(jnp.ones(1), jnp.ones(()))
    drawn = jax.jit(
        jax.vmap(lambda key: bnn_gibbs.gibbs(key, bnn, weights, old, data)[1])
    )(jax.random.split(KEY, 4000))
    expected = stored["gibbs"]["example"]
    for draws, which in ((drawn.weights[:, 0], "p"), (drawn.noise, "n")):
        law = scipy.stats.gamma(
            expected[f"shape_{which}"], scale=1.0 / expected[f"rate_{which}"]
        )
        assert scipy.stats.kstest(np.asarray(draws), law.cdf).pvalue > 1e-4


# What is printed


@pytest.mark.slow
def test_the_energy_is_that_of_the_posterior_and_the_printed_ones_are_not():
    """exp(−E) of f = wx + b, summed over a grid, has the moments of Bayesian linear regression,
    which are known exactly.

    Agrawal prints eq. 5.4 with densities of the data in place of their logarithms, eq. 5.1 with γ
    in place of x, so that inputs have no effect, and τ without an index for τ_n, read here as τ_p.
    """
    x, y, (tau_p, tau_n) = (
        np.array([-1.0, -0.2, 0.5, 1.0]),
        np.array([-1.1, 0.4, 0.7, 2.0]),
        (1.3, 9.0),
    )
    axis = np.linspace(-4.0, 4.0, 161)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)  # w and b
    residual = y - (grid[:, :1] * x + grid[:, 1:])
    prior = 0.5 * tau_p * (grid**2).sum(axis=1)
    printed = {
        "without the logarithm": prior
        - scipy.stats.norm.pdf(residual, scale=tau_n**-0.5).sum(axis=1),
        "without the inputs": prior
        + 0.5 * tau_n * ((y - grid[:, 1:]) ** 2).sum(axis=1),
        "with another precision": prior + 0.5 * tau_p * (residual**2).sum(axis=1),
    }
    bnn = BNN(1, (), shared=True, scaled=False, whitened=False)
    data, precisions = (
        bonas.dataset(x[:, None], y),
        Precisions(jnp.asarray([tau_p]), jnp.asarray(tau_n)),
    )
    right = jax.vmap(lambda q: model.energy(bnn, _weights(bnn, q), precisions, data))(
        jnp.asarray(grid)
    )

    def moments(energy):
        density = np.exp(np.min(energy) - np.asarray(energy))
        mean = density @ grid / density.sum()
        return mean, (grid - mean).T * density @ (grid - mean) / density.sum()

    design = np.stack([x, np.ones(4)], axis=1)
    cov = np.linalg.inv(tau_p * np.eye(2) + tau_n * design.T @ design)
    mean = tau_n * cov @ design.T @ y
    for found, wanted in zip(moments(right), (mean, cov), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    for name, energy in printed.items():
        assert np.abs(moments(energy)[0] - mean).max() > 0.1, name


# The model


@pytest.mark.slow
def test_whitened_weights_are_the_same_model(network):
    """The energy of the same weights differs by nothing, and Gibbs draws leave the weights where
    they are.
    """
    data = network[1]
    settings = {"index": (2.0, 1.0), "shared": False}
    one, other = (
        BNN(1, (3,), whitened=whitened, **settings) for whitened in (True, False)
    )
    precisions = Precisions(jnp.array([0.5, 2.0, 1.5, 3.0]), jnp.asarray(4.0))
    position = model.draw_position(KEY, one, precisions)
    weights = model.weights_at(one, position, precisions)
    energies = [
        model.energy(bnn, place, precisions, data)
        for bnn, place in ((one, position), (other, weights))
    ]
    np.testing.assert_allclose(*energies, rtol=1e-12)
    moved, drawn = bnn_gibbs.gibbs(KEY, one, position, precisions, data)
    np.testing.assert_allclose(
        _flat(model.weights_at(one, moved, drawn)), _flat(weights), rtol=1e-12
    )
    assert (drawn.weights != precisions.weights).all()


@pytest.mark.slow
@pytest.mark.parametrize("index", [2.0, 1.0, 1.5])
def test_width_scaling_keeps_the_size_of_the_output(index):
    """Neal 1996: a sum over 400 units of ±1 is distributed as one weight is: E cos f = exp(−1),
    exp(−1/2) for the normal.

    4000 draws; the standard deviation of a cosine is at most 1.
    """
    bnn = BNN(1, (400,), activation="step", index=(2.0, index))
    # no bias of the output
    precisions = Precisions(jnp.array([1.0, 1.0, 1.0, 1e12]), jnp.ones(()))

    def one(key):
        position = model.draw_position(key, bnn, precisions)
        return model.apply(
            bnn, model.weights_at(bnn, position, precisions), jnp.ones((1, 1))
        )[0, 0]

    values = np.asarray(jax.jit(jax.vmap(one))(jax.random.split(KEY, 4000)))
    assert abs(
        np.cos(values).mean() - np.exp(-0.5 if index == 2.0 else -1.0)
    ) < 5 / np.sqrt(4000)


@pytest.mark.slow
@pytest.mark.parametrize("index", [0.7, 1.3, 1.9])
def test_stable_variables_have_the_characteristic_function(index):
    """E cos(t X) = exp(−|t|^index) for 20000 draws; the standard deviation of a cosine is at most
    1.
    """
    draws = stable_prior.from_latent(
        index, stable_prior.draw_latent(KEY, index, (20000,))
    )
    for t in (0.3, 1.0, 2.5):
        assert abs(
            np.cos(t * np.asarray(draws)).mean() - np.exp(-(t**index))
        ) < 5 / np.sqrt(20000)


def test_step_units_are_signs():
    weights = Weights(
        (jnp.ones((1, 1)), jnp.full((1, 1), 3.0)), (jnp.zeros(1), jnp.zeros(1))
    )
    np.testing.assert_array_equal(
        model.apply(
            BNN(1, (1,), activation="step"), weights, jnp.array([[-0.1], [0.1]])
        ),
        [[-3.0], [3.0]],
    )


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_moments_and_their_gradients_are_those_written_out(activation):
    """Agrawal, eqs. 5.8 and 5.9, and dσ = Σ (f − μ) df / (N σ)."""
    bnn = BNN(2, (4, 3), activation=activation)
    weights = _prior(KEY, bnn, 6).weights
    x = jnp.array([0.3, -0.6])

    def each(x):
        return bnn_hmc.outputs(bnn, weights, x[None])[:, 0, 0]

    values, slopes = np.asarray(each(x)), np.asarray(jax.jacobian(each)(x))
    mean, std = (field[0, 0] for field in bnn_hmc.predict(bnn, weights, x[None]))
    np.testing.assert_allclose([mean, std], [values.mean(), values.std()], rtol=1e-12)
    gradients = jax.jacobian(
        lambda x: jnp.stack(bnn_hmc.predict(bnn, weights, x[None]))[:, 0, 0]
    )(x)
    by_hand = (values - values.mean()) @ slopes / (len(values) * values.std())
    np.testing.assert_allclose(gradients, [slopes.mean(axis=0), by_hand], rtol=1e-9)


def test_gradients_are_finite_where_all_networks_agree():
    bnn = BNN(2, (4, 3))
    weights = jax.tree.map(jnp.zeros_like, _prior(KEY, bnn, 6).weights)
    gradient = jax.grad(lambda x: bnn_hmc.predict(bnn, weights, x).std.sum())(
        jnp.ones((2, 2))
    )
    assert jnp.isfinite(gradient).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"widths": (0,)}, "width of every layer must be at least 1"),
        ({"activation": "swish"}, "activation must be one of"),
        ({"index": 2.5}, "above 0 and at most 2; got 2.5"),
        ({"index": (2.0,)}, "each of the 4 layers"),
        ({"index": 1.5, "whitened": False}, "use whitened=True"),
        (
            {"noise_prior": (1.0, 0.0)},
            r"must be positive; got .* noise_prior=\(1.0, 0.0\)",
        ),
    ],
)
def test_networks_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        BNN(2, **settings)
