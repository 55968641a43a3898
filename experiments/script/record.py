"""The record that every experiment leaves: numbers as JSON, with what made them."""

import json
import platform
import shlex
import sys
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("bonas", "jax", "jaxlib", "numpy", "numpyro", "flax", "optax", "scipy", "matplotlib")
PLACES = ("--out", "--rivals", "--core")  # flags that say where, and change no number


def about() -> dict:
    """The command and the versions of everything that has a part in the numbers."""
    return {
        "command": command(sys.argv),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
    }


def command(arguments: list[str]) -> str:
    """The call of a script as one would type it, without the places of this machine."""
    words, flags = [], iter(arguments[1:])
    for flag in flags:
        if flag in PLACES:
            next(flags, None)
        elif not flag.startswith(tuple(f"{place}=" for place in PLACES)):
            words.append(flag)
    return shlex.join(["python", f"experiments/{Path(arguments[0]).name}", *words])


def write(path: Path, record: dict) -> None:
    """The record as JSON; NaN, which JSON does not know, is refused."""
    path.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def line(record: dict) -> str:
    """The record as one line of a file that grows."""
    return json.dumps(record, allow_nan=False) + "\n"


def add(file: Path, record: dict) -> None:
    """One more line of a file that grows."""
    with file.open("a", encoding="utf-8") as growing:
        growing.write(line(record))


def lines(file: Path) -> list[dict]:
    """The records of a file that grows, none where it is not there; a last one that was cut off is taken out of it."""
    if not file.exists():
        return []
    text = file.read_text(encoding="utf-8").splitlines(keepends=True)
    if text and not text[-1].endswith("\n"):
        text.pop()
        file.write_text("".join(text), encoding="utf-8")
    return [json.loads(each) for each in text]
