"""432 Gaussian processes; `python -m campaign.fuzz_gp --problems 20000` fits many."""

import jax
import jax.numpy as jnp
import pytest
from campaign import fuzz_gp

from bonas import linalg
from bonas.gp import exact


@pytest.mark.slow
@pytest.mark.parametrize("bits", [64, 32])
def test_every_number_of_a_gaussian_process_is_finite(bits):
    with jax.enable_x64(bits == 64):
        names = ("matern52", "arc", "linear") if bits == 64 else ("se",)
        failures, counts = fuzz_gp.fuzz(range(len(names)), names=names)
    assert not failures, "\n".join(failures)
    assert counts["problems"] == len(names) * fuzz_gp.BATCH
    assert counts["jitter"] > 10


@pytest.mark.slow
def test_the_fuzzer_notices_a_lost_retry(monkeypatch):
    """A factorization without jitter, which fails for duplicates without noise."""

    def factorize(cov, mask):
        return linalg.Factor(jnp.linalg.cholesky(cov), jnp.zeros(()))

    monkeypatch.setattr(exact, "factorize", factorize)
    exact._condition.clear_cache()
    try:
        failures, counts = fuzz_gp.fuzz_batch("se", 0, 0)
    finally:
        exact._condition.clear_cache()
    assert counts["factor"] == len(failures) > 10
    assert all("factor" in failure for failure in failures)
