"""Units that a variational network has switched off."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bonas import nets
from bonas.nets import bnn_vi, mlp, pruning, vi_prior
from bonas.nets.bnn_vi import VI, Variational

KEY = jax.random.key(0)
SHAPE = nets.Shape(3, 1, depth=3, width=5, activations=("relu",))


def network(widths):
    architecture = nets.architecture(SHAPE, widths)
    mask = mlp.masks(KEY, SHAPE, architecture)
    drawn = mlp.draw_params(jax.random.normal, KEY, SHAPE, jnp.float64)
    mean = jax.tree.map(lambda leaf, live: jnp.where(live, leaf, 0.0), drawn, mask)
    return (
        Variational(
            mean,
            jax.tree.map(lambda leaf: jnp.full_like(leaf, -2.0), drawn),
            jnp.asarray(-1.0),
        ),
        mask,
        architecture,
    )


@pytest.mark.slow
def test_divergence_of_a_unit_is_the_mean_over_its_incoming_weights():
    q, mask, _ = network([4, 2])
    found = pruning.unit_divergence(VI(prior="fixed"), q, mask, jnp.asarray(0.7))
    mean, variance = np.asarray(q.mean["first"]["kernel"][:, 1]), np.exp(-4.0)
    expected = np.mean(0.5 * ((variance + mean**2) / 0.7 - 1.0 + np.log(0.7)) + 2.0)
    np.testing.assert_allclose(found[0, 1], expected, rtol=1e-12)
    mean = np.asarray(
        q.mean["hidden"]["kernel"][0, :4, 0]
    )  # units that are not there have no weights to count
    np.testing.assert_allclose(
        found[1, 0],
        np.mean(0.5 * ((variance + mean**2) / 0.7 - 1.0 + np.log(0.7)) + 2.0),
        rtol=1e-12,
    )
    assert (np.asarray(found[0, 4:]) == 0.0).all()
    assert (np.asarray(found[2]) == 0.0).all()


@pytest.mark.parametrize("prior", bnn_vi.PRIORS)
def test_a_unit_at_the_prior_is_inactive(prior):
    q, mask, _ = network([4, 3])
    vi = VI(prior=prior)
    variance = vi_prior.prior_variances(vi, q, mask, jnp.asarray(1.0))[0]
    mean, log_std = (tree["first"]["kernel"] for tree in (q.mean, q.log_std))
    q = q._replace(
        mean=q.mean | {"first": q.mean["first"] | {"kernel": mean.at[:, 2].set(0.0)}},
        log_std=q.log_std
        | {
            "first": q.log_std["first"]
            | {"kernel": log_std.at[:, 2].set(0.5 * jnp.log(variance))}
        },
    )
    kept = pruning.active(pruning.unit_divergence(vi, q, mask, jnp.asarray(1.0)))
    np.testing.assert_array_equal(
        kept, [[True, True, False, True, False], [True] * 3 + [False] * 2, [False] * 5]
    )


@pytest.mark.typed
def test_thresholds_of_the_first_and_of_later_layers():
    found = pruning.active(jnp.asarray([[0.2, 0.4], [0.2, 0.05], [0.2, 0.05]]))
    np.testing.assert_array_equal(found, [[False, True], [True, False], [True, False]])


@pytest.mark.slow
@pytest.mark.parametrize("widths", [[4], [4, 5], [5, 3, 4]], ids=str)
def test_units_whose_outgoing_weights_are_zero_can_go(widths):
    q, mask, architecture = network(widths)
    x = jax.random.normal(jax.random.key(1), (6, 3))
    quiet = [jnp.exp(-100.0), 0.0]
    last = len(widths) == 1
    name, index = ("last", (1,)) if last else ("hidden", (0, 1))
    mean = q.mean[name] | {"kernel": q.mean[name]["kernel"].at[index].set(quiet[1])}
    log_std = q.log_std[name] | {
        "kernel": q.log_std[name]["kernel"].at[index].set(-100.0)
    }
    q = q._replace(mean=q.mean | {name: mean}, log_std=q.log_std | {name: log_std})
    kept = (
        jnp.concatenate([mask["first"]["bias"][None], mask["hidden"]["bias"]])
        .at[0, 1]
        .set(False)
    )
    smaller, there = pruning.prune(SHAPE, q, mask, kept)
    for found, wanted in zip(
        bnn_vi.moments(SHAPE, smaller, there, architecture, x),
        bnn_vi.moments(SHAPE, q, mask, architecture, x),
        strict=True,
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-10)
    assert sum(leaf.sum() for leaf in jax.tree.leaves(there)) < sum(
        leaf.sum() for leaf in jax.tree.leaves(mask)
    )
