"""The public API: the packages of bonas, the names in them, and their documentation.

Functions and classes have docstrings. Other values, such as `gp.zero`, have a comment above them.
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
    """A public name: `shown` is its shortest path, `module` the module that defines it."""

    shown: str
    module: str
    name: str

    @property
    def thing(self) -> object:
        return getattr(importlib.import_module(self.module), self.name)

    @property
    def inside(self) -> bool:
        """Whether neither the name nor its module is exported by the package."""
        if self.shown != f"{self.module}.{self.name}":
            return False
        package, _, module = self.module.rpartition(".")
        return package != "bonas" and module not in exported(package)

    @property
    def kind(self) -> str:
        if is_assigned(self.module, self.name):  # a value or a type alias
            return "data"
        if inspect.isclass(self.thing):
            return "class"
        # by a cache, by jit
        wrapped = callable(self.thing) and hasattr(self.thing, "__wrapped__")
        return "function" if wrapped or inspect.isroutine(self.thing) else "data"


@cache
def is_assigned(module: str, name: str) -> bool:
    """Whether a name is defined by an assignment, not by `def` or `class`."""
    nodes = (node for node in tree(module).body if isinstance(node, ast.Assign))
    return any(getattr(node.targets[0], "id", None) == name for node in nodes)


@cache
def constant(name: str) -> tuple[str, ...]:
    """Return a tuple that tests/test_architecture.py defines and enforces."""
    source = ast.parse(
        (ROOT / "tests/test_architecture.py").read_text(encoding="utf-8")
    )
    found = next(
        node.value
        for node in source.body
        if isinstance(node, ast.Assign) and node.targets[0].id == name
    )
    return tuple(ast.literal_eval(found))


@cache
def packages() -> tuple[str, ...]:
    """Return the packages, the lowest first."""
    found = (FOLDER / package for package in constant("PACKAGES"))
    return tuple(
        f"bonas.{path.name}"
        for path in found
        if path.with_suffix(".py").exists() or (path / "__init__.py").exists()
    )


@cache
def modules_of(package: str) -> tuple[str, ...]:
    """Return the modules of a package, or the package itself if it is a single file."""
    found = importlib.import_module(package)
    if not hasattr(found, "__path__"):
        return (package,)
    return tuple(
        f"{package}.{each.name}"
        for each in pkgutil.iter_modules(found.__path__)
        if not each.name.startswith("_")
    )


@cache
def tree(module: str) -> ast.Module:
    """Return the syntax tree of a module."""
    path = ROOT.joinpath(*module.split("."))
    return ast.parse(
        (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(
            encoding="utf-8"
        )
    )


@cache
def lines_of(module: str) -> list[str]:
    """Return the lines of a module."""
    return (
        (ROOT.joinpath(*module.split(".")).with_suffix(".py"))
        .read_text(encoding="utf-8")
        .splitlines()
    )


@cache
def names_of(module: str) -> tuple[Name, ...]:
    """Return the public names that a module defines, in order."""
    found = []
    for node in tree(module).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.append(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, above = (
                node.targets[0].id,
                lines_of(module)[node.lineno - 2].startswith("# "),
            )
            found += (
                [name]
                if above or name in exported(".".join(module.split(".")[:2]))
                else []
            )
    return tuple(
        Name(shown(module, name), module, name)
        for name in found
        if not name.startswith("_")
    )


def shown(module: str, name: str) -> str:
    """Return the shortest public path of a name, such as `bonas.bayes` or `bonas.gp.arc`."""
    package = ".".join(module.split(".")[:2])
    if name in bonas.__all__ and _same(module, name, "bonas"):
        return f"bonas.{name}"
    if name in exported(package) and _same(module, name, package):
        return f"{package}.{name}"
    modules = (
        f"{package}.{each}"
        for each in sorted(exported(package))
        if is_module(package, each)
    )
    better = (
        place
        for place in modules
        if f"{name} as {name}" in reexported(place) and _same(module, name, place)
    )
    return f"{next(better, module)}.{name}"


def is_module(package: str, name: str) -> bool:
    """Whether a package has a module under this name."""
    return inspect.ismodule(getattr(importlib.import_module(package), name, None))


@cache
def reexported(module: str) -> frozenset[str]:
    """Return what a module re-exports: `from … import split as split`."""
    imports = (node for node in tree(module).body if isinstance(node, ast.ImportFrom))
    return frozenset(
        f"{alias.name} as {alias.asname}"
        for node in imports
        for alias in node.names
        if alias.asname
    )


def _same(module: str, name: str, place: str) -> bool:
    """Whether the object that a place exports under this name is the same."""
    return getattr(importlib.import_module(place), name) is getattr(
        importlib.import_module(module), name
    )


@cache
def exported(package: str) -> frozenset[str]:
    """Return the names that the `__init__` of a package exports."""
    imports = (
        node
        for node in ast.walk(tree(package))
        if isinstance(node, ast.ImportFrom) and node.module
    )
    return frozenset(
        alias.asname or alias.name
        for node in imports
        if node.module.startswith(package)
        for alias in node.names
    )


def comment_above(module: str, line: int) -> str:
    """Return the comment right above a line, or at its end."""
    lines, found = lines_of(module), []
    for above in reversed(lines[: line - 1]):
        if not above.strip().startswith("# "):
            break
        found.insert(0, above.strip()[2:])
    return " ".join(found) or lines[line - 1].partition("  # ")[2]


def documentation(name: Name) -> str:
    """Return the docstring of a name, or the comment above it."""
    if name.kind == "data":
        return comment_above(name.module, line_of(name))
    return inspect.cleandoc(name.thing.__doc__ or "")


def first_sentence(name: Name) -> str:
    """Return the first sentence of the documentation of a name."""
    text = " ".join(documentation(name).split("\n\n")[0].split())
    return re.split(r"(?<!eq)(?<!eqs)(?<!al)[.] (?=[A-Z])", text)[0].rstrip(".")


def fields_of(name: Name) -> dict[str, str]:
    """Return the fields of a class with the comment beside or above each."""
    node = next(
        each
        for each in tree(name.module).body
        if isinstance(each, ast.ClassDef) and each.name == name.name
    )
    fields = (
        each
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    )
    return {each.target.id: field_comment(name.module, each) for each in fields}


def field_comment(module: str, field: ast.AnnAssign) -> str:
    """Return the comment beside a field, or above it."""
    beside = lines_of(module)[field.end_lineno - 1].partition("  # ")[2]
    return beside or comment_above(module, field.lineno)


def line_of(name: Name) -> int:
    """Return the line in which a value is assigned."""
    return next(
        node.lineno
        for node in tree(name.module).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == name.name
    )
