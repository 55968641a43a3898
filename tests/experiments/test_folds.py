import numpy as np
import pytest
from scipy import stats

from experiments.raiders.folds import contiguous_folds, paired, random_folds


@pytest.mark.parametrize(
    "folds",
    [random_folds(951, 10, 3), contiguous_folds(951, 10)],
    ids=["random", "contiguous"],
)
def test_every_row_is_tested_once(folds):
    assert sorted(np.concatenate(folds).tolist()) == list(range(951))
    assert {len(fold) for fold in folds} == {95, 96}


def test_random_folds_depend_on_the_seed_alone():
    first, again, other = (
        np.concatenate(random_folds(50, 5, seed)) for seed in (0, 0, 1)
    )
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize("k", [1, 8])
def test_a_number_of_folds_that_makes_no_sense_is_refused(k):
    with pytest.raises(
        ValueError, match=f"k must be between 2 and 7, the number of rows; got {k}"
    ):
        random_folds(7, k, 0)


def test_the_corrected_error_by_hand():
    """Differences 1, 2, 3, 6 have mean 3 and s² = (4 + 1 + 0 + 9)/3 = 14/3.

    The corrected variance is (1/4 + 1/3) · 14/3 = 49/18, the error 7/√18 = 1.649916.
    """
    found = paired([1.0, 2.0, 3.0, 6.0], test_share=0.25)
    np.testing.assert_allclose(
        found[:3], [3.0, 7.0 / np.sqrt(18.0), 3.0 * np.sqrt(18.0) / 7.0], rtol=1e-12
    )
    np.testing.assert_allclose(found.error, 1.649916, atol=5e-7)
    np.testing.assert_allclose(
        found.p, 2.0 * stats.t(3).cdf(-3.0 * np.sqrt(18.0) / 7.0), rtol=1e-10
    )


def test_repeating_the_same_folds_adds_nothing_in_the_end():
    """The usual error tends to 0 with more repeats; the corrected one to s √(test/train)."""
    differences = np.tile([1.0, -1.0, 2.0, 0.5], 10_000)
    np.testing.assert_allclose(
        paired(differences, 0.1).error, differences.std() / 3.0, rtol=1e-3
    )


def test_models_that_never_differ_are_no_different():
    assert paired([0.0, 0.0, 0.0], 0.1) == (0.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize("differences", [[1.0], [1.0, np.nan], [[1.0, 2.0]]])
def test_what_are_no_differences_is_refused(differences):
    with pytest.raises(ValueError, match="two or more finite differences"):
        paired(differences, 0.1)


def test_a_share_that_is_none_is_refused():
    with pytest.raises(ValueError, match="between 0 and 1; got 10"):
        paired([1.0, 2.0], 10)
