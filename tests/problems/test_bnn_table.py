"""The table of trained Bayesian networks: what is packed comes out again, and the shipped one is
what it says.
"""

import json
import re
from pathlib import Path

import jax
import numpy as np
import pytest

from bonas.problems import bnn_table, tables
from bonas.problems.bnn_table import METRICS, Network
from bonas.problems.uci import UCI

SETTINGS = {"settings": {"yacht": {"checkpoints": [5, 10]}}}


def rows():
    """Two networks and one that shrinks, two seeds each; the last run diverged at its second
    checkpoint.
    """
    found = []
    for i, network in enumerate((Network(1, 2), Network(2, 8), Network(2, 8, True))):
        for seed in range(2):
            gone = (i, seed) == (1, 1)
            values = {
                metric: [10.0 * i + seed, None if gone else 10.0 * i + seed + 0.5]
                for metric in METRICS
            }
            active = [[i, seed], [-1, -1] if gone else [i, seed]]
            found.append(
                {
                    "set": "yacht",
                    "network": list(network),
                    "seed": seed,
                    **values,
                    "active": active,
                }
            )
    return found


@pytest.fixture
def path(tmp_path):
    made = tmp_path / bnn_table.FILE
    bnn_table.pack(made, rows(), SETTINGS)
    return made


def test_what_is_packed_comes_out(path):
    assert bnn_table.names(path) == ("yacht",)
    found = bnn_table.record("yacht", path)
    assert found.networks == (Network(1, 2), Network(2, 8), Network(2, 8, True))
    np.testing.assert_array_equal(found.steps, [5, 10])
    np.testing.assert_allclose(
        found.metrics["rmse"][:, 0], [[0.0, 0.5], [10.0, 10.5], [20.0, 20.5]]
    )
    assert np.isnan(found.metrics["rmse"][1, 1, 1])
    np.testing.assert_array_equal(found.active[1, 1], [[1, 1], [-1, -1]])


def test_rows_come_out_as_they_were_packed(path, tmp_path):
    assert bnn_table.rows(path) == rows()
    fewer = tmp_path / "fewer.npz"
    bnn_table.pack(fewer, rows()[:-1], SETTINGS)  # the last network has one seed
    assert bnn_table.rows(fewer) == rows()[:-1]


@pytest.mark.slow
def test_likelihoods_are_searched_by_their_negatives(path):
    table = bnn_table.load("yacht", path=path)
    assert table.values.shape == (2, 2, 2)
    np.testing.assert_allclose(table.values[:, 0], [[0.0, -0.5], [-10.0, -10.5]])
    configs = [table.space.decode(row) for row in table.x]
    assert [(config["depth"], config["width"]) for config in configs] == [
        (1, 2),
        (2, 8),
    ]
    np.testing.assert_allclose(
        bnn_table.load("yacht", "rmse", path=path).values[:, 0],
        [[0.0, 0.5], [10.0, 10.5]],
    )
    assert np.isfinite(tables.objective(table)(jax.random.key(0), table.x[0], 1))


def test_shrinking_networks_have_a_column_of_their_own(path):
    table = bnn_table.load("yacht", shrinking=True, path=path)
    assert [table.space.decode(row)["pattern"] for row in table.x] == [
        "constant",
        "constant",
        "shrinking",
    ]
    assert Network(3, 12, True).widths() == [12, 6, 3]
    assert Network(3, 2, True).widths() == [2, 1, 1]


def test_what_is_refused(path, tmp_path):
    with pytest.raises(ValueError, match="yacht"):
        bnn_table.load("naval", path=path)
    with pytest.raises(ValueError, match="metric must be one of log_likelihood"):
        bnn_table.load("yacht", "seconds", path=path)
    with pytest.raises(FileNotFoundError, match="make_table"):
        bnn_table.load("yacht", path=tmp_path / "none.npz")


RECORD = (
    Path(__file__).parents[2] / "experiments" / "results" / "hutchinson_make_table.json"
)


def test_the_shipped_table_is_the_one_that_was_recorded():
    known = json.loads(RECORD.read_text(encoding="utf-8"))
    assert bnn_table.digest(bnn_table.TABLE_FILE) == bnn_table.SHA256 == known["sha256"]
    assert bnn_table.settings()["settings"] == known["settings"]
    assert len(bnn_table.rows()) == known["networks"]


def test_a_damaged_table_is_refused(tmp_path, monkeypatch):
    damaged, whole = (
        tmp_path / bnn_table.FILE,
        bytearray(bnn_table.TABLE_FILE.read_bytes()),
    )
    whole[len(whole) // 2] ^= 1
    damaged.write_bytes(whole)
    monkeypatch.setattr(bnn_table, "TABLE_FILE", damaged)
    with pytest.raises(
        ValueError, match=r"not the table of networks.*SHA-256.*Reinstall bonas"
    ):
        bnn_table.load("yacht")


def test_the_datasheet_has_the_sizes_of_all_sets():
    rows = re.findall(
        r"^    (\w+) +(\d+) +(\d+)(?: of (\d+))? +(\d+)  ", bnn_table.__doc__, re.M
    )
    assert [name for name, *_ in rows] == list(bnn_table.names())
    for name, train, some, every, columns in rows:
        assert (int(train) + int(every or some), int(columns)) == UCI[name].shape
        assert int(train) == int(0.85 * UCI[name].rows)


@pytest.mark.parametrize(
    "name",
    ["yacht", "boston", "energy", "concrete", "wine_red", "kin8nm", "power", "protein"],
)
def test_every_shipped_set_can_be_searched(name):
    table = bnn_table.load(name)
    assert table.steps.tolist() == bnn_table.settings()["settings"][name]["checkpoints"]
    assert len(table.x) >= 3 * 8
    assert np.isfinite(np.asarray(table.values)).any(axis=(1, 2)).all()
    # training helps: in the middle of the networks the last checkpoint is better than the first
    assert np.nanmedian(table.values[:, :, -1]) < np.nanmedian(table.values[:, :, 0])
