"""Intervals of networks that know how sure they may be hold what they should."""

import numpy as np

from bonas.study.intervals import LEVELS, shares
from bonas.tabular.look import Answer

ROWS = 10_000
_ERRORS = 5.0 * 0.5 / np.sqrt(ROWS)  # five standard errors of a share, at most


def test_draws_from_what_is_predicted_lie_within():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=ROWS), rng.uniform(0.5, 2.0, ROWS)
    held = shares(Answer(mean, std), rng.normal(mean, std))
    assert list(held) == [str(level) for level in LEVELS]
    np.testing.assert_allclose(list(held.values()), np.array(LEVELS) / 100.0, atol=_ERRORS)


def test_predictions_that_are_too_sure_hold_less():
    y = np.random.default_rng(0).normal(size=ROWS)
    held = shares(Answer(np.zeros(ROWS), np.full(ROWS, 0.5)), y)
    assert abs(held["95"] - 0.673) < _ERRORS  # the central 95% of half the deviation: within 0.98 of it
