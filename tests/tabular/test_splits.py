"""The split of a table into training, validation and test rows."""

import numpy as np
import pytest

from bonas.problems.examples import unscale
from bonas.tabular.splits import MIN_ROWS, prepare_table
from bonas.tabular.table import Table, read_table

N = 103


def table(n=N, holes=()):
    """Make a table with the row number as its input."""
    x = np.arange(n, dtype=float)
    x[list(holes)] = np.nan
    y = np.random.default_rng(0).normal(size=n)
    return Table("t", {"x": x, "y": y}, target="y")


def rows_of(split, part):
    """Return the row numbers of a part, from the scaled column."""
    x = (
        getattr(split, part).x[:, 0] * split.scaling.x_scale[0]
        + split.scaling.x_center[0]
    )
    return set(np.round(x).astype(int).tolist())


def test_every_row_is_in_one_part_of_every_fold():
    found = prepare_table(table(), 0)
    for split in found.folds:
        parts = [rows_of(split, part) for part in ("train", "validation", "test")]
        assert sorted(row for part in parts for row in part) == list(range(N))


def test_folds_have_one_shape_and_hold_out_each_row_once():
    found = prepare_table(table(), 0)
    assert (
        len({(split.train.x.shape, split.validation.x.shape) for split in found.folds})
        == 1
    )
    held = [rows_of(split, "validation") for split in found.folds]
    assert len(set.union(*held)) == sum(map(len, held)) == len(held) * len(held[0])


def test_the_test_rows_are_the_same_everywhere_and_a_fifth():
    found = prepare_table(table(), 3)
    tests = [rows_of(split, "test") for split in (*found.folds, found.development)]
    assert all(test == tests[0] for test in tests)
    assert len(tests[0]) == pytest.approx(N / 5, abs=1)


def test_the_split_depends_on_the_seed():
    def test_rows(seed):
        return rows_of(prepare_table(table(), seed).development, "test")

    assert test_rows(1) == test_rows(1) != test_rows(2)


def test_many_rows_have_one_fold():
    found = prepare_table(table(3000), 0)
    assert len(found.folds) == 1
    # a fifth of the four fifths that are left
    assert len(found.folds[0].validation.x) == 480


def table_of_classes(*counts):
    """Make a table with these numbers of rows per class."""
    y = np.repeat([f"c{label}" for label in range(len(counts))], counts)
    return Table("t", {"x": np.arange(len(y), dtype=float), "y": y}, target="y")


SHARES = {
    "a fifth": table_of_classes(400, 100),
    "a tenth": table_of_classes(450, 50),
    "2:2:1": table_of_classes(40, 40, 20),
    "rows over": table_of_classes(31, 17, 8, 3),
    "five alike": table_of_classes(*[50] * 5),
    "ten alike": table_of_classes(*[30] * 10),
    "one fold": table_of_classes(2000, 500),
    "wine": read_table("wine"),
    "digits": read_table("digits"),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SHARES)
def test_every_fold_has_its_share_of_every_class_to_within_one_row(name, seed):
    found = prepare_table(SHARES[name], seed)
    kinds = len(found.columns.classes)
    rest = np.bincount(found.development.train.y, minlength=kinds)
    for split in found.folds:
        assert (
            np.abs(np.bincount(split.validation.y, minlength=kinds) - rest / 5).max()
            <= 1.0
        )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SHARES)
def test_the_test_rows_have_their_share_of_every_class_to_within_one_row(name, seed):
    found = prepare_table(SHARES[name], seed)
    test = np.bincount(found.development.test.y, minlength=len(found.columns.classes))
    whole = test + np.bincount(found.development.train.y, minlength=len(test))
    assert np.abs(test - whole / 5).max() <= 1.0


def test_fill_values_do_not_depend_on_the_test_rows():
    blank = prepare_table(table(), 0)
    test = sorted(rows_of(blank.development, "test"))
    far = table(holes=[next(iter(rows_of(blank.development, "train")))])
    far.columns["x"][test] = 1e6
    assert prepare_table(far, 0, impute=True).columns.inputs[0].fill < N


def test_targets_come_back_in_their_units():
    data = table()
    split = prepare_table(data, 0).folds[2]
    rows = np.round(
        split.validation.x[:, 0] * split.scaling.x_scale[0] + split.scaling.x_center[0]
    ).astype(int)
    np.testing.assert_allclose(
        unscale(split.scaling, split.validation.y),
        data.columns["y"][rows],
        rtol=1e-4,
        atol=1e-5,
    )


def test_too_few_rows_are_refused():
    with pytest.raises(
        ValueError,
        match=f"t has {MIN_ROWS - 1} rows; a search needs at least {MIN_ROWS}",
    ):
        prepare_table(table(MIN_ROWS - 1), 0)


def test_the_size_is_of_one_fold():
    size = prepare_table(read_table("iris"), 0).size
    assert (size.inputs, size.outputs, size.task) == (4, 3, "classification")
    assert size.rows == 96
