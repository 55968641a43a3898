"""Which files may be written, so that no study, network or table is lost to a report or to predictions."""

import os
from pathlib import Path

_HEAD = 4096  # bytes in which a report says what it is
_REPORT = b": a bonas study</title>"
_ENDINGS = {".html": "reports", ".htm": "reports", ".npz": "networks"}  # that a study may not have


def check_study_path(path: Path, data: Path) -> None:
    """A ValueError where a new study could not be begun there, or would lose something to its own report or networks."""
    from bonas.tabular.kept import path_of

    if path.suffix.lower() in _ENDINGS:
        kind = _ENDINGS[path.suffix.lower()]
        raise ValueError(f"--study {path}: the ending {path.suffix} is that of {kind}; name it {path.with_suffix('.db')}, say")
    if _same(path, data):
        raise ValueError(f"--study {path} is the data themselves: name another file")
    if _same(path_of(path), data):
        raise ValueError(f"the networks of {path} would overwrite the data, {data}: give --study another FILE")
    if not path.exists() and path.parent.is_dir() and not os.access(path.parent, os.W_OK):
        raise ValueError(f"the folder {path.parent.resolve()} may not be written to: --study FILE keeps everything elsewhere")
    check_report(path.with_suffix(".html"), path)


def check_report(out: Path, study: Path) -> None:
    """A ValueError where a report of a study would take the place of anything but a former report or an empty file."""
    from bonas.tabular.kept import path_of

    if _same(out, path_of(study)) or _same(out, study) or (out.is_file() and not _is_report(out)):
        raise ValueError(f"{out} is no report of bonas, and a report does not overwrite it: name another file")


def write_predictions_over(out: Path, lines: bytes) -> None:
    """Write predictions to a file that is new or empty, or has the same header; a ValueError where it is another."""
    if out.is_file():
        with out.open("rb") as file:
            there = file.readline()
        if there.strip() not in (b"", lines.partition(b"\n")[0].strip()):
            raise ValueError(f"--out {out} holds other things than such predictions, and is not overwritten: name another file")
    out.write_bytes(lines)


def _is_report(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(_HEAD)
    return not start or (start.startswith(b"<!DOCTYPE html>") and _REPORT in start)


def _same(one: Path, other: Path) -> bool:
    """Whether two names are of one file."""
    return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))
