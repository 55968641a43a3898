"""Ctrl-C during a command."""

import signal
import time

import pytest

from bonas.cli.interrupts import interrupt


def test_an_interrupt_in_a_callback_of_jax_is_raised_later():
    """An exception in JAX's garbage-collection callback is ignored."""

    def _xla_gc_callback():
        signal.raise_signal(signal.SIGINT)
        return "not interrupted"

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        assert _xla_gc_callback() == "not interrupted"
        with pytest.raises(KeyboardInterrupt):
            time.sleep(30.0)
    finally:
        signal.signal(signal.SIGINT, before)
