import os

import jax
import numpy as np
import pytest

from experiments.raiders import authors_table as raiders
from experiments.raiders.authors_table import BLOCKS, LAYERS, NAMES


@pytest.fixture(scope="module")
def real():
    if not os.environ.get("BONAS_DATA"):
        pytest.skip("BONAS_DATA names no folder with the real data")
    return raiders.load()


@pytest.fixture(scope="module")
def made():
    return raiders.synthetic(jax.random.key(0), 60)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("BONAS_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_columns_are_named_by_what_they_set():
    assert (len(NAMES), NAMES[:5], NAMES[-1]) == (
        24,
        ("depth", "log_rate_0", "norm_0", "dropout_0", "units_1"),
        "dropout_5",
    )
    assert all(
        int(name[-1]) == layer
        for name, layer in zip(NAMES[1:], LAYERS[1:], strict=True)
    )


def test_blocks_are_the_layers():
    assert [len(block) for block in BLOCKS] == [4, 4, 4, 4, 4, 4]
    assert BLOCKS[2] == (5, 10, 15, 20)


def test_depths_have_their_published_counts(real):
    """Depths come from the mask, not from the first column."""
    assert np.bincount(real.depth).tolist() == [95, 68, 280, 211, 156, 141]


def test_errors_have_their_published_range(real):
    np.testing.assert_allclose([real.y.min(), real.y.max()], [0.0114, 0.954], atol=5e-4)


def test_171_networks_have_another_depth_than_their_first_column_says(real):
    """Bins of the authors' preprocess.m, ceil(6x)."""
    binned = np.ceil(6.0 * np.maximum(real.recorded[:, 0], np.finfo(float).eps)) - 1
    assert (binned != real.depth).sum() == 171


def test_the_objective_is_deterministic(real):
    """All ten searches start with the same two points and errors, so these rows have no noise."""
    for value in (0.0, 0.5):
        same = (np.abs(real.recorded - value) < 1e-9).all(axis=1)
        assert (same.sum(), len(np.unique(real.y[same]))) == (10, 1)


def test_relevance_from_the_depth_is_the_mask(real):
    np.testing.assert_array_equal(jax.vmap(raiders.active)(real.x), real.active)


def test_relevance_of_a_made_table_is_its_mask(made):
    np.testing.assert_array_equal(jax.vmap(raiders.active)(made.x), made.active)


@pytest.mark.parametrize("how", ["random", "constant", "recorded", "zero"])
def test_filling_leaves_active_columns_alone(made, how):
    np.testing.assert_array_equal(
        raiders.fill(made, how)[made.active], made.x[made.active]
    )


def test_fillings_are_what_they_are_called(made):
    off = ~made.active
    assert (raiders.fill(made, "constant")[off] == -1.0).all()
    np.testing.assert_array_equal(
        raiders.fill(made, "recorded")[off], made.recorded[off]
    )
    first, again, other = (
        raiders.fill(made, "random", seed)[off] for seed in (0, 0, 1)
    )
    assert (first == again).all()
    assert (first != other).all()


def test_an_unknown_filling_is_refused(made):
    with pytest.raises(
        ValueError, match="one of random, constant, recorded, zero; got 'mean'"
    ):
        raiders.fill(made, "mean")


def test_a_mask_that_contradicts_the_depth_is_refused(made):
    mask = made.active.copy()
    mask[7] = np.arange(24) % 2 == 0
    with pytest.raises(
        ValueError, match="row 7: expected the mask of a depth from 0 to 5"
    ):
        raiders.table(made.recorded, made.y, mask)


@pytest.mark.parametrize(
    ("x", "y"),
    [(1.5, 0.1), (0.5, 0.0), (0.5, np.nan)],
    ids=["outside", "no error", "NaN"],
)
def test_a_bad_row_is_refused(made, x, y):
    recorded, values = made.recorded.copy(), made.y.copy()
    recorded[3, 2], values[3] = x, y
    with pytest.raises(
        ValueError, match="row 3: expected a point of the unit cube and an error rate"
    ):
        raiders.table(recorded, values, made.active)


@pytest.mark.parametrize(
    ("mean", "std"), [(-3.0, 0.5), (-0.5, 1.0), (-4.0, 3.0), (0.7, 0.2), (-2.0, 0.0)]
)
def test_expected_errors_by_quadrature(mean, std):
    z = np.linspace(-12.0, 12.0, 200_001)
    integral = np.trapezoid(
        np.exp(-0.5 * z**2) * np.minimum(np.exp(mean + std * z), 1.0), z
    ) / np.sqrt(2.0 * np.pi)
    np.testing.assert_allclose(raiders.expected_error(mean, std), integral, rtol=1e-6)


def test_a_missing_file_names_its_home_and_form(folder):
    with pytest.raises(
        FileNotFoundError,
        match=r"duvenaud/hierarchical-kernels .*X \(951, 24\), y .*indarcnet_5",
    ):
        raiders.load(download=False)


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Return publish(run, x, y, mask), which writes a file to the only download location."""
    monkeypatch.delenv("BONAS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "public").mkdir()
    monkeypatch.setattr(raiders, "FILES", (tmp_path / "public").as_uri())
    return lambda run, x, y, mask: np.savez(
        tmp_path / "public" / f"{run}.npz", X=x, y=y[:, None], D=2.0 * mask
    )


def test_ten_files_are_downloaded_checked_and_put_together(
    published, made, monkeypatch
):
    """As in the authors' repository: errors in a column, masks of 0 and 2."""
    parts = np.array_split(np.arange(60), 10)
    whole = made.recorded, made.y, made.active
    monkeypatch.setattr(raiders, "SHAPE", (60, 24))
    for run, rows in zip(raiders.RUNS, parts, strict=True):
        part = [array[rows] for array in whole]
        monkeypatch.setitem(raiders.RUNS, run, raiders.digest(*part))
        published(run, *part)
    for one, other in zip(raiders.load(progress=False), made, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_download_of_other_contents_is_refused(published, made, tmp_path):
    published("arcnet_1", made.recorded, made.y, made.active)
    with pytest.raises(
        ValueError, match="expected the contents of the search arcnet_1"
    ):
        raiders.load(progress=False)
    assert not list((tmp_path / "cache").rglob("*.npz"))


def test_the_digests_are_those_of_the_real_data(real):
    path = os.path.join(os.environ["BONAS_DATA"], "raiders_table1_data.npz")
    arrays = np.load(path, allow_pickle=False)
    for run, known in raiders.RUNS.items():
        rows = arrays["run"] == run
        assert (
            raiders.digest(arrays["X"][rows], arrays["y"][rows], arrays["D"][rows] > 0)
            == known
        )


def test_twins_are_found(made):
    twice = raiders.Table(*(np.concatenate([field, field[:2]]) for field in made))
    assert np.flatnonzero(raiders.repeated(twice)).tolist() == [0, 1, 60, 61]
    assert not raiders.repeated(made).any()


def test_a_file_of_another_shape_is_refused(folder, made):
    np.savez(
        folder / "raiders_table1_data.npz", X=made.recorded, y=made.y, D=made.active
    )
    with pytest.raises(
        ValueError, match=r"expected X and D \(951, 24\) and y \(951,\); got \(60, 24\)"
    ):
        raiders.load()
