"""The record that every experiment leaves: numbers as JSON, with what made them."""

import json
import platform
import shlex
import sys
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("bonas", "jax", "jaxlib", "numpy", "numpyro", "flax", "optax", "scipy", "matplotlib")
PLACES = ("--out", "--rivals", "--core", "--at-once")  # flags that say where, or how many at once, and change no number
ALONE = ("--install",)  # the same, of flags that no word follows


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
        elif flag not in ALONE and not flag.startswith(tuple(f"{place}=" for place in PLACES)):
            words.append(flag)
    return shlex.join(["python", f"experiments/{Path(arguments[0]).name}", *words])


def write(path: Path, record: dict) -> None:
    """The record as JSON; NaN, which JSON does not know, is refused."""
    path.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def line(record: dict) -> str:
    """The record as one line of a file that grows."""
    return json.dumps(record, allow_nan=False) + "\n"


def add(file: Path, record: dict, settings: dict | list | None = None) -> None:
    """One more line of a file that grows; with the settings that made it, by which `lines` finds it again."""
    made = {} if settings is None else {"settings": settings}
    with file.open("a", encoding="utf-8") as growing:
        growing.write(line({**record, **made}))


def lines(file: Path, settings: dict | list | None = None) -> list[dict]:
    """The records of a file that grows, none where it is not there; a last one that was cut off is taken out of it.

    With settings, only those that were made by them: a file may hold the records of a small run, or of another version.
    """
    if not file.exists():
        return []
    text = file.read_text(encoding="utf-8").splitlines(keepends=True)
    if text and not text[-1].endswith("\n"):
        text.pop()
        file.write_text("".join(text), encoding="utf-8")
    found = [json.loads(each) for each in text]
    return found if settings is None else [each for each in found if each.get("settings") == plain(settings)]


def plain(settings: dict | list) -> dict | list:
    """Settings as they come out of a file: its tuples are lists."""
    return json.loads(json.dumps(settings))
