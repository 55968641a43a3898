"""Data sets by name: those that scikit-learn brings, the UCI eight of the literature on Bayesian networks, MNIST and CIFAR-10.

`load("wine_red")` gives Examples, `images("mnist")` a training and a test part. Files are looked for in the folder that the
environment variable BONAS_DATA names, then in the user's cache, to which they are downloaded where a checksum is known: of
the public file, or of the numbers in it.
"""

import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bonas.configure import user_cache
from bonas.problems import uci
from bonas.problems.download import Check, fetch, has_sha256
from bonas.problems.examples import Examples as Examples
from bonas.problems.examples import Scaling as Scaling
from bonas.problems.examples import Split as Split
from bonas.problems.examples import fit_scaling as fit_scaling
from bonas.problems.examples import scale as scale
from bonas.problems.examples import split as split
from bonas.problems.examples import standard_indices as standard_indices
from bonas.problems.examples import standard_split as standard_split
from bonas.problems.examples import unscale as unscale
from bonas.problems.files import load_npz, read_npz
from bonas.problems.files import read as read
from bonas.problems.files import read_csv as read_csv
from bonas.problems.files import read_inputs as read_inputs
from bonas.problems.uci import UCI as UCI

FOLDER_VARIABLE = "BONAS_DATA"
SHIPPED = ("diabetes", "digits", "breast_cancer", "wine", "iris")  # by scikit-learn


class Source(NamedTuple):
    """A file in the data folder, and where it can be had."""

    file: str
    home: str  # for people
    url: str = ""  # of the very file; empty where there is nothing to check it by
    sha256: str = ""  # of its bytes, as published
    check: Check | None = None  # where that is not published


# sha256 as Keras publishes it (keras/src/datasets/mnist.py).
_MNIST = Source(
    "mnist/mnist.npz",
    "http://yann.lecun.com/exdb/mnist",
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
    "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
)
# sha256 as TensorFlow Datasets publishes it (url_checksums/cifar10.txt). The binary form, which holds no pickled object.
_CIFAR10 = Source(
    "cifar10/cifar-10-binary.tar.gz",
    "https://www.cs.toronto.edu/~kriz/cifar.html",
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)
_DIGITS = tuple("0123456789")
_OBJECTS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_IMAGE_BYTES = 3 * 32 * 32  # of CIFAR-10
_SMALL = {"train": 500, "test": 100}  # images of each class in a small set


def load(name: str, *, download: bool = True, progress: bool = True) -> Examples:
    """The data set of that name, unscaled: one that scikit-learn brings, or one of the UCI eight."""
    if name in SHIPPED:
        return _shipped(name)
    if name in UCI:
        return _uci(name, download, progress)
    if name in IMAGES:
        raise ValueError(f"{name} has a training and a test part of its own: images({name!r})")
    raise ValueError(f"no data set {name!r}; there are {', '.join([*SHIPPED, *UCI])}, and as images {', '.join(IMAGES)}")


def images(name: str, *, download: bool = True, progress: bool = True) -> tuple[Examples, Examples]:
    """Training and test part of a set of images: one row an image, pixels from 0 to 1, colours one after the other.

    "mnist" (60,000 and 10,000 of 28 × 28), "cifar10" (50,000 and 10,000 of 3 × 32 × 32; 740 MB in memory), and of both the
    first 500 and 100 of each class: "mnist_small", "cifar10_small".
    """
    if name not in IMAGES:
        raise ValueError(f"no images {name!r}; there are {', '.join(IMAGES)}")
    arrays, classes = IMAGES[name](download, progress)
    return tuple(_part(arrays, part, classes) for part in ("train", "test"))  # type: ignore[return-value]


def cache() -> Path:
    """Where downloads go: bonas/data in the user's cache."""
    return user_cache() / "data"


def find(file: str) -> Path | None:
    """The path of a data file, in the folder that BONAS_DATA names or else in the cache; None where it is in neither."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named and not Path(named).is_dir():
        raise FileNotFoundError(f"{FOLDER_VARIABLE} names {named}, which is not a folder")
    places = [Path(named) / file, cache() / file] if named else [cache() / file]
    return next((path for path in places if path.is_file()), None)


def locate(source: Source, *, download: bool = True, progress: bool = True) -> Path:
    """The path of the file, after a download into the cache if it is nowhere: the folder that BONAS_DATA names is only read.

    Its contents are the reader's to check: a file that the user put there need not be the public one byte for byte.
    """
    if path := find(source.file):
        return path
    if download and source.url:
        return fetch(source.url, cache() / source.file, source.check or has_sha256(source.sha256), progress=progress)
    why = "downloads are off" if source.url else "no published checksum of it is known, so it is not downloaded"
    place = os.environ.get(FOLDER_VARIABLE) or f"a folder that {FOLDER_VARIABLE} names"
    raise FileNotFoundError(
        f"{source.file} is missing, and {why}: get the data from {source.home} and put the file into {place}"
    )


def _shipped(name: str) -> Examples:
    from sklearn import datasets  # slow to import

    bunch = getattr(datasets, f"load_{name}")()
    x, names = bunch.data.astype(np.float32), tuple(str(column) for column in bunch.feature_names)
    if name == "diabetes":
        return Examples(x, bunch.target.astype(np.float32), "regression", names)
    return Examples(
        x, bunch.target.astype(np.int32), "classification", names, tuple(str(label) for label in bunch.target_names)
    )


def _uci(name: str, download: bool, progress: bool) -> Examples:
    """The set from an npz file with arrays X and y, or else from the public text, which is downloaded if need be."""
    if path := find(f"uci/{name}.npz"):
        found = read_npz(path)
    else:
        url = uci.url(name)
        home = f"{url} (uci/{name}.npz with arrays X, y of {UCI[name].home} would do as well)"
        source = Source(f"uci/{name}.txt", home, url, check=uci.check(name))
        path = locate(source, download=download, progress=progress)
        found = uci.read(path, name)
    if found.x.shape != UCI[name].shape:
        raise ValueError(f"{path} is not the set {name}: it has {found.x.shape} rows and columns, not {UCI[name].shape}")
    return found


def _part(arrays: dict[str, np.ndarray], part: str, classes: tuple[str, ...]) -> Examples:
    x, y = arrays[f"x_{part}"], arrays[f"y_{part}"]
    x = x.reshape(len(x), -1).astype(np.float32)
    x /= 255.0  # in place: the whole of CIFAR-10 is large
    names = tuple(f"pixel{i}" for i in range(x.shape[1]))
    return Examples(x, y.astype(np.int32), "classification", names, classes)


def _image_file(path: Path) -> dict[str, np.ndarray]:
    arrays = load_npz(path, ("x_train", "y_train", "x_test", "y_test"))
    for part in ("train", "test"):
        x, y = arrays[f"x_{part}"], arrays[f"y_{part}"]
        if x.dtype != np.uint8 or y.shape != x.shape[:1] or y.max(initial=0) > 9:
            raise ValueError(
                f"{path}: expected uint8 images and as many labels from 0 to 9; got {x.dtype} {x.shape} and {y.shape}"
            )
    return arrays


def _mnist(download: bool, progress: bool):
    return _image_file(locate(_MNIST, download=download, progress=progress)), _DIGITS


def _cifar10(download: bool, progress: bool):
    path = locate(_CIFAR10, download=download, progress=progress)
    batches = {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}
    arrays: dict[str, np.ndarray] = {}
    try:
        with tarfile.open(path) as archive:
            for part, files in batches.items():
                records = np.concatenate([_records(archive, file) for file in files])
                arrays |= {f"x_{part}": records[:, 1:], f"y_{part}": records[:, 0]}
    except (tarfile.TarError, EOFError, KeyError, ValueError) as problem:
        raise ValueError(f"{path} is not the binary archive of CIFAR-10: {problem}") from problem
    return arrays, _OBJECTS


def _records(archive: tarfile.TarFile, file: str) -> np.ndarray:
    """Records of one byte for the label and 3072 for the image."""
    content = archive.extractfile(f"cifar-10-batches-bin/{file}.bin")
    return np.frombuffer(content.read() if content else b"", np.uint8).reshape(-1, 1 + _IMAGE_BYTES)


def _small(file: str, whole: Callable, classes: tuple[str, ...]) -> Callable:
    """The small set from its own file, or from the whole one where there is none."""

    def read_small(download: bool, progress: bool):
        if path := find(file):
            return _image_file(path), classes
        arrays, _ = whole(download, progress)
        chosen = {part: _first_of_each(arrays[f"y_{part}"], number) for part, number in _SMALL.items()}
        return {name: array[chosen[name.partition("_")[2]]] for name, array in arrays.items()}, classes

    return read_small


def _first_of_each(y: np.ndarray, number: int) -> np.ndarray:
    """The rows of the first `number` of each class, in the order of the whole."""
    return np.sort(np.concatenate([np.flatnonzero(y == label)[:number] for label in np.unique(y)]))


IMAGES: dict[str, Callable] = {
    "mnist": _mnist,
    "mnist_small": _small("mnist/mnist_subset_5k_1k.npz", _mnist, _DIGITS),
    "cifar10": _cifar10,
    "cifar10_small": _small("cifar10/cifar10_subset_5k_1k.npz", _cifar10, _OBJECTS),
}
