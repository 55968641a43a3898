"""Named data sets: scikit-learn's against itself, files of our own making, and the real ones where
BONAS_DATA names them.
"""

import io
import os
import tarfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets

from bonas.problems import datasets
from bonas.problems.datasets import Source

# Rows and columns as the literature has them.
SHIPPED = {
    "diabetes": (442, 10),
    "digits": (1797, 64),
    "breast_cancer": (569, 30),
    "wine": (178, 13),
    "iris": (150, 4),
}
UCI = {
    "boston": (506, 13),
    "concrete": (1030, 8),
    "energy": (768, 8),
    "kin8nm": (8192, 8),
    "power": (9568, 4),
    "protein": (45730, 9),
    "wine_red": (1599, 11),
    "yacht": (308, 6),
}
DRAWS = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    """What the user has downloaded must not stand in for what is missing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "bonas" / "data"


@pytest.fixture
def data(tmp_path, monkeypatch):
    """An empty data folder."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("BONAS_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture(scope="module")
def real():
    """The folder of the real data."""
    if not os.environ.get("BONAS_DATA"):
        pytest.skip("BONAS_DATA names no folder with the real data")
    return Path(os.environ["BONAS_DATA"])


def save(path, **arrays):
    path.parent.mkdir(exist_ok=True)
    np.savez(path, **arrays)


# scikit-learn's


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_sets_are_scikit_learns(name):
    x, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    found = datasets.load(name)
    np.testing.assert_array_equal(found.x, x.astype(np.float32))
    np.testing.assert_array_equal(found.y, y)


@pytest.mark.parametrize(("name", "shape"), SHIPPED.items())
def test_shipped_sets_have_their_published_size(name, shape):
    found = datasets.load(name)
    assert (found.x.shape, len(found.names), found.x.dtype) == (
        shape,
        shape[1],
        np.float32,
    )


@pytest.mark.parametrize(
    ("name", "task", "classes"),
    [
        ("diabetes", "regression", ()),
        ("digits", "classification", tuple("0123456789")),
        ("breast_cancer", "classification", ("malignant", "benign")),
        ("wine", "classification", ("class_0", "class_1", "class_2")),
    ],
)
def test_shipped_sets_say_what_they_are_for(name, task, classes):
    found = datasets.load(name)
    assert (found.task, found.classes) == (task, classes)


def test_a_shipped_set_goes_through_a_split():
    """Digits have pixels that never vary; they must not become NaN."""
    assert np.isfinite(datasets.split(datasets.load("digits"), 0).test.x).all()


# Names


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(
        ValueError,
        match=r"unknown data set 'tulips'; choose one of diabetes, .*yacht, or with images\(\) one of mnist",  # noqa: E501
    ):
        datasets.load("tulips")


def test_images_are_not_loaded_as_a_table():
    with pytest.raises(ValueError, match=r"images\('mnist'\)"):
        datasets.load("mnist")


def test_unknown_images_list_the_known_ones():
    with pytest.raises(
        ValueError,
        match="unknown image set 'svhn'; choose one of mnist, mnist_small, cifar10, cifar10_small",
    ):
        datasets.images("svhn")


# Where files are


def put(folder, text):
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.txt").write_text(text)


def test_the_named_folder_comes_before_the_cache(data, empty_cache):
    put(data, "named")
    put(empty_cache, "cached")
    assert datasets.find("sub/a.txt").read_text() == "named"


def test_the_cache_is_looked_into_as_well(data, empty_cache):
    put(empty_cache, "cached")
    assert datasets.find("sub/a.txt").read_text() == "cached"


def test_the_cache_serves_without_a_named_folder(monkeypatch, empty_cache):
    monkeypatch.delenv("BONAS_DATA", raising=False)
    put(empty_cache, "cached")
    assert datasets.find("sub/a.txt").read_text() == "cached"


def test_a_named_folder_that_is_not_there_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("BONAS_DATA", str(tmp_path / "typo"))
    with pytest.raises(
        FileNotFoundError, match=r"BONAS_DATA is .*typo, which is not a folder"
    ):
        datasets.load("yacht")


@pytest.fixture
def public(tmp_path_factory):
    """A file to download, and its source."""
    path = tmp_path_factory.mktemp("public") / "a.txt"
    path.write_text("content")
    return path, Source(
        "sub/a.txt",
        "https://example.org",
        path.as_uri(),
        sha256(b"content").hexdigest(),
    )


def test_a_missing_file_is_downloaded_into_the_cache(data, empty_cache, public):
    assert datasets.locate(public[1], progress=False) == empty_cache / "sub" / "a.txt"


def test_a_download_leaves_the_named_folder_alone(data, public):
    datasets.locate(public[1], progress=False)
    assert list(data.iterdir()) == []


def test_a_downloaded_file_is_used_again(data, public):
    path, source = public
    datasets.locate(source, progress=False)
    path.unlink()
    assert datasets.locate(source, progress=False).read_text() == "content"


def test_a_file_in_the_folder_need_not_be_the_public_one(data, public):
    put(data, "mine")
    assert datasets.locate(public[1]).read_text() == "mine"


def test_no_download_where_none_is_wanted(data, public):
    with pytest.raises(
        FileNotFoundError,
        match=r"a\.txt is missing, and downloads are off: get the data from https://example\.org",
    ):
        datasets.locate(public[1], download=False)


def test_a_file_that_cannot_be_checked_is_not_downloaded(data):
    with pytest.raises(
        FileNotFoundError,
        match=rf"a\.txt is missing, and .* no checksum is published.*example\.org.*put the file into {data}",  # noqa: E501
    ):
        datasets.locate(Source("sub/a.txt", "https://example.org"))


def test_a_source_may_bring_its_own_check(data, empty_cache, public):
    def check(path):
        raise ValueError(f"it holds {path.read_text()}")

    with pytest.raises(
        ValueError, match=r"a\.txt is not the expected file: it holds content"
    ):
        datasets.locate(public[1]._replace(sha256="", check=check), progress=False)
    assert list((empty_cache / "sub").iterdir()) == []


@pytest.mark.parametrize("name", ["mnist", "cifar10", "mnist_small", "cifar10_small"])
def test_missing_images_are_named(data, name):
    with pytest.raises(
        FileNotFoundError,
        match=f"{name.removesuffix('_small')}.* is missing, and downloads are off",
    ):
        datasets.images(name, download=False)


# Files of our own making


def test_a_uci_file_of_another_size_is_refused(data):
    save(
        data / "uci" / "yacht.npz",
        X=DRAWS.normal(size=(300, 6)),
        y=DRAWS.normal(size=300),
    )
    with pytest.raises(
        ValueError,
        match=r"yacht\.npz does not contain the data set yacht: .*shape \(308, 6\); got \(300, 6\)",
    ):
        datasets.load("yacht")


def test_square_images_become_rows(data):
    """As in the public file of MNIST."""
    pixels = DRAWS.integers(0, 256, (4, 28, 28), dtype=np.uint8)
    save(
        data / "mnist" / "mnist.npz",
        x_train=pixels,
        y_train=np.arange(4),
        x_test=pixels[:2],
        y_test=np.arange(2),
    )
    train, _ = datasets.images("mnist")
    np.testing.assert_allclose(train.x, pixels.reshape(4, 784) / 255.0, rtol=1e-6)


@pytest.mark.parametrize(
    "arrays",
    [
        {"x_train": np.zeros((2, 4)), "y_train": np.zeros(2)},
        {"x_train": np.zeros((2, 4), np.uint8), "y_train": np.zeros(3)},
    ],
    ids=["no bytes", "lengths"],
)
def test_images_of_another_form_are_refused(data, arrays):
    save(
        data / "mnist" / "mnist.npz",
        **arrays,
        x_test=np.zeros((1, 4), np.uint8),
        y_test=np.zeros(1),
    )
    with pytest.raises(ValueError, match=r"mnist\.npz: expected uint8 images"):
        datasets.images("mnist")


def pack(path, batches):
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in batches.items():
            entry = tarfile.TarInfo(f"cifar-10-batches-bin/{name}.bin")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


@pytest.fixture
def cifar(data):
    """Six batches of ten images, one a class; image i of batch b is filled with 10 b + i."""
    for_batch = {f"data_batch_{b}": b for b in range(1, 6)} | {"test_batch": 6}
    batches = {
        name: b"".join(bytes([i]) + bytes([10 * b + i]) * 3072 for i in range(10))
        for name, b in for_batch.items()
    }
    pack(data / "cifar10" / "cifar-10-binary.tar.gz", batches)


def test_cifar_batches_come_in_order(cifar):
    train, _ = datasets.images("cifar10")
    np.testing.assert_allclose(train.x[:, 0] * 255.0, np.arange(10, 60), rtol=1e-6)


def test_cifar_images_have_all_pixels(cifar):
    train, test = datasets.images("cifar10")
    assert (train.x.shape, test.x.shape) == ((50, 3072), (10, 3072))


def test_cifar_labels_come_before_the_image(cifar):
    _, test = datasets.images("cifar10")
    assert [test.classes[label] for label in test.y[:2]] == ["airplane", "automobile"]


@pytest.mark.parametrize(
    "batches",
    [{}, {f"data_batch_{b}": b"1234" for b in range(1, 6)}],
    ids=["files", "records"],
)
def test_another_archive_is_refused(data, batches):
    pack(data / "cifar10" / "cifar-10-binary.tar.gz", batches)
    with pytest.raises(ValueError, match="not the binary archive of CIFAR-10"):
        datasets.images("cifar10")


def test_a_broken_archive_is_refused(data):
    (data / "cifar10").mkdir()
    (data / "cifar10" / "cifar-10-binary.tar.gz").write_bytes(b"cut")
    with pytest.raises(ValueError, match="not the binary archive of CIFAR-10"):
        datasets.images("cifar10")


# The real ones


@pytest.fixture(scope="module")
def loaded(real):
    """A set, read once."""
    kept = {}

    def load(name):
        if name not in kept:
            kept[name] = datasets.load(name, download=False)
        return kept[name]

    return load


@pytest.mark.parametrize(("name", "shape"), UCI.items())
def test_uci_sets_have_their_published_size(loaded, name, shape):
    found = loaded(name)
    assert (found.x.shape, found.task, len(found.names)) == (
        shape,
        "regression",
        shape[1],
    )


# Targets of the first rows at the public homes.
@pytest.mark.parametrize(
    ("name", "y"),
    [
        ("boston", 24.0),
        ("concrete", 79.99),
        ("wine_red", 5.0),
        ("yacht", 0.11),
        ("energy", 15.55),
    ],
)
def test_the_first_row_is_the_public_one(loaded, name, y):
    np.testing.assert_allclose(loaded(name).y[0], y, rtol=1e-6)


@pytest.mark.parametrize("name", UCI)
def test_standard_splits_are_the_published_ones(real, name):
    with np.load(real / "uci" / f"{name}.npz", allow_pickle=False) as file:
        published = file["index_train"], file["index_test"]
    n = UCI[name][0]
    for number, (train, test) in enumerate(zip(*published, strict=True)):
        np.testing.assert_array_equal(
            np.concatenate(datasets.standard_indices(n, number)),
            np.concatenate([train, test]),
        )


@pytest.mark.slow
def test_mnist_has_its_published_class_sizes(real):
    train, test = datasets.images("mnist", download=False)
    assert np.bincount(train.y).tolist() == [
        5923,
        6742,
        5958,
        6131,
        5842,
        5421,
        5918,
        6265,
        5851,
        5949,
    ]
    assert np.bincount(test.y).tolist() == [
        980,
        1135,
        1032,
        1010,
        982,
        892,
        958,
        1028,
        974,
        1009,
    ]


@pytest.mark.parametrize(
    ("name", "pixels"), [("mnist_small", 784), ("cifar10_small", 3072)]
)
def test_small_sets_hold_as_many_of_each_class(real, name, pixels):
    train, test = datasets.images(name, download=False)
    assert (np.bincount(train.y).tolist(), np.bincount(test.y).tolist()) == (
        [500] * 10,
        [100] * 10,
    )
    assert train.x.shape == (5000, pixels)


def test_small_mnist_is_the_same_from_the_whole_set(real, data):
    expected = np.load(real / "mnist" / "mnist_subset_5k_1k.npz", allow_pickle=False)
    (data / "mnist").mkdir()
    (data / "mnist" / "mnist.npz").symlink_to(real / "mnist" / "mnist.npz")
    train, _ = datasets.images("mnist_small", download=False)
    np.testing.assert_array_equal(np.round(train.x * 255.0), expected["x_train"])


def test_pixels_lie_between_0_and_1(real):
    train, _ = datasets.images("cifar10_small", download=False)
    assert (train.x.min(), train.x.max()) == (0.0, 1.0)
