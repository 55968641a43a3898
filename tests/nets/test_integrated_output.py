"""The output layer integrated out: against NumPy's Gaussians, and the same posterior as with it
sampled.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import bonas
from bonas import infer
from bonas.nets import bnn as model
from bonas.nets import bnn_hmc, integrated_output
from bonas.nets.bnn import BNN, Precisions

KEY = jax.random.key(0)
ROWS = np.random.default_rng(1).normal(size=(6, 2))
VALUES = np.random.default_rng(2).normal(size=(6, 2))
SEEN = np.array([[1, 1], [1, 0], [1, 1], [0, 1], [1, 1], [0, 0]], bool)
KINDS = [
    {"whitened": True},
    {"whitened": False},
    {"shared": True, "scaled": False, "whitened": False},
]


def _case(**settings):
    """A network of two outputs, of which not all are seen everywhere, and a position of its hidden
    layer.
    """
    bnn = BNN(2, (3,), outputs=2, **settings)
    weights = jnp.array([0.5]) if bnn.shared else jnp.array([0.5, 2.0, 1.5, 3.0])
    precisions = Precisions(weights, jnp.asarray(4.0))
    data = bonas.Dataset(
        jnp.asarray(ROWS),
        jnp.where(SEEN, VALUES, jnp.nan),
        jnp.asarray(SEEN),
        jnp.asarray(6),
    )
    return (
        bnn,
        precisions,
        data,
        model.hidden_weights(model.draw_position(KEY, bnn, precisions)),
    )


def _by_hand(bnn, precisions, position):
    """Features of the last hidden layer with their prior scales, in NumPy."""
    hidden = model.weights_at(bnn, position, precisions)
    units = np.tanh(ROWS @ np.asarray(hidden.kernels[0]) + np.asarray(hidden.biases[0]))
    tau = np.asarray(precisions.weights)
    scale, of_bias = (
        (tau[0] ** -0.5,) * 2
        if bnn.shared
        else (tau[1] ** -0.5 / np.sqrt(3.0), tau[3] ** -0.5)
    )
    return np.column_stack([units * scale, np.full(6, of_bias)]), np.append(
        np.full(3, scale), of_bias
    )


@pytest.mark.slow
@pytest.mark.parametrize("settings", KINDS)
def test_the_energy_is_the_evidence_of_a_gaussian_and_the_prior(settings):
    bnn, precisions, data, position = _case(**settings)
    features, _ = _by_hand(bnn, precisions, position)
    expected = -float(model.log_prior(bnn, position, precisions))
    for y, mask in zip(VALUES.T, SEEN.T, strict=True):
        covariance = (features @ features.T + np.eye(6) / 4.0)[np.ix_(mask, mask)]
        expected -= scipy.stats.multivariate_normal(cov=covariance).logpdf(y[mask])
    np.testing.assert_allclose(
        integrated_output.energy(bnn, position, precisions, data), expected, rtol=1e-10
    )


@pytest.mark.slow
@pytest.mark.parametrize("settings", KINDS)
def test_it_is_the_density_of_all_weights_less_that_of_the_output_given_the_rest(
    settings,
):
    """log p(hidden, output, y) − log p(output | hidden, y) is the same for every output, and is the
    integral.
    """
    bnn, precisions, data, position = _case(**settings)
    features, scales = _by_hand(bnn, precisions, position)
    whole = integrated_output.complete(KEY, bnn, position, precisions, data)
    latent = np.vstack([whole.kernels[-1], whole.biases[-1]]) / (
        1.0 if bnn.whitened else scales[:, None]
    )
    # the densities of normal variables, which `energy` leaves out the constants of
    joint = -float(
        model.energy(bnn, whole, precisions, data)
    ) + 0.5 * SEEN.sum() * np.log(4.0 / (2 * np.pi))
    joint -= 0.5 * latent.size * np.log(2 * np.pi)
    given = 0.0
    for w, y, mask in zip(latent.T, VALUES.T, SEEN.T, strict=True):
        covariance = np.linalg.inv(np.eye(4) + 4.0 * features[mask].T @ features[mask])
        given += scipy.stats.multivariate_normal(
            covariance @ features[mask].T @ y[mask] * 4.0, covariance
        ).logpdf(w)
    np.testing.assert_allclose(
        -integrated_output.energy(bnn, position, precisions, data),
        joint - given,
        rtol=1e-9,
    )


@pytest.mark.parametrize("whitened", [True, False])
def test_the_output_layer_is_drawn_from_its_conditional(whitened):
    """Mean and covariance of 4000 draws; the tolerance is five standard errors."""
    bnn, precisions, data, position = _case(whitened=whitened)
    features, scales = _by_hand(bnn, precisions, position)
    draw = jax.jit(
        jax.vmap(
            lambda key: integrated_output.complete(key, bnn, position, precisions, data)
        )
    )
    whole = draw(jax.random.split(KEY, 4000))
    drawn = np.concatenate([whole.kernels[-1], whole.biases[-1][:, None, :]], axis=1)
    drawn = drawn / (1.0 if whitened else scales[:, None])
    for j, (y, mask) in enumerate(zip(VALUES.T, SEEN.T, strict=True)):
        covariance = np.linalg.inv(np.eye(4) + 4.0 * features[mask].T @ features[mask])
        mean, std = (
            covariance @ features[mask].T @ y[mask] * 4.0,
            np.sqrt(np.diag(covariance)),
        )
        assert (
            np.abs(drawn[:, :, j].mean(axis=0) - mean) < 5 * std / np.sqrt(4000)
        ).all()
        errors = np.sqrt((np.outer(std, std) ** 2 + covariance**2) / 4000)
        assert (np.abs(np.cov(drawn[:, :, j].T) - covariance) < 5 * errors).all()


SMALL = BNN(1, (3,), weight_prior=(5.0, 5.0), noise_prior=(5.0, 0.5))
LINE = bonas.dataset(
    np.linspace(-1.0, 1.0, 5)[:, None], np.array([0.3, -0.8, 0.1, 0.9, 0.4]), capacity=6
)


@partial(jax.jit, static_argnums=(0, 1))
def _functions(output, precisions):
    start_key, run_key = jax.random.split(KEY)
    settings = {"samples": 2000, "burn": 500, "steps": 12, "target": 0.8, "thin": 2}
    chains = bnn_hmc.init_chains(start_key, SMALL, 2)
    draws, _, _ = bnn_hmc.sample(
        run_key, SMALL, LINE, chains, output=output, precisions=precisions, **settings
    )
    values = jax.vmap(
        lambda w: bnn_hmc.outputs(SMALL, w, jnp.array([[-1.0], [0.2], [2.0]]))[:, :, 0]
    )(draws.weights)
    return jnp.concatenate(
        [
            values,
            jnp.log(draws.precisions.noise)[..., None],
            jnp.log(draws.precisions.weights),
        ],
        axis=-1,
    )


@pytest.mark.slow
@pytest.mark.parametrize("precisions", ["gibbs", "joint"])
def test_integrated_or_sampled_the_posterior_is_the_same(precisions):
    """Means and squares of function values and of log precisions; within five standard errors of
    their difference.
    """
    one, other = (
        np.asarray(_functions(output, precisions)) for output in bnn_hmc.OUTPUT_LAYER
    )
    for power in (1, 2):
        a, b = (draws**power for draws in (one, other))
        errors = [
            draws.std(axis=(0, 1)) / np.sqrt(infer.effective_sample_size(draws))
            for draws in (a, b)
        ]
        assert (
            np.abs(a.mean(axis=(0, 1)) - b.mean(axis=(0, 1))) < 5 * np.hypot(*errors)
        ).all()


@pytest.mark.slow
def test_single_precision_stays_where_it_is_asked_for():
    data = jax.tree.map(
        lambda leaf: leaf.astype("float32") if leaf.dtype == float else leaf, LINE
    )
    chains = bnn_hmc.init_chains(KEY, SMALL, 1, dtype="float32")
    settings = {
        "samples": 2,
        "burn": 1,
        "steps": 2,
        "output": "integrated",
        "precisions": "joint",
    }
    draws, last, _ = jax.eval_shape(
        lambda: bnn_hmc.sample(KEY, SMALL, data, chains, **settings)
    )
    assert {
        leaf.dtype
        for leaf in jax.tree.leaves((draws, last.position, last.gibbs_values))
    } == {jnp.dtype("float32")}
    assert jax.tree.map(jnp.shape, last.position) == jax.tree.map(
        jnp.shape, chains.position
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "output", "message"),
    [
        (BNN(1, ()), "integrated", "needs a hidden layer"),
        (BNN(1, (3,), index=(2.0, 1.0)), "integrated", "got widths .* and index 1.0"),
        (SMALL, "marginal", "one of sampled, integrated; got 'marginal'"),
    ],
)
def test_output_layers_without_a_closed_form_are_refused(network, output, message):
    with pytest.raises(ValueError, match=message):
        bnn_hmc.sample(
            KEY, network, LINE, bnn_hmc.init_chains(KEY, network, 1), output=output
        )


@pytest.mark.slow
def test_many_data_are_seen_through_the_matrix_of_the_features():
    """Two ways to one evidence, and to its gradient; rows that are not there change neither."""
    features = jax.random.normal(KEY, (40, 4))
    y, mask = features @ jnp.array([1.0, -2.0, 0.5, 0.0]) + 0.3, jnp.arange(40) < 33
    y, features = jnp.where(mask, y, 0.0), features.at[35:].set(7.0)

    def both(evidence):
        return jax.value_and_grad(evidence, (0, 3))(features, y, mask, jnp.asarray(0.1))

    for one, other in zip(
        *(
            jax.tree.leaves(both(way))
            for way in (
                integrated_output._evidence_by_rows,
                integrated_output._evidence_by_features,
            )
        ),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
