"""Lines of points along one parameter."""

import jax.numpy as jnp
import numpy as np

import bonas
from bonas.spaces import column_values, rows_along

SPACE = bonas.Space(
    kind=bonas.Choice("a", "b", "c"),
    depth=bonas.Int(1, 3),
    rate=bonas.Float(1e-3, 1.0, log=True),
    slope=bonas.Float(0.0, 1.0, when={"kind": "b"}),
)


def test_values_of_a_line_are_all_that_exist_or_as_many_as_wanted():
    found = [column_values(each, 5) for each in SPACE.parameters.values()]
    np.testing.assert_allclose(found[0], [0.0, 0.5, 1.0])  # all options, however many
    np.testing.assert_allclose(found[1], [0.0, 0.5, 1.0])  # repeats are left out
    np.testing.assert_allclose(found[2], [0.0, 0.25, 0.5, 0.75, 1.0])


def test_rows_of_a_line_differ_in_one_parameter_and_what_it_activates():
    base = SPACE.encode({"kind": "a", "depth": 2, "rate": 1e-3})
    rows = SPACE.snap(rows_along(SPACE, base, "kind", jnp.array([0.0, 0.5, 1.0])))
    configs = [SPACE.decode(row) for row in rows]
    assert configs == [
        {"kind": "a", "depth": 2, "rate": 1e-3},
        {"kind": "b", "depth": 2, "rate": 1e-3, "slope": 0.5},
        {"kind": "c", "depth": 2, "rate": 1e-3},
    ]
