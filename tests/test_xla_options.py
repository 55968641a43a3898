"""Check that XLA's options are set only for measured releases and never replace a user's."""

import jaxlib
import pytest

from bonas import xla_options

EMITTERS = "xla_cpu_use_fusion_emitters"
FLAGS = f"--{EMITTERS}=false --xla_backend_extra_options=xla_cpu_disable_loop_unrolling"


@pytest.fixture
def environment(monkeypatch):
    """Remove the variables that the functions set; restore them after the test."""
    for name in ("XLA_FLAGS", "NPROC"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return xla_options.os.environ


def test_measured_releases_get_the_options(environment, monkeypatch):
    monkeypatch.setattr(jaxlib, "__version__", "0.10.3")
    xla_options.compile_faster()
    xla_options.use_one_thread()
    assert environment["XLA_FLAGS"] == FLAGS
    assert environment["NPROC"] == "1"
    assert xla_options.for_long_arrays() == {EMITTERS: True}


@pytest.mark.parametrize("release", ["0.9.1", "0.11.0", "1.0"])
def test_other_releases_get_none(environment, monkeypatch, release):
    monkeypatch.setattr(jaxlib, "__version__", release)
    xla_options.compile_faster()
    xla_options.use_one_thread()
    assert "XLA_FLAGS" not in environment
    assert "NPROC" not in environment
    assert xla_options.for_long_arrays() == {}


def test_settings_of_the_user_are_kept(environment, monkeypatch):
    monkeypatch.setattr(jaxlib, "__version__", "0.10.3")
    own = f"--{EMITTERS}=true --xla_backend_extra_options=xla_cpu_optimize_for_size"
    monkeypatch.setenv("XLA_FLAGS", own)
    monkeypatch.setenv("NPROC", "4")
    xla_options.compile_faster()
    xla_options.use_one_thread()
    assert environment["XLA_FLAGS"] == own
    assert environment["NPROC"] == "4"


def test_other_flags_are_kept(environment, monkeypatch):
    monkeypatch.setattr(jaxlib, "__version__", "0.10.3")
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=folder")
    xla_options.compile_faster()
    assert environment["XLA_FLAGS"] == f"--xla_dump_to=folder {FLAGS}"
