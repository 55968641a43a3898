import jax.numpy as jnp
import numpy as np

import bonas
from bonas import gp


def test_wiltons_mean_lies_half_way_between_lowest_and_average():
    """Wilton 2020, eq. 7: min + 0.5 (mean − min); here 1 + 0.5 (4 − 1)."""
    data = bonas.dataset([[0.1], [0.2], [0.3]], [1.0, 4.0, 7.0], capacity=5)
    assert gp.wilton.value({}, data, jnp.zeros(1)) == 2.5


def test_wiltons_mean_of_no_data_is_zero():
    assert gp.wilton.value({}, bonas.data.empty(3, 1), jnp.zeros(1)) == 0.0


def test_a_mean_from_a_notebook_cell_that_depends_on_the_point():
    def slope(params, data, x):
        return 2.0 * x.sum()

    data = bonas.dataset(
        [[0.1], [0.7]], [0.2, 1.4]
    )  # exactly on the line: nothing is left for the GP
    posterior = gp.condition(
        gp.se(),
        {"variance": 1.0, "lengthscale": 0.2},
        data,
        noise=1e-4,
        mean=gp.Mean(slope),
    )
    np.testing.assert_allclose(
        gp.predict(posterior, jnp.array([[0.5]])).mean, 1.0, rtol=1e-12
    )
