"""float64 and no silent broadcasting between ranks, for the whole suite."""

import json
import os
from pathlib import Path

import jax
import pytest
from jaxtyping import install_import_hook

if "BONAS_TYPECHECK" in os.environ:  # set by tests/test_annotations.py
    install_import_hook("bonas", "beartype.beartype")

import bonas

bonas.configure()
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(scope="session")
def reference():
    """reference("gp") -> the values in tests/reference/gp_reference.json, which say how they were
    made.
    """

    def load(name: str) -> dict:
        return json.loads(
            (Path(__file__).parent / "reference" / f"{name}_reference.json").read_text()
        )

    return load


@pytest.fixture(autouse=True, scope="module")
def forget_compiled_programs():
    """Compiled programs of one file are of no use to the next, and there are thousands."""
    yield
    jax.clear_caches()
