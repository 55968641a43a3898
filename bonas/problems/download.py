"""Download files and check them; an incomplete file is never left behind."""

import hashlib
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, BinaryIO
from urllib.error import URLError
from urllib.request import urlopen

# Raises a ValueError if the file at a path is wrong. The message starts with "it" for the file.
Check = Callable[[Path], None]
# Bytes between two updates of the progress bar.
_CHUNK = 1 << 16
# Seconds without data after which the server counts as unreachable.
_TIMEOUT = 30.0


@dataclass(frozen=True)
class Sha256Check:
    """Check that a file has the expected SHA-256 digest; see `has_sha256`."""

    expected: str

    def __call__(self, path: Path) -> None:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != self.expected:
            raise ValueError(
                f"it has SHA-256 digest {digest}; expected {self.expected}: "
                "the file was changed by its owner or tampered with"
            )


def has_sha256(expected: str) -> Sha256Check:
    """Return a function of a path that raises a ValueError unless the file has a SHA-256 digest.

    Args:
        expected: The digest in hexadecimal form.
    """
    return Sha256Check(expected)


def fetch(
    url: str, path: str | os.PathLike, check: Check, *, progress: bool = True
) -> Path:
    """Download a file unless it exists, and return its path.

    The data go to a temporary file in the same folder, which is renamed when it passes the check,
    so an interrupted download leaves nothing behind.

    Args:
        url: The address of the file.
        path: The file to write.
        check: A function of a path that raises a ValueError if the file there is wrong. It is not
            called for a file that exists already.
        progress: Whether to show a progress bar.

    Raises:
        ConnectionError: If the server cannot be reached, or the download stopped.
        ValueError: If the file fails the check.
        OSError: If the folder is not writable.
    """
    path = Path(path)
    if path.is_file():
        return path
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        _download(url, part, path.name, progress)
        try:
            check(part)
        except ValueError as problem:
            raise ValueError(f"{url} is not the expected file: {problem}") from problem
        os.replace(part, path)
    finally:
        if path.parent.is_dir():
            part.unlink(missing_ok=True)
    return path


def _download(url: str, part: Path, name: str, progress: bool) -> None:
    with (
        _open_for_writing(part) as file,
        _connect(url) as response,
        _progress_bar(name, _content_length(response), progress) as update,
    ):
        received = 0
        while chunk := _read_chunk(response, url):
            file.write(chunk)
            received += len(chunk)
            update(received)
        expected = _content_length(response)
        # A lost connection looks like the end of the file.
        if expected is not None and received < expected:
            raise ConnectionError(
                f"the download of {url} stopped after {received} of {expected} bytes; try again"
            )


def _content_length(response: Any) -> int | None:
    length = response.headers.get("Content-Length")
    return None if length is None else int(length)


def _read_chunk(response: Any, url: str) -> bytes:
    try:
        return response.read(_CHUNK)
    except (HTTPException, OSError) as problem:
        raise ConnectionError(
            f"the download of {url} stopped: {problem}; try again"
        ) from problem


@contextmanager
def _open_for_writing(part: Path) -> Iterator[BinaryIO]:
    """Open a new file; an error of opening it is reported with the folder and advice."""
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        file = part.open("xb")
    except OSError as problem:
        advice = (
            "set XDG_CACHE_HOME to another cache folder, "
            "or BONAS_DATA to a folder that contains the file"
        )
        raise OSError(
            f"cannot write to the folder {part.parent}: {problem}; {advice}"
        ) from problem
    with file:
        yield file


def _connect(url: str) -> Any:
    try:
        return urlopen(url, timeout=_TIMEOUT)
    except (URLError, HTTPException, OSError) as problem:
        raise ConnectionError(f"cannot download {url}: {problem}") from problem


@contextmanager
def _progress_bar(
    name: str, total: int | None, shown: bool
) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on the standard error stream; yields update(bytes received)."""
    if not shown:
        yield lambda received: None
        return
    from bonas.search import ProgressBar

    megabytes = None if total is None else total / 1e6
    with ProgressBar(megabytes, unit="MB", stderr=True) as bar:
        yield lambda received: bar.update(received / 1e6, name)
