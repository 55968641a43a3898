"""What there is to describe: the rooms of bonas, the public names in them, and the words beside each in the code.

A function or class has a docstring. Of anything else, such as `gp.zero`, the comment above it says what it is.
"""

import ast
import importlib
import inspect
import pkgutil
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import bonas

FOLDER = Path(bonas.__file__).parent
ROOT = FOLDER.parent


@dataclass(frozen=True)
class Name:
    """A public name: `shown` is the shortest path under which it can be had, `module` where it is written."""

    shown: str
    module: str
    name: str

    @property
    def thing(self) -> object:
        return getattr(importlib.import_module(self.module), self.name)

    @property
    def inside(self) -> bool:
        """Whether its room hands on neither it nor its module, or the module is behind a function of its name, as
        `bonas.gp.additive` is: then it can only be imported from the module."""
        if self.shown != f"{self.module}.{self.name}":
            return False
        room, _, module = self.module.rpartition(".")
        return (room != "bonas" and module not in exported(room)) or not is_module(room, module)

    @property
    def kind(self) -> str:
        if inspect.isclass(self.thing):
            return "class"
        wrapped = callable(self.thing) and hasattr(self.thing, "__wrapped__")  # by a cache, by jit
        return "function" if wrapped or inspect.isroutine(self.thing) else "data"


@cache
def stated(name: str) -> tuple[str, ...]:
    """A list that stands in tests/test_house.py, which checks it."""
    source = ast.parse((ROOT / "tests/test_house.py").read_text(encoding="utf-8"))
    found = next(node.value for node in source.body if isinstance(node, ast.Assign) and node.targets[0].id == name)
    return tuple(ast.literal_eval(found))


@cache
def rooms() -> tuple[str, ...]:
    """The rooms that there are, from the bottom of the house to the top."""
    found = (FOLDER / room for room in stated("ROOMS"))
    return tuple(f"bonas.{path.name}" for path in found if path.with_suffix(".py").exists() or (path / "__init__.py").exists())


@cache
def modules_of(room: str) -> tuple[str, ...]:
    """The modules of a room, or the room itself where it is a single file."""
    found = importlib.import_module(room)
    if not hasattr(found, "__path__"):
        return (room,)
    return tuple(f"{room}.{each.name}" for each in pkgutil.iter_modules(found.__path__) if not each.name.startswith("_"))


@cache
def tree(module: str) -> ast.Module:
    """The source of a module."""
    path = ROOT.joinpath(*module.split("."))
    return ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8"))


@cache
def lines_of(module: str) -> list[str]:
    """Its lines."""
    return (ROOT.joinpath(*module.split(".")).with_suffix(".py")).read_text(encoding="utf-8").splitlines()


@cache
def names_of(module: str) -> tuple[Name, ...]:
    """The public names that a module defines, in its order."""
    found = []
    for node in tree(module).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.append(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, above = node.targets[0].id, lines_of(module)[node.lineno - 2].startswith("# ")
            found += [name] if above or name in exported(".".join(module.split(".")[:2])) else []
    return tuple(Name(shown(module, name), module, name) for name in found if not name.startswith("_"))


def shown(module: str, name: str) -> str:
    """The shortest public path of a name: `bonas.bayes`, `bonas.gp.arc`, `bonas.nets.views.pieces`, or where it is written."""
    room = ".".join(module.split(".")[:2])
    if name in bonas.__all__ and _same(module, name, "bonas"):
        return f"bonas.{name}"
    if name in exported(room) and _same(module, name, room):
        return f"{room}.{name}"
    handed_on = (f"{room}.{each}" for each in sorted(exported(room)) if is_module(room, each))
    better = (place for place in handed_on if f"{name} as {name}" in passed_on(place) and _same(module, name, place))
    return f"{next(better, module)}.{name}"


def is_module(room: str, name: str) -> bool:
    """Whether what a room has under a name is a module, and not a function that is in its way."""
    return inspect.ismodule(getattr(importlib.import_module(room), name, None))


@cache
def passed_on(module: str) -> frozenset[str]:
    """What a module says that it hands on: `from … import split as split`."""
    imports = (node for node in tree(module).body if isinstance(node, ast.ImportFrom))
    return frozenset(f"{alias.name} as {alias.asname}" for node in imports for alias in node.names if alias.asname)


def _same(module: str, name: str, place: str) -> bool:
    """Whether the name that a place exports is this one, and not another of that name."""
    return getattr(importlib.import_module(place), name) is getattr(importlib.import_module(module), name)


@cache
def exported(room: str) -> frozenset[str]:
    """What the room's __init__ hands on."""
    imports = (node for node in ast.walk(tree(room)) if isinstance(node, ast.ImportFrom) and node.module)
    return frozenset(alias.asname or alias.name for node in imports if node.module.startswith(room) for alias in node.names)


def comment_above(module: str, line: int) -> str:
    """The comment that ends right above a line, or stands at its end."""
    lines, found = lines_of(module), []
    for above in reversed(lines[: line - 1]):
        if not above.strip().startswith("# "):
            break
        found.insert(0, above.strip()[2:])
    return " ".join(found) or lines[line - 1].partition("  # ")[2]


def words(name: Name) -> str:
    """What is said of a name in the code: its docstring, or the comment above it."""
    if name.kind == "data":
        return comment_above(name.module, line_of(name))
    return inspect.cleandoc(name.thing.__doc__ or "")


def first_sentence(name: Name) -> str:
    """Of what is said of a name; "eq. 3" ends none."""
    told = " ".join(words(name).split("\n\n")[0].split())
    return re.split(r"(?<!eq)(?<!eqs)(?<!al)[.] (?=[A-Z])", told)[0].rstrip(".")


def fields_of(name: Name) -> dict[str, str]:
    """The fields of a class and the comment beside each."""
    node = next(each for each in tree(name.module).body if isinstance(each, ast.ClassDef) and each.name == name.name)
    fields = (each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name))
    return {each.target.id: lines_of(name.module)[each.end_lineno - 1].partition("  # ")[2] for each in fields}


def line_of(name: Name) -> int:
    """Where a datum is assigned."""
    return next(
        node.lineno
        for node in tree(name.module).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name.name
    )
