"""Asks with a model that is not finite propose random points, and one warning counts them."""

import warnings
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import bonas
from bonas import acquire, gp, search, surrogates
from bonas.problems import functions

BRANIN = functions.branin
SCALE = {"s": dist.LogNormal(0.0, 1.0)}


def nan_value(params, a, b):
    """NaN for every pair of points."""
    return params["s"] * jnp.sqrt(-1.0 - (a - b) @ (a - b))


def negative_value(params, a, b):
    """Minus a covariance, so that no jitter makes the matrix positive definite."""
    return -params["s"] * jnp.exp(-jnp.abs(a - b).sum())


BROKEN = {
    "NaN": gp.Kernel(SCALE, nan_value),
    "negative": gp.Kernel(SCALE, negative_value),
}


def optimize(kernel, **settings):
    model = surrogates.gp(kernel, **settings)
    return bonas.bayes(BRANIN.space, surrogate=model, initial=3)


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("infer", ["map", "slice"])
def test_a_broken_model_is_reported_and_random_points_are_proposed(name, infer):
    bad = optimize(BROKEN[name], infer=infer, samples=2)
    with pytest.warns(
        search.ModelWarning, match="its fit or predictions were not finite 5 times"
    ):
        history = bonas.run(bad, BRANIN.objective, jax.random.key(0), 8)
    assert history.info.fallback[3:].tolist() == [4] * 5
    assert history.info.random.all()
    assert not history.info.converged[3:].any()
    assert jnp.isfinite(history.x).all()
    assert len(np.unique(history.x, axis=0)) == 8


@pytest.mark.slow
@pytest.mark.parametrize("make", [bonas.turbo, bonas.rembo])
def test_other_searches_with_a_model_report_it_too(make):
    settings = {"dim": 2, "embeddings": 1} if make is bonas.rembo else {}
    model = surrogates.gp(BROKEN["NaN"])
    bad = make(BRANIN.space, surrogate=model, initial=3, **settings)
    with pytest.warns(search.ModelWarning, match="not finite"):
        history = bonas.run(bad, BRANIN.objective, jax.random.key(0), 6)
    assert (history.info.fallback == 4).any()
    assert jnp.isfinite(history.x).all()


@pytest.mark.slow
def test_many_runs_minimize_and_studies_end_with_one_warning(tmp_path):
    bad = optimize(BROKEN["NaN"])
    keys = jax.random.split(jax.random.key(0), 3)
    with pytest.warns(search.ModelWarning, match="in 9 asks") as found:
        bonas.run_many(bad, BRANIN.objective, keys, 6)
    assert len(found) == 1

    def objective(config):
        return config["x1"]

    with pytest.warns(search.ModelWarning, match="in 3 asks") as found:
        bonas.minimize(objective, BRANIN.space, trials=6, search=bad, progress=False)
    assert len(found) == 1
    with (
        bonas.Study(tmp_path / "runs.db", BRANIN.space, search=bad, seed=0) as study,
        pytest.warns(search.ModelWarning, match="in 3 asks") as found,
    ):
        study.optimize(objective, trials=6, progress=False)
    assert len(found) == 1
    assert found[0].filename == __file__


def test_a_healthy_model_causes_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        history = bonas.run(optimize(None), BRANIN.objective, jax.random.key(0), 12)
    problems = search.model_problems(history.info)
    assert problems.asks == 9
    assert problems.fallbacks == problems.flat == 0


@pytest.mark.slow
def test_the_first_fits_of_a_healthy_model_cause_no_warning():
    """Two asks of the model, of which no fit converged for some of the seeds."""
    default = bonas.bayes(BRANIN.space)
    counts = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(6):
            key = jax.random.key(seed)
            history = bonas.run_many(default, BRANIN.objective, key[None], 7)
            counts.append(search.model_problems(history.info))
            search.warn_about_model(
                jax.tree.map(lambda leaf: leaf[:, :6], history.info)
            )
            # a continuation by one step, which asks the model once
            search.warn_about_model(
                jax.tree.map(lambda leaf: leaf[:, 6:], history.info)
            )
    assert {each.asks for each in counts} == {2}
    assert 2 in {each.unconverged for each in counts}


def infos(**fields):
    """Ten reports of asks."""
    info = search.ask_info(jnp.zeros(2))
    info = jax.tree.map(
        lambda leaf: np.repeat(np.asarray(leaf)[None], 10, axis=0), info
    )
    return info._replace(**{name: np.array(value) for name, value in fields.items()})


def test_design_points_and_exhausted_spaces_are_no_problems_of_the_model():
    yes = [True] * 10
    info = infos(flat=yes, exhausted=yes, fallback=[1] * 10, random=yes)
    assert search.model_problems(info) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"flat": [True] * 4 + [False] * 6}, "the acquisition was flat 4 times"),
        ({"converged": [False] * 10}, "the fit did not converge 10 times"),
        ({"fallback": [2] + [0] * 9}, "its fit or predictions were not finite once"),
    ],
)
def test_frequent_problems_are_counted_in_the_warning(fields, text):
    words = f"the model of the search is unreliable: in 10 asks, {text}. Check "
    with pytest.warns(search.ModelWarning, match=words):
        search.warn_about_model(infos(**fields))


def test_rare_problems_cause_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.warn_about_model(infos(flat=[True] * 2 + [False] * 8))
        search.warn_about_model(infos(converged=[False] * 9 + [True]))
        few = jax.tree.map(lambda leaf: leaf[:9], infos(converged=[False] * 10))
        search.warn_about_model(few)


def test_under_jit_nothing_is_issued():
    bad = optimize(BROKEN["NaN"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = jax.jit(lambda key: bonas.run(bad, BRANIN.objective, key, 4).info)
        info = run(jax.random.key(0))
    assert search.model_problems(info).fallbacks == 1


@dataclass(frozen=True)
class Undefined(surrogates.GaussianProcess):
    """A model whose std, or every prediction away from the data, is NaN."""

    std_only: bool = True

    def predict(self, state, x):
        mean, std = super().predict(state, x)
        if self.std_only:
            return gp.Prediction(mean, jnp.nan * std)
        data = jnp.where(state.posterior.data.mask[0], state.posterior.data.x[0], -1.0)
        far = (jnp.abs(x[:, None, :] - data[None, :, :]).max(axis=2) > 0.0).all(axis=1)
        return gp.Prediction(jnp.where(far, jnp.nan, mean), std)


FEW = acquire.random_candidates(BRANIN.space, candidates=20)
FINITE = bonas.Space(a=bonas.Int(0, 40), b=bonas.Int(0, 40))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("std_only", "space", "settings"),
    [
        (True, BRANIN.space, {}),
        (False, BRANIN.space, {}),
        (True, FINITE, {}),
        (False, FINITE, {}),
        (True, FINITE, {"maximizer": acquire.gradient_ascent(FINITE)}),
        (True, BRANIN.space, {"maximizer": FEW}),
        (True, BRANIN.space, {"acquisition": acquire.batch_ei()}),
        (False, BRANIN.space, {"acquisition": acquire.joint_ei(1, draws=4, steps=2)}),
    ],
)
def test_scores_that_are_all_nan_are_reported_as_a_model_that_is_not_finite(
    std_only, space, settings
):
    model = Undefined(gp.matern52(), steps=2, std_only=std_only)
    bad = bonas.bayes(space, surrogate=model, initial=3, output="plain", **settings)
    with pytest.warns(
        search.ModelWarning, match="its fit or predictions were not finite 4 times"
    ):
        history = bonas.run(bad, lambda key, u: u.sum(), jax.random.key(0), 7)
    assert history.info.fallback[3:].tolist() == [4] * 4
    assert history.info.random.all()
    assert not history.info.flat.any()
    assert jnp.isneginf(history.info.acquisition).all()
    assert len(np.unique(history.x, axis=0)) == 7


def test_scores_of_minus_infinity_are_flat_and_not_a_failure_of_the_model():
    flat = bonas.bayes(
        BRANIN.space,
        surrogate=surrogates.linear(),
        acquisition=lambda mean, std, best: jnp.full_like(mean, -jnp.inf),
        initial=3,
        output="plain",
    )
    with pytest.warns(search.ModelWarning, match="the acquisition was flat 2 times"):
        info = bonas.run(flat, BRANIN.objective, jax.random.key(0), 5).info
    assert info.flat[3:].all()
    assert not info.fallback.any()
