"""Calls on half of the rows while they hold all observations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bonas.checked_data import dataset
from bonas.data import append, empty
from bonas.half_capacity import call_on_half


def rows_of(data, extra):
    """What the function was given: its capacity, and something that must not depend on it."""
    return jnp.asarray(float(len(data.x))), jnp.where(
        data.mask, data.y, 0.0
    ).sum() + extra


@pytest.mark.parametrize(
    ("used", "capacity", "given"),
    [(5, 40, 20), (20, 40, 20), (21, 40, 40), (40, 40, 40), (3, 31, 31)],
)
def test_work_is_done_on_half_of_the_rows_while_they_suffice(used, capacity, given):
    data = dataset(np.arange(used)[:, None], np.arange(used), capacity)
    rows, total = jax.jit(lambda data: call_on_half(rows_of, data, 0.5))(data)
    assert (rows, total) == (given, used * (used - 1) / 2 + 0.5)


@pytest.mark.parametrize(("sizes", "given"), [((3, 20), 20), ((3, 21), 40)])
def test_half_is_taken_under_vmap_where_every_lane_fits_it(sizes, given):
    many = [dataset(np.arange(n)[:, None], np.arange(n), 40) for n in sizes]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *many)
    rows, totals = jax.vmap(lambda data: call_on_half(rows_of, data, 0.0))(stacked)
    np.testing.assert_array_equal(rows, given)
    np.testing.assert_array_equal(totals, [n * (n - 1) / 2 for n in sizes])


def test_one_of_the_two_is_computed_under_vmap_not_both():
    """A condition whose lanes differ would become a choice between two results; this one stays a
    condition.
    """
    stacked = jax.vmap(lambda i: append(empty(40, 1), i[None], 1.0))(jnp.arange(2.0))
    traced = jax.make_jaxpr(jax.vmap(lambda data: call_on_half(rows_of, data, 0.0)))(
        stacked
    )
    assert "cond[" in str(traced)
