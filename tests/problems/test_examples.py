"""Splits and scalings against scikit-learn, published sizes and values by hand."""

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from bonas.problems import examples as ex

DRAWS = np.random.default_rng(0)
# The x of a row is its number, so that a part shows which rows it holds.
NUMBERED = ex.Examples(
    np.arange(100, dtype=np.float32)[:, None],
    np.arange(100, dtype=np.float32) ** 2,
    "regression",
    ("row",),
)
COUNTS = (59, 71, 48)  # of scikit-learn's wine
CLASSES = ex.Examples(
    np.arange(sum(COUNTS), dtype=np.float32)[:, None],
    np.repeat(np.arange(3, dtype=np.int32), COUNTS),
    "classification",
    ("row",),
    ("a", "b", "c"),
)
SKEWED = ex.Examples(
    DRAWS.gamma(2.0, [[1.0, 100.0, 1e-3]], (60, 3)).astype(np.float32),
    DRAWS.normal(50.0, 7.0, 60).astype(np.float32),
    "regression",
    ("a", "b", "c"),
)


def parts(split):
    return split.train, split.validation, split.test


def numbers(part):
    return part.x[:, 0].astype(int).tolist()


# Splits


@pytest.mark.parametrize(
    "examples", [NUMBERED, CLASSES], ids=["regression", "classification"]
)
def test_every_row_is_in_one_part(examples):
    together = [
        row
        for part in parts(ex.split(examples, 0, scaling="none"))
        for row in numbers(part)
    ]
    assert sorted(together) == list(range(len(examples.x)))


def test_rows_keep_their_values():
    for part in parts(ex.split(NUMBERED, 0, scaling="none")):
        np.testing.assert_array_equal(part.y, part.x[:, 0] ** 2)


def test_the_same_seed_gives_the_same_split():
    assert numbers(ex.split(NUMBERED, 3, scaling="none").test) == numbers(
        ex.split(NUMBERED, 3, scaling="none").test
    )


def test_another_seed_gives_another_split():
    assert numbers(ex.split(NUMBERED, 3, scaling="none").test) != numbers(
        ex.split(NUMBERED, 4, scaling="none").test
    )


@pytest.mark.parametrize(
    ("n", "fitted"),
    [
        (506, 430),
        (1030, 875),
        (768, 652),
        (8192, 6963),
        (45730, 38870),
        (1599, 1359),
        (308, 261),
    ],
)
def test_sizes_are_hutchinsons(n, fitted):
    """Training and validation rows together are 85%, as in Hutchinson's code, rounded down."""
    examples = ex.Examples(
        np.zeros((n, 1), np.float32), np.zeros(n, np.float32), "regression", ("x",)
    )
    split = ex.split(examples, 0)
    assert len(split.train.x) + len(split.validation.x) == fitted


@pytest.mark.parametrize(
    ("fractions", "sizes"),
    [
        ((0.7, 0.15, 0.15), (70, 15, 15)),
        ((0.7, 0.2, 0.1), (70, 20, 10)),
        ((0.8, 0.0, 0.2), (80, 0, 20)),
        ((1, 0, 0), (100, 0, 0)),
    ],
)
def test_shares_are_kept_to_the_row(fractions, sizes):
    assert (
        tuple(len(part.x) for part in parts(ex.split(NUMBERED, 0, fractions=fractions)))
        == sizes
    )


@pytest.mark.parametrize("seed", range(5))
def test_classes_keep_their_shares(seed):
    """Within 2 rows: ranks are cut at one place t for all classes, so each has c t ± 1 rows, and |t
    − share| ≤ 3/n.
    """
    for part in parts(ex.split(CLASSES, seed)):
        shares = np.bincount(part.y, minlength=3) - len(part.y) * np.array(
            COUNTS
        ) / len(CLASSES.y)
        assert np.abs(shares).max() <= 2.0


def test_a_class_of_one_is_trained_on():
    rare = CLASSES._replace(
        y=np.where(np.arange(len(CLASSES.y)) == 10, 3, CLASSES.y).astype(np.int32)
    )
    assert 3 in ex.split(rare, 0).train.y


def test_parts_keep_names_task_and_classes():
    for part in parts(ex.split(CLASSES, 0)):
        assert (part.task, part.names, part.classes) == (
            "classification",
            ("row",),
            ("a", "b", "c"),
        )


@pytest.mark.parametrize(
    "fractions", [(0.7, 0.3), (0.7, 0.2, 0.2), (1.2, -0.1, -0.1), (np.nan, 0.5, 0.5)]
)
def test_fractions_that_are_no_shares_are_refused(fractions):
    with pytest.raises(ValueError, match="with sum 1"):
        ex.split(NUMBERED, 0, fractions=fractions)


def test_an_empty_part_is_refused():
    with pytest.raises(ValueError, match="3 rows are too few"):
        ex.split(ex.select_rows(NUMBERED, [0, 1, 2]), 0)


# Standard splits; against the published ones in test_datasets.py


def test_nine_rows_in_ten_train():
    train, test = ex.standard_indices(506, 0)
    assert (len(train), len(test)) == (455, 51)


def test_standard_splits_differ():
    assert (
        ex.standard_indices(50, 0)[1].tolist() != ex.standard_indices(50, 1)[1].tolist()
    )


def test_a_standard_split_holds_every_row_once():
    split = ex.standard_split(NUMBERED, 2, scaling="none")
    assert sorted(
        numbers(split.train) + numbers(split.validation) + numbers(split.test)
    ) == list(range(100))


def test_validation_rows_come_from_the_standard_training_rows():
    split = ex.standard_split(NUMBERED, 2, validation=0.2, scaling="none")
    assert (
        numbers(split.train) + numbers(split.validation)
        == ex.standard_indices(100, 2)[0].tolist()
    )


@pytest.mark.parametrize("validation", [-0.1, 1.0])
def test_a_validation_share_out_of_range_is_refused(validation):
    with pytest.raises(ValueError, match="validation must be at least 0"):
        ex.standard_split(NUMBERED, 0, validation=validation)


def test_a_negative_split_number_is_refused():
    with pytest.raises(ValueError, match="numbered from 0; got -1"):
        ex.standard_split(NUMBERED, -1)


# Scalings


@pytest.mark.parametrize(
    ("kind", "scaler"),
    [("standard", StandardScaler()), ("range", MinMaxScaler((-1, 1)))],
    ids=["standard", "range"],
)
@pytest.mark.parametrize("part", ["train", "validation", "test"])
def test_x_is_scaled_as_scikit_learn_fitted_to_the_training_part(kind, scaler, part):
    raw, scaled = ex.split(SKEWED, 1, scaling="none"), ex.split(SKEWED, 1, scaling=kind)
    expected = scaler.fit(raw.train.x.astype(np.float64)).transform(
        getattr(raw, part).x.astype(np.float64)
    )
    np.testing.assert_allclose(getattr(scaled, part).x, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("part", ["train", "validation", "test"])
def test_y_is_scaled_as_scikit_learn_fitted_to_the_training_part(part):
    raw, scaled = ex.split(SKEWED, 1, scaling="none"), ex.split(SKEWED, 1)
    scaler = StandardScaler().fit(raw.train.y[:, None].astype(np.float64))
    np.testing.assert_allclose(
        getattr(scaled, part).y,
        scaler.transform(getattr(raw, part).y[:, None])[:, 0],
        rtol=1e-5,
        atol=1e-6,
    )


def test_rows_outside_the_training_part_do_not_move_the_scaling():
    spoilt = SKEWED._replace(
        x=np.where(np.arange(60)[:, None] < 40, SKEWED.x, 1e6).astype(np.float32)
    )
    clean, other = (
        ex.split_by_rows(data, np.arange(40), np.arange(40, 50), np.arange(50, 60))
        for data in (SKEWED, spoilt)
    )
    np.testing.assert_array_equal(clean.train.x, other.train.x)


def test_unscaling_undoes_scaling():
    split = ex.split(SKEWED, 1)
    raw = ex.split(SKEWED, 1, scaling="none")
    np.testing.assert_allclose(
        ex.unscale(split.scaling, split.test.y), raw.test.y, rtol=1e-5
    )


def test_labels_are_not_scaled():
    assert set(ex.split(CLASSES, 0).train.y.tolist()) == {0, 1, 2}


@pytest.mark.parametrize("kind", ["standard", "range"])
def test_a_column_that_is_constant_in_training_becomes_zero(kind):
    """0.1 is no binary fraction: a mean that rounds would leave a standard deviation that is not
    quite 0.
    """
    constant = SKEWED._replace(x=np.full((60, 3), 0.1, np.float32))
    np.testing.assert_array_equal(ex.split(constant, 0, scaling=kind).train.x, 0.0)


@pytest.mark.parametrize("part", ["train", "validation", "test"])
def test_scaled_arrays_stay_float32(part):
    examples = getattr(ex.split(SKEWED, 0), part)
    assert (examples.x.dtype, examples.y.dtype) == (np.float32, np.float32)


def test_an_unknown_scaling_is_refused():
    with pytest.raises(ValueError, match="standard, range, none; got 'white'"):
        ex.split(SKEWED, 0, scaling="white")


# Labels


@pytest.mark.parametrize(
    ("values", "expected", "classes"),
    [
        (["dog", "cat", "dog"], [1, 0, 1], ("cat", "dog")),
        ([10.0, 9.0, 10.0], [1, 0, 1], ("9", "10")),
        ([0.5, 2.0], [0, 1], ("0.5", "2.0")),
        ([True, False], [1, 0], ("False", "True")),
        ([16777217.0, 16777216.0], [1, 0], ("16777216", "16777217")),
    ],
    ids=["text", "whole numbers", "fractions", "truth", "large numbers"],
)
def test_labels_are_numbered_in_order(values, expected, classes):
    y, found = ex.encode_labels(values)
    assert (y.tolist(), found) == (expected, classes)
