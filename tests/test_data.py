"""Datasets of fixed capacity: bad input, masking, and no recompilation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bonas.checked_data import dataset, grow
from bonas.data import Dataset, append, clean, empty, standardize

X = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
Y = np.array([1.5, -2.5])


def same(a: Dataset, b: Dataset) -> None:
    for field in Dataset._fields:
        np.testing.assert_array_equal(
            getattr(a, field), getattr(b, field), err_msg=field
        )


# Making one


def test_a_new_dataset_holds_its_rows_and_room():
    data = dataset(X, Y, capacity=4)
    np.testing.assert_array_equal(data.x, [*X, np.zeros(3), np.zeros(3)])
    np.testing.assert_array_equal(data.y, [[1.5], [-2.5], [0.0], [0.0]])
    np.testing.assert_array_equal(data.mask, [[True], [True], [False], [False]])
    assert data.size == 2


def test_capacity_defaults_to_the_rows_given():
    assert dataset(X, Y).x.shape == (2, 3)


def test_no_rows_leave_room_for_one():
    data = dataset(np.zeros((0, 3)), np.zeros(0))
    assert data.x.shape == (1, 3)
    assert data.size == 0
    assert not data.mask.any()


def test_a_column_of_values_is_the_same_as_a_list():
    same(dataset(X, Y), dataset(X, Y[:, None]))


def test_whole_numbers_become_real():
    data = dataset(np.array([[0, 1]]), np.array([2]))
    assert (data.x.dtype, data.y.dtype) == (jnp.float64, jnp.float64)


def test_precision_is_the_default_one():
    with jax.enable_x64(False):
        assert dataset(X, Y).x.dtype == jnp.float32


def test_missing_outputs_are_masked():
    y = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]])
    data = dataset(X, y)
    np.testing.assert_array_equal(
        data.mask, [[True, False, True], [False, False, False]]
    )
    np.testing.assert_array_equal(data.y, [[1.0, 0.0, 3.0], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 2])
def test_bad_points_are_refused_with_their_row(bad, row):
    x = np.full((4, 2), 0.5)
    x[row:, 1] = bad
    with pytest.raises(ValueError, match=f"row {row} "):
        dataset(x, np.zeros(4))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 2])
def test_bad_values_are_refused_with_their_row(bad, row):
    y = np.zeros(4)
    y[row:] = bad
    with pytest.raises(ValueError, match=f"row {row} "):
        dataset(np.full((4, 2), 0.5), y)


@pytest.mark.parametrize("part", ["x", "y"])
@pytest.mark.filterwarnings("error")
def test_values_that_float32_cannot_hold_are_refused_without_a_warning(part):
    columns = {"x": np.full((4, 2), 0.5), "y": np.zeros(4)}
    columns[part][2] = -1e300
    assert dataset(**columns).size == 4
    with (
        jax.enable_x64(False),
        pytest.raises(ValueError, match=r"row 2 has .* an infinite value in float32"),
    ):
        dataset(**columns)


def test_infinite_outputs_are_not_missing_ones():
    with pytest.raises(ValueError, match="row 1 "):
        dataset(X, np.array([[1.0, np.nan], [1.0, np.inf]]))


BAD_SHAPES = {
    "x of one axis": (np.zeros(3), np.zeros(3)),
    "x of three axes": (np.zeros((3, 1, 1)), np.zeros(3)),
    "more values than rows": (np.zeros((3, 2)), np.zeros(4)),
    "y of no axis": (np.zeros((1, 2)), np.zeros(())),
    "y of three axes": (np.zeros((3, 2)), np.zeros((3, 1, 1))),
}


@pytest.mark.parametrize(("x", "y"), BAD_SHAPES.values(), ids=BAD_SHAPES)
def test_bad_shapes_are_refused(x, y):
    with pytest.raises(ValueError, match="expected x of shape"):
        dataset(x, y)


def test_more_rows_than_room_are_refused():
    with pytest.raises(
        ValueError, match="capacity must be at least 2, the number of rows; got 1"
    ):
        dataset(X, Y, capacity=1)


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, 0, 1), (1, 1, 0)], ids=str)
def test_nothing_has_no_room(sizes):
    with pytest.raises(ValueError, match="at least 1"):
        empty(*sizes)


# Appending


@pytest.mark.typed
def test_appending_row_by_row_is_making_at_once():
    data = empty(4, 3, dtype=jnp.float64)
    for x, y in zip(X, Y, strict=True):
        data = append(data, x, y)
    same(data, dataset(X, Y, capacity=4))


def test_appending_changes_no_other_row():
    after = append(dataset(X, Y, capacity=4), np.ones(3), 9.0)
    same(after, dataset([*X, np.ones(3)], [*Y, 9.0], capacity=4))


def test_unobserved_rows_take_their_place():
    data = append(
        append(empty(3, 1), np.array([0.2]), np.nan, observed=False),
        np.array([0.3]),
        1.0,
    )
    np.testing.assert_array_equal(data.mask[:, 0], [False, True, False])
    assert data.size == 2


def test_outputs_may_be_observed_one_by_one():
    data = append(
        empty(2, 1, 3),
        np.array([0.2]),
        np.array([1.0, 2.0, 3.0]),
        observed=np.array([True, False, True]),
    )
    np.testing.assert_array_equal(data.mask[0], [True, False, True])


def test_a_full_dataset_refuses_on_the_host():
    with pytest.raises(ValueError, match="its capacity is 2 rows"):
        append(dataset(X, Y), np.ones(3), 0.0)


def test_a_full_dataset_drops_the_row_under_jit():
    full = dataset(X, Y)
    same(jax.jit(append)(full, np.ones(3), 0.0)._replace(size=full.size), full)


def test_a_dropped_row_shows_in_the_size():
    assert jax.jit(append)(dataset(X, Y), np.ones(3), 0.0).size == 3


@pytest.mark.parametrize("shape", [(), (1,), (2,), (4,), (1, 3)], ids=str)
def test_points_of_another_width_are_refused(shape):
    with pytest.raises(ValueError, match=r"x of shape \(3,\)"):
        append(empty(4, 3), np.ones(shape), 0.0)


@pytest.mark.parametrize("shape", [(1,), (3,), (1, 2)], ids=str)
def test_outputs_of_another_number_are_refused(shape):
    with pytest.raises(ValueError, match=r"y of shape \(\) or \(2,\)"):
        append(empty(4, 3, 2), np.ones(3), np.ones(shape))


def test_appending_compiles_once():
    # a function of its own: jit counts by function
    step = jax.jit(lambda *given: append(*given))
    data = empty(20, 3)
    for i in range(20):
        data = step(
            data, jnp.full(3, i / 20), jnp.asarray(float(i)), jnp.asarray(i % 3 > 0)
        )
    assert step._cache_size() == 1


def test_what_uses_the_data_compiles_once_while_it_grows():
    average = jax.jit(lambda data: jnp.sum(clean(data).y) / data.mask.sum())
    data = dataset(X, Y, capacity=12)
    for i in range(8):
        data = append(data, np.full(3, 0.1 * i), float(i))
        average(data)
    assert average._cache_size() == 1


def test_appending_under_scan_is_appending_in_a_loop():
    rows, values = jax.random.uniform(jax.random.key(0), (6, 2)), jnp.arange(6.0)
    scanned, _ = jax.lax.scan(
        lambda data, row: (append(data, *row), None), empty(8, 2), (rows, values)
    )
    same(scanned, dataset(rows, values, capacity=8))


# Growing and cleaning


def test_growing_adds_room_alone():
    same(grow(dataset(X, Y, capacity=3), 5), dataset(X, Y, capacity=5))


def test_growing_does_not_shrink():
    with pytest.raises(ValueError, match="capacity must be at least"):
        grow(dataset(X, Y), 1)


@pytest.mark.parametrize("rubbish", [np.nan, np.inf, 1e6])
def test_cleaning_empties_masked_rows(rubbish):
    data = dataset(X, Y, capacity=4)
    same(
        clean(
            data._replace(x=data.x.at[2:].set(rubbish), y=data.y.at[2:].set(rubbish))
        ),
        data,
    )


def test_cleaning_keeps_points_with_some_outputs():
    data = Dataset(
        x=jnp.asarray([[0.5], [0.6]]),
        y=jnp.asarray([[1.0, jnp.nan], [jnp.nan, jnp.nan]]),
        mask=jnp.asarray([[True, False], [False, False]]),
        size=jnp.asarray(2),
    )
    np.testing.assert_array_equal(clean(data).x, [[0.5], [0.0]])
    np.testing.assert_array_equal(clean(data).y, [[1.0, 0.0], [0.0, 0.0]])


def test_gradients_through_clean_data_are_numbers():
    """d/ds of Σ sin(s x) over the observed rows, with NaN in the others."""
    data = dataset(X[:, :1], Y, capacity=3)
    dirty = data._replace(x=data.x.at[2].set(jnp.nan))
    slope = jax.grad(
        lambda s: jnp.sum(jnp.where(data.mask, jnp.sin(s * clean(dirty).x), 0.0))
    )(2.0)
    np.testing.assert_allclose(
        slope, (X[:, 0] * np.cos(2.0 * X[:, 0])).sum(), rtol=1e-12
    )


@pytest.mark.parametrize("value", [0.1, 1e-9, 3.3e6, 0.0])
@pytest.mark.parametrize("n", [1, 3, 7])
def test_equal_values_have_no_scale(n, value):
    """The mean of equal values differs from them by rounding, which is no spread."""
    scaled, mean, scale = standardize(
        dataset(np.random.default_rng(0).random((n, 2)), np.full(n, value), capacity=9)
    )
    np.testing.assert_array_equal(scaled.y, 0.0)
    np.testing.assert_allclose([mean, scale], [value, 1.0], rtol=1e-12)


@pytest.mark.typed
def test_standardized_values_have_mean_zero_and_variance_one_whatever_is_behind_the_mask():
    x, y = (
        np.random.default_rng(0).random((6, 2)),
        np.array([3.0, -1.0, 4.0, 1.0, 5.0, 9.0]),
    )
    data = dataset(x, y, capacity=8)
    data = data._replace(y=data.y.at[6:].set(jnp.nan))
    scaled, mean, scale = standardize(data)
    np.testing.assert_allclose(scaled.y[:6, 0], (y - y.mean()) / y.std(), rtol=1e-12)
    np.testing.assert_allclose([mean, scale], [y.mean(), y.std()], rtol=1e-12)
    gradient = jax.grad(lambda y: standardize(data._replace(y=y))[0].y[0, 0])(data.y)
    assert jnp.isfinite(gradient).all()
