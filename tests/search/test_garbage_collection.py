"""Garbage collection while a program is traced."""

import gc

import jax
import pytest

import bonas
from bonas.search.garbage_collection import only_new_objects


@pytest.fixture(autouse=True)
def _no_frozen_objects():
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_old_objects_are_excluded_only_inside():
    with only_new_objects():
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_an_error_does_not_leave_objects_excluded():
    with pytest.raises(KeyError), only_new_objects():
        raise KeyError
    assert gc.get_freeze_count() == 0


def test_objects_that_the_caller_has_excluded_stay_so():
    gc.freeze()
    with only_new_objects():
        pass
    assert gc.get_freeze_count() > 0


def test_an_ask_is_traced_without_examining_old_objects(monkeypatch):
    counts = []
    space = bonas.Space(x=bonas.Float(0.0, 1.0))
    search = bonas.bayes(space)
    state = search.init(jax.random.key(0), 8)
    sample = bonas.Space.sample

    def count(self, *arguments):
        counts.append(gc.get_freeze_count())
        return sample(self, *arguments)

    monkeypatch.setattr(bonas.Space, "sample", count)
    jax.eval_shape(search.ask, jax.random.key(0), state)
    assert counts
    assert min(counts) > 0
    assert gc.get_freeze_count() == 0
