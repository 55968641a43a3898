"""Which rows train, validate and test, and what is found from which of them."""

import numpy as np
import pytest

from bonas.problems.examples import unscale
from bonas.tabular.prepared import FEWEST, prepare
from bonas.tabular.table import Table, read

N = 103


def table(n=N, holes=()):
    """A column that numbers the rows, and a target."""
    x = np.arange(n, dtype=float)
    x[list(holes)] = np.nan
    y = np.random.default_rng(0).normal(size=n)
    return Table("t", {"x": x, "y": y}, target="y")


def rows_of(split, part):
    """The numbers of the rows of a part, out of the scaled column."""
    x = getattr(split, part).x[:, 0] * split.scaling.x_scale[0] + split.scaling.x_centre[0]
    return set(np.round(x).astype(int).tolist())


def test_every_row_is_in_one_part_of_every_fold():
    found = prepare(table(), 0)
    for split in found.folds:
        parts = [rows_of(split, part) for part in ("train", "validation", "test")]
        assert sorted(row for part in parts for row in part) == list(range(N))


def test_folds_have_one_shape_and_hold_out_each_row_once():
    found = prepare(table(), 0)
    assert len({(split.train.x.shape, split.validation.x.shape) for split in found.folds}) == 1
    held = [rows_of(split, "validation") for split in found.folds]
    assert len(set.union(*held)) == sum(map(len, held)) == len(held) * len(held[0])


def test_the_test_rows_are_the_same_everywhere_and_a_fifth():
    found = prepare(table(), 3)
    tests = [rows_of(split, "test") for split in (*found.folds, found.whole)]
    assert all(test == tests[0] for test in tests)
    assert len(tests[0]) == pytest.approx(N / 5, abs=1)


def test_seeds_decide():
    def test_rows(seed):
        return rows_of(prepare(table(), seed).whole, "test")

    assert test_rows(1) == test_rows(1) != test_rows(2)


def test_many_rows_have_one_fold():
    found = prepare(table(3000), 0)
    assert len(found.folds) == 1
    assert len(found.folds[0].validation.x) == 480  # a fifth of the four fifths that are left


def of_classes(*counts):
    """A table with so many rows of each class."""
    y = np.repeat([f"c{label}" for label in range(len(counts))], counts)
    return Table("t", {"x": np.arange(len(y), dtype=float), "y": y}, target="y")


SHARES = {
    "a fifth": of_classes(400, 100),
    "a tenth": of_classes(450, 50),
    "2:2:1": of_classes(40, 40, 20),
    "rows over": of_classes(31, 17, 8, 3),
    "five alike": of_classes(*[50] * 5),
    "ten alike": of_classes(*[30] * 10),
    "one fold": of_classes(2000, 500),
    "wine": read("wine"),
    "digits": read("digits"),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SHARES)
def test_every_fold_has_its_share_of_every_class_to_within_one_row(name, seed):
    found = prepare(SHARES[name], seed)
    kinds = len(found.columns.classes)
    rest = np.bincount(found.whole.train.y, minlength=kinds)
    for split in found.folds:
        assert np.abs(np.bincount(split.validation.y, minlength=kinds) - rest / 5).max() <= 1.0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SHARES)
def test_the_test_rows_have_their_share_of_every_class_to_within_one_row(name, seed):
    found = prepare(SHARES[name], seed)
    test = np.bincount(found.whole.test.y, minlength=len(found.columns.classes))
    whole = test + np.bincount(found.whole.train.y, minlength=len(test))
    assert np.abs(test - whole / 5).max() <= 1.0


def test_test_rows_have_no_part_in_what_stands_for_missing_values():
    blank = prepare(table(), 0)
    test = sorted(rows_of(blank.whole, "test"))
    far = table(holes=[next(iter(rows_of(blank.whole, "train")))])
    far.columns["x"][test] = 1e6
    assert prepare(far, 0, impute=True).columns.inputs[0].fill < N


def test_targets_come_back_in_their_units():
    data = table()
    split = prepare(data, 0).folds[2]
    rows = np.round(split.validation.x[:, 0] * split.scaling.x_scale[0] + split.scaling.x_centre[0]).astype(int)
    np.testing.assert_allclose(unscale(split.scaling, split.validation.y), data.columns["y"][rows], rtol=1e-4, atol=1e-5)


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match=f"t has {FEWEST - 1} rows, too few"):
        prepare(table(FEWEST - 1), 0)


def test_the_size_is_that_of_a_fold():
    size = prepare(read("iris"), 0).size
    assert (size.inputs, size.outputs, size.task) == (4, 3, "classification")
    assert size.rows == 96
