"""The candidates of an ask."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from curves.curve_table import SPACE

from bonas.curves.candidate_networks import find_candidates
from bonas.curves.training_record import add_checkpoint, empty_record, mark_pending
from bonas.search import Observation


@pytest.mark.slow
def test_pending_complete_and_failed_record_are_not_available():
    x, yes = SPACE.points(), jnp.asarray(True)
    record = mark_pending(empty_record(18, 2, 3), x[4])
    for row, values in ((7, (3.0, 2.0, 1.0)), (9, (3.0, jnp.inf)), (11, (3.0,))):
        for step, y in enumerate(values):
            record = add_checkpoint(
                record,
                Observation(
                    x[row], jnp.asarray(y), jnp.asarray(step), jnp.asarray(1.0), yes
                ),
            )
    pool = find_candidates(jax.random.key(0), SPACE, record, x[:2], number=0)
    assert set(np.flatnonzero(~np.asarray(pool.available))) == {4, 7, 9}
    np.testing.assert_array_equal(pool.reached[jnp.array([4, 7, 9, 11])], [0, 3, 1, 1])
    np.testing.assert_array_equal(pool.observed.y[7], [3.0, 2.0, 1.0])
    np.testing.assert_array_equal(pool.rank[:4], [0, 1, 2, 2])
