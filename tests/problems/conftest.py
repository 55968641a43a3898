"""Where tests of tables of learning curves put files of their own making."""

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of curves in an empty one that stands for the data and for the cache."""
    monkeypatch.setenv("BONAS_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "curves").mkdir()
    return tmp_path / "curves"
