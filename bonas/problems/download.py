"""Files from the web: checked, and whole or not there at all."""

import hashlib
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import BinaryIO
from urllib.error import URLError
from urllib.request import urlopen

Check = Callable[[Path], None]  # ValueError: what is wrong with "it", the file of that path
_CHUNK = 1 << 16  # bytes between two moves of the progress bar
_PATIENCE = 30.0  # seconds without a byte before a server counts as gone


def has_sha256(expected: str) -> Check:
    """A check of a file's bytes."""

    def check(path: Path) -> None:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            raise ValueError(f"it has sha256 {found}, not {expected}; it has changed, or was tampered with")

    return check


def fetch(url: str, path: str | os.PathLike, check: Check, *, progress: bool = True) -> Path:
    """The path, where the file of that url now is; a file that is already there is used as it is.

    The bytes go to a temporary file beside it, which is renamed once it passes the check: a cut download leaves nothing.
    ConnectionError: the server was not reached, refused, or stopped. ValueError: the file is not the one expected.
    OSError: it cannot be written there.
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
            raise ValueError(f"{url} is not the file expected: {problem}") from problem
        os.replace(part, path)
    finally:
        if path.parent.is_dir():
            part.unlink(missing_ok=True)
    return path


def _download(url: str, part: Path, name: str, progress: bool) -> None:
    with _writable(part) as file, _connection(url) as answer, _bar(name, _length(answer), progress) as advance:
        received = 0
        while chunk := _next(answer, url):
            file.write(chunk)
            received += len(chunk)
            advance(len(chunk))
        # A cut connection looks like the end of the file.
        if (expected := _length(answer)) is not None and received < expected:
            raise ConnectionError(f"the download of {url} stopped after {received} of {expected} bytes; try again")


def _length(answer) -> int | None:
    length = answer.headers.get("Content-Length")
    return None if length is None else int(length)


def _next(answer, url: str) -> bytes:
    try:
        return answer.read(_CHUNK)
    except (HTTPException, OSError) as problem:
        raise ConnectionError(f"the download of {url} stopped: {problem}; try again") from problem


@contextmanager
def _writable(part: Path) -> Iterator[BinaryIO]:
    """The open file; only what goes wrong in opening it is about the folder."""
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        file = part.open("xb")
    except OSError as problem:
        advice = "XDG_CACHE_HOME can name another cache, BONAS_DATA a folder that holds the file"
        raise OSError(f"cannot write to the folder {part.parent}: {problem}; {advice}") from problem
    with file:
        yield file


def _connection(url: str):
    try:
        return urlopen(url, timeout=_PATIENCE)
    except (URLError, HTTPException, OSError) as problem:
        raise ConnectionError(f"cannot download {url}: {problem}") from problem


@contextmanager
def _bar(name: str, total: int | None, shown: bool):
    """advance(bytes), which moves a bar on the standard error stream."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as bar:
        task = bar.add_task(name, total=total)
        yield lambda received: bar.advance(task, received)
