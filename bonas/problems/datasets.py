"""Load data sets by name: scikit-learn's, eight UCI sets, MNIST and CIFAR-10.

`load("wine_red")` returns Examples; `images("mnist")` returns a training and a test part. Files are
looked up in the folder given by the environment variable BONAS_DATA, then in the user's cache.
Missing files are downloaded into the cache if the checksum of the public file or of its numbers is
known.
"""

import os
import tarfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bonas.configuration import user_cache
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
from bonas.problems.npz_files import load_npz
from bonas.problems.npz_files import read_npz as read_npz
from bonas.problems.uci import UCI as UCI
from bonas.problems.uci import check as check_uci
from bonas.problems.uci import read as read_uci
from bonas.problems.uci import url as uci_url

FOLDER_VARIABLE = "BONAS_DATA"
# Data sets that are part of scikit-learn.
SKLEARN_SETS = ("diabetes", "digits", "breast_cancer", "wine", "iris")
IMAGES = ("mnist", "mnist_small", "cifar10", "cifar10_small")


class Source(NamedTuple):
    """A file in the data folder, and where to get it."""

    file: str
    home: str  # web page of the data set
    url: str = ""  # address of the file; empty if there is nothing to check it by
    sha256: str = ""  # published digest of the file
    check: Check | None = None  # used if no digest is published


# Digest from Keras (keras/src/datasets/mnist.py).
_MNIST = Source(
    "mnist/mnist.npz",
    "http://yann.lecun.com/exdb/mnist",
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
    "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
)
# Digest from TensorFlow Datasets (url_checksums/cifar10.txt). The binary form has no pickled
# objects.
_CIFAR10 = Source(
    "cifar10/cifar-10-binary.tar.gz",
    "https://www.cs.toronto.edu/~kriz/cifar.html",
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)
_SMALL_FILES = {
    "mnist": "mnist/mnist_subset_5k_1k.npz",
    "cifar10": "cifar10/cifar10_subset_5k_1k.npz",
}
_CLASSES = {
    "mnist": tuple("0123456789"),
    "cifar10": (
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    ),
}
# Size of a CIFAR-10 image in bytes.
_IMAGE_BYTES = 3 * 32 * 32
# Images of each class in a small set.
_SMALL_SIZES = {"train": 500, "test": 100}


def load(name: str, *, download: bool = True, progress: bool = True) -> Examples:
    """Load a data set of scikit-learn or UCI by name, unscaled.

    Args:
        name: One of SKLEARN_SETS or UCI, such as "diabetes" or "wine_red".
        download: Whether to download the file if it is missing.
        progress: Whether to show a progress bar while downloading.

    Raises:
        FileNotFoundError: If the file is missing and cannot be downloaded.
        ValueError: If the name is unknown, or the file does not contain the data set.
    """
    if name in SKLEARN_SETS:
        return _load_from_sklearn(name)
    if name in UCI:
        return _load_uci(name, download, progress)
    if name in IMAGES:
        raise ValueError(
            f"{name} has separate training and test parts; use images({name!r})"
        )
    raise ValueError(
        f"unknown data set {name!r}; choose one of {', '.join([*SKLEARN_SETS, *UCI])}, "
        f"or with images() one of {', '.join(IMAGES)}"
    )


def images(
    name: str, *, download: bool = True, progress: bool = True
) -> tuple[Examples, Examples]:
    """Load the training and the test part of an image data set.

    Each row is an image with pixels from 0 to 1, one color channel after the other.

    Args:
        name: "mnist" (60,000 and 10,000 images of 28 × 28 pixels), "cifar10" (50,000 and 10,000 of
            3 × 32 × 32; 740 MB in memory), or the first 500 and 100 images of each class:
            "mnist_small", "cifar10_small".
        download: Whether to download the file if it is missing.
        progress: Whether to show a progress bar while downloading.

    Returns:
        The training examples and the test examples.
    """
    if name not in IMAGES:
        raise ValueError(
            f"unknown image set {name!r}; choose one of {', '.join(IMAGES)}"
        )
    whole = name.removesuffix("_small")
    if name == whole:
        arrays = _load_images(whole, download, progress)
    else:
        arrays = _load_small_images(whole, download, progress)
    return _part(arrays, "train", _CLASSES[whole]), _part(
        arrays, "test", _CLASSES[whole]
    )


def cache() -> Path:
    """Return the folder for downloaded files: bonas/data in the user's cache."""
    return user_cache() / "data"


def find(file: str) -> Path | None:
    """Find a data file in the folder BONAS_DATA or in the cache.

    Args:
        file: The path of the file below one of these folders.

    Returns:
        The path of the file, or None if it is in neither.

    Raises:
        FileNotFoundError: If BONAS_DATA is not a folder.
    """
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder and not Path(folder).is_dir():
        raise FileNotFoundError(f"{FOLDER_VARIABLE} is {folder}, which is not a folder")
    paths = [Path(folder) / file, cache() / file] if folder else [cache() / file]
    return next((path for path in paths if path.is_file()), None)


def locate(source: Source, *, download: bool = True, progress: bool = True) -> Path:
    """Return the path of a data file, after downloading it into the cache if it is missing.

    Nothing is written to the folder BONAS_DATA. A file found there is not compared with the public
    file, from which it may differ in format; its reader checks the contents.

    Args:
        source: The file, and where to get it.
        download: Whether to download the file if it is missing.
        progress: Whether to show a progress bar while downloading.

    Raises:
        FileNotFoundError: If the file is missing and cannot be downloaded.
    """
    if path := find(source.file):
        return path
    if download and source.url:
        check = source.check or has_sha256(source.sha256)
        return fetch(source.url, cache() / source.file, check, progress=progress)
    if source.url:
        reason = "downloads are off"
    else:
        reason = "it cannot be downloaded, because no checksum is published"
    folder = (
        os.environ.get(FOLDER_VARIABLE) or f"a folder and set {FOLDER_VARIABLE} to it"
    )
    raise FileNotFoundError(
        f"{source.file} is missing, and {reason}: get the data from {source.home} "
        f"and put the file into {folder}"
    )


def _load_from_sklearn(name: str) -> Examples:
    from sklearn import datasets  # slow to import

    bunch = getattr(datasets, f"load_{name}")()
    x = bunch.data.astype(np.float32)
    names = tuple(str(column) for column in bunch.feature_names)
    if name == "diabetes":
        return Examples(x, bunch.target.astype(np.float32), "regression", names)
    classes = tuple(str(label) for label in bunch.target_names)
    return Examples(x, bunch.target.astype(np.int32), "classification", names, classes)


def _load_uci(name: str, download: bool, progress: bool) -> Examples:
    """Load a UCI set from an npz file with arrays X and y, or else from the public text file."""
    if path := find(f"uci/{name}.npz"):
        examples = read_npz(path)
    else:
        url = uci_url(name)
        home = f"{url} (or make uci/{name}.npz with arrays X, y from {UCI[name].home})"
        source = Source(f"uci/{name}.txt", home, url, check=check_uci(name))
        path = locate(source, download=download, progress=progress)
        examples = read_uci(path, name)
    if examples.x.shape != UCI[name].shape:
        raise ValueError(
            f"{path} does not contain the data set {name}: expected X of shape {UCI[name].shape}; "
            f"got {examples.x.shape}"
        )
    return examples


def _part(
    arrays: dict[str, np.ndarray], part: str, classes: tuple[str, ...]
) -> Examples:
    x = arrays[f"x_{part}"]
    x = x.reshape(len(x), -1).astype(np.float32)
    x /= 255.0  # in place, because CIFAR-10 is large
    names = tuple(f"pixel{i}" for i in range(x.shape[1]))
    return Examples(
        x, arrays[f"y_{part}"].astype(np.int32), "classification", names, classes
    )


def _load_images(name: str, download: bool, progress: bool) -> dict[str, np.ndarray]:
    """Load arrays x_train, y_train, x_test and y_test of a whole image data set."""
    if name == "mnist":
        return _read_images(locate(_MNIST, download=download, progress=progress))
    return _read_cifar10(locate(_CIFAR10, download=download, progress=progress))


def _load_small_images(
    name: str, download: bool, progress: bool
) -> dict[str, np.ndarray]:
    """Load the first images of each class, from the file of the small set or the whole set."""
    if path := find(_SMALL_FILES[name]):
        return _read_images(path)
    arrays = _load_images(name, download, progress)
    small: dict[str, np.ndarray] = {}
    for part, size in _SMALL_SIZES.items():
        chosen = _first_of_each_class(arrays[f"y_{part}"], size)
        small |= {
            f"{kind}_{part}": arrays[f"{kind}_{part}"][chosen] for kind in ("x", "y")
        }
    return small


def _read_images(path: Path) -> dict[str, np.ndarray]:
    arrays = load_npz(path, ("x_train", "y_train", "x_test", "y_test"))
    for part in ("train", "test"):
        x = arrays[f"x_{part}"]
        y = arrays[f"y_{part}"]
        if x.dtype != np.uint8 or y.shape != x.shape[:1] or y.max(initial=0) > 9:
            raise ValueError(
                f"{path}: expected uint8 images with one label from 0 to 9 each; "
                f"got {x.dtype} {x.shape} and labels {y.shape}"
            )
    return arrays


def _read_cifar10(path: Path) -> dict[str, np.ndarray]:
    batches = {
        "train": [f"data_batch_{i}" for i in range(1, 6)],
        "test": ["test_batch"],
    }
    arrays: dict[str, np.ndarray] = {}
    try:
        with tarfile.open(path) as archive:
            for part, files in batches.items():
                records = np.concatenate(
                    [_read_records(archive, file) for file in files]
                )
                arrays |= {f"x_{part}": records[:, 1:], f"y_{part}": records[:, 0]}
    except (tarfile.TarError, EOFError, KeyError, ValueError) as problem:
        raise ValueError(
            f"{path} is not the binary archive of CIFAR-10: {problem}"
        ) from problem
    return arrays


def _read_records(archive: tarfile.TarFile, file: str) -> np.ndarray:
    """Read records of CIFAR-10: one byte for the label, 3072 bytes for the image."""
    content = archive.extractfile(f"cifar-10-batches-bin/{file}.bin")
    return np.frombuffer(content.read() if content else b"", np.uint8).reshape(
        -1, 1 + _IMAGE_BYTES
    )


def _first_of_each_class(y: np.ndarray, number: int) -> np.ndarray:
    """Return the rows of the first `number` examples of each class, in their order."""
    return np.sort(
        np.concatenate([np.flatnonzero(y == label)[:number] for label in np.unique(y)])
    )
