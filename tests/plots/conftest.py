"""Figures are drawn into memory, and closed after every test."""

import matplotlib as mpl
import pytest

mpl.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    mpl.pyplot.close("all")
