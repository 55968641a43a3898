"""Successive halving, Hyperband and top-k: the networks that each one continues."""

import numpy as np
import pytest
from curves.curve_table import SPACE, STEPS, TABLE, drive

from bonas.curves import hyperband, successive_halving, top_k
from bonas.curves.training_record import is_complete


def test_successive_halving_continues_the_best():
    """Nine networks, three, one, each the least of those before."""
    named, state, _ = drive(successive_halving(SPACE, STEPS), TABLE, 13)
    rows = np.ravel(named)
    ends = np.asarray(TABLE)
    first, second, third = rows[:9], rows[9:12], rows[12:]
    assert len(set(first)) == 9
    assert set(second) == set(first[np.argsort(ends[first, 0])[:3]])
    assert set(third) == {second[np.argmin(ends[second, 1])]}
    assert np.asarray(is_complete(state.record)).sum() == 1


def test_later_brackets_of_hyperband_halve_later_and_are_smaller():
    """With eta 3 and three checkpoints: (9, 3, 1), (5, 5, 1) and (3, 3, 3) networks.

    Li et al. 2018, Algorithm 1.
    """
    rows = np.ravel(drive(hyperband(SPACE, STEPS), TABLE, 13 + 11 + 9)[0])
    counts = [
        np.sort(np.unique(part, return_counts=True)[1])
        for part in (rows[:13], rows[13:24], rows[24:])
    ]
    np.testing.assert_array_equal(counts[0], [1] * 6 + [2] * 2 + [3])
    np.testing.assert_array_equal(counts[1], [2] * 4 + [3])
    np.testing.assert_array_equal(counts[2], [3] * 3)


@pytest.mark.typed
def test_top_k_finishes_the_k_best_of_the_first_checkpoint():
    rows = np.ravel(drive(top_k(SPACE, STEPS, width=6, k=2), TABLE, 10)[0])
    chosen = rows[:6][np.argsort(np.asarray(TABLE)[rows[:6], 0])[:2]]
    assert set(rows[6:]) == set(chosen)


def test_invalid_settings_are_refused():
    with pytest.raises(ValueError, match="eta must be an integer of at least 2"):
        successive_halving(SPACE, STEPS, eta=1)
    with pytest.raises(ValueError, match="k must be between 1 and width"):
        top_k(SPACE, STEPS, width=3, k=4)
