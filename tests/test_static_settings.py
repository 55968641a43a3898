"""Counts are positive integers, and no setting that determines the program is traced."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bonas.static_settings import (
    check_counts,
    check_not_negative,
    check_option,
    check_static,
)


@pytest.mark.parametrize("count", [1, np.int32(7), np.array(3), jnp.array(3)])
def test_integers_of_any_library_are_counts(count):
    check_counts(depth=1, width=count)


@pytest.mark.parametrize("count", [0, -1, 2.0, "2", None, True, np.ones(2)])
def test_other_values_are_refused_by_name(count):
    with pytest.raises(
        ValueError, match=r"^width must be an integer of at least 1; got"
    ):
        check_counts(depth=1, width=count)


def test_counts_that_are_not_negative_may_be_0_or_missing():
    check_not_negative(burn=0, restarts=None)
    with pytest.raises(
        ValueError, match=r"^burn must be an integer of at least 0; got -1"
    ):
        check_not_negative(burn=-1)


def test_tracers_are_refused_by_name_also_inside_tuples():
    words = (
        r"must be static, because it determines the compiled program; .* got a tracer"
    )
    with pytest.raises(TypeError, match=f"^width {words}"):
        jax.eval_shape(lambda n: check_counts(width=n), 3)
    with pytest.raises(TypeError, match=f"^range {words}"):
        jax.eval_shape(lambda n: check_static("range", (0, n)), 3)


def test_options_are_static_names():
    check_option("color", "red", ("red", "blue"))
    with pytest.raises(
        ValueError, match=r"^color must be one of red, blue; got 'green'"
    ):
        check_option("color", "green", ("red", "blue"))
    with pytest.raises(TypeError, match=r"^color must be static"):
        jax.eval_shape(lambda n: check_option("color", n, ("red",)), 3)
