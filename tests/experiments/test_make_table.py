"""Making the table of networks: the author's settings, and rows kept apart by settings."""

from dataclasses import asdict, replace
from functools import partial

import jax
import numpy as np
import pytest

from bonas import nets
from bonas.problems.bnn_table import Network
from experiments import common
from experiments.hutchinson import make_table as script

# rows that train, and updates a pass
SIZES = {
    "yacht": (261, 1),
    "boston": (430, 1),
    "energy": (652, 1),
    "concrete": (875, 1),
    "wine_red": (1359, 2),
    "kin8nm": (6963, 7),
    "power": (8132, 9),
    "protein": (38870, 4),
}
PUBLISHED = dict(script.PUBLISHED.sets)


@pytest.mark.parametrize("name", SIZES)
def test_published_steps_are_passes_over_the_rows(name):
    rows, turns = SIZES[name]
    found = script.settings_of(script.PUBLISHED, PUBLISHED[name], rows)
    assert found.checkpoints[-1] == turns * (30_000 if name == "protein" else 50_000)
    assert {1000 * turns, 4000 * turns} <= set(found.checkpoints)  # where searches look
    assert found.window == 50 * turns
    assert found.batch == min(rows, 10_000 if name == "protein" else 1000)
    assert (found.prior, found.samples, found.draws, found.learning_rate) == (
        "published",
        10,
        100,
        0.001,
    )
    assert found.validated is None


def test_published_networks_are_those_of_the_author():
    """84 on most sets, 45 of kin8nm, 30 of protein; three runs of three sets."""
    jobs = list(script.plan(script.PUBLISHED, None))
    counts = {
        name: sum(job.name == name and job.seed == 0 for job in jobs) for name in SIZES
    }
    assert counts == dict.fromkeys(SIZES, 84) | {"kin8nm": 45, "protein": 30}
    assert {job.name for job in jobs if job.seed == 2} == {
        "boston",
        "concrete",
        "energy",
    }


@pytest.mark.parametrize("name", ["boston", "protein"])
def test_a_published_network_can_be_traced_at_its_size(name):
    rows = SIZES[name][0]
    settings = script.settings_of(script.PUBLISHED, PUBLISHED[name], rows)
    course = nets.TrainingPlan(
        settings.checkpoints, settings.batch, settings.draws, settings.window
    )
    shape = nets.Shape(9, 1, depth=3, width=600, activations=("relu",))
    x = np.zeros((rows, 9), np.float32)
    train = partial(
        nets.train_vi,
        shape=shape,
        vi=nets.VI(prior=settings.prior, samples=settings.samples, antithetic=False),
        plan=course,
        architecture=nets.architecture(shape, [600] * 3),
        hyper=nets.VIHyperparameters(settings.learning_rate),
        data=nets.examples(x, x[:, 0], x[:7], x[:7, 0]),
    )
    _, found = jax.eval_shape(train, jax.random.key(0))
    assert found.valid.rmse.shape == (len(settings.checkpoints),)


@pytest.mark.slow
def test_a_published_network_trains():
    grid = replace(PUBLISHED["wine_red"], batch=40, window=1, epochs=(1, 2))
    settings = script.settings_of(script.PUBLISHED, grid, 68, synthetic=True)
    assert settings.checkpoints == (2, 4)  # 68 of the 80 synthetic rows train
    row = script.train(settings, script.Job("wine_red", Network(2, 3), 0))
    assert np.isfinite(row["log_likelihood"]).all()
    assert len(row["seconds"]) == 2


def test_rows_of_other_settings_are_not_taken(tmp_path):
    """Rows of a small run, and synthetic rows under the same settings, are ignored."""
    file, grid = tmp_path / "networks.jsonl", script.Grid((2,), 1)
    full, small = (
        script.settings_of(config, grid, 261)
        for config in (script.Config(), script.SMOKE)
    )
    row = {"set": "yacht", "network": [1, 2, False], "seed": 0}
    for settings in (full, small, replace(small, synthetic=True)):
        common.append_line(
            file, {**row, "log_likelihood": [settings.draws]}, asdict(settings)
        )
    (found,) = script.read_saved(file, {"yacht": full})
    assert found["log_likelihood"] == [full.draws]
    assert len(script.read_saved(file, {"yacht": small})) == 1
    assert script.read_saved(file, {"boston": full}) == []
