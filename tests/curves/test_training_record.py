"""The record of networks and their checkpoints."""

import jax.numpy as jnp
import numpy as np

from bonas.curves.training_record import add_checkpoint, empty_record
from bonas.search import Observation


def test_a_diverged_network_keeps_its_values_and_is_not_continued():
    record, x = empty_record(4, 2, 3), jnp.array([0.5, 0.0])
    yes = jnp.asarray(True)
    record = add_checkpoint(
        record, Observation(x, jnp.asarray(2.0), jnp.asarray(0), jnp.asarray(1.0), yes)
    )
    record = add_checkpoint(
        record,
        Observation(x, jnp.asarray(jnp.nan), jnp.asarray(1), jnp.asarray(1.0), yes),
    )
    np.testing.assert_array_equal(record.data.mask[0], [True, False, False])
    np.testing.assert_array_equal(record.failed, [True, False, False, False])
    again = add_checkpoint(
        record, Observation(x, jnp.asarray(1.0), jnp.asarray(0), jnp.asarray(1.0), yes)
    )
    # as a new network
    np.testing.assert_array_equal(again.data.mask[:2, 0], [True, True])
