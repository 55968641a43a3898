"""Healthy searches pass the checks of JAX for NaN and for leaked tracers."""

import jax
import numpy as np
import pytest

import bonas
from bonas import acquire, gp, surrogates
from bonas.search import random

SPACE = bonas.Space(x=bonas.Float(0.0, 1.0))
MODEL = bonas.bayes(
    SPACE,
    surrogate=surrogates.gp(gp.se(), steps=3),
    maximizer=acquire.random_candidates(SPACE, candidates=20),
    initial=2,
    output="plain",
)


@pytest.mark.parametrize(
    ("check", "search"),
    [(lambda: jax.debug_nans(True), MODEL), (jax.checking_leaks, random(SPACE))],
    ids=["nans", "leaks"],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_searches_pass_the_checks_of_jax(check, search, tmp_path):
    with check():
        history = bonas.run(
            search, lambda key, u: (u[0] - 0.3) ** 2, jax.random.key(0), 4
        )
        jax.block_until_ready(history)
        result = bonas.minimize(
            lambda config: config["x"], SPACE, search=search, trials=4, progress=False
        )
        with bonas.Study(tmp_path / "runs.db", SPACE, search=search) as study:
            study.optimize(lambda config: config["x"], trials=4, progress=False)
            assert study.best.value >= 0.0
    assert np.isfinite(result.value)
    # points that no model proposed have the lowest score
    np.testing.assert_array_equal(
        np.isneginf(history.info.acquisition), history.info.random
    )


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 2])
def test_the_default_search_leaks_no_tracers(batch):
    space = bonas.Space(
        x=bonas.Float(0.0, 1.0),
        depth=bonas.Int(1, 2),
        kind=bonas.Choice("a", "b"),
        width=bonas.Int(4, 64, log=True, when={"depth": (">=", 2)}),
    )
    search = bonas.bayes(space, batch=batch)

    def run(key):
        return bonas.run(search, lambda key, u: u.sum(), key, 8)

    with jax.checking_leaks():
        history = jax.eval_shape(run, jax.random.key(0))
    assert history.x.shape == (8, space.dim)
