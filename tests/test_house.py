"""The house in order: arrows between rooms point downwards, public names are said once and in words, scripts are listed."""

import ast
import importlib
import inspect
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

import bonas

ROOT = Path(__file__).parents[1]
# From the bottom of the house to the top: a room knows those before it alone.
ROOMS = (
    "configure",
    "linalg",
    "spaces",
    "data",
    "infer",
    "gp",
    "nets",
    "surrogates",
    "acquire",
    "search",
    "plots",
    "problems",
    "interchange",
    "tabular",
    "study",
    "export",
)
FILES = sorted((ROOT / "bonas").rglob("*.py"))
MODULES = [path for path in FILES if path.name != "__init__.py"]


def room_of(path):
    """The room that a file is in."""
    return path.relative_to(ROOT / "bonas").with_suffix("").parts[0]


def dotted(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(node):
    """Every (line, path) that a tree of code imports from bonas, the imports inside functions too."""
    for each in ast.walk(node):
        if isinstance(each, ast.ImportFrom) and (each.module or "").partition(".")[0] == "bonas":
            yield from ((each.lineno, f"{each.module}.{alias.name}") for alias in each.names)
        elif isinstance(each, ast.Import):
            yield from ((each.lineno, alias.name) for alias in each.names if alias.name.startswith("bonas."))


def public(tree):
    """The functions and classes at the top of a module whose names are not private."""
    return [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")]


# Rooms


def test_every_room_is_in_the_order():
    there = {room_of(path) for path in FILES} - {"__init__"}
    assert there <= set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_arrows_point_downwards(path):
    height = ROOMS.index(room_of(path))
    for line, target in imports(ast.parse(path.read_text(encoding="utf-8"))):
        room = target.split(".")[1]
        if room in ROOMS:
            assert ROOMS.index(room) <= height, f"{path}, line {line}: {room_of(path)} must not know of {room}"


def test_no_two_modules_import_each_other():
    """Nor in a longer circle; what is imported for types, or when a function is called, does not count."""
    known = {dotted(path): path for path in FILES}
    arrows = {name: sorted(needed(path, known)) for name, path in known.items()}
    done, way = set(), []

    def follow(name):
        assert name not in way, " -> ".join([*way[way.index(name) :], name])
        if name not in done:
            way.append(name)
            for target in arrows[name]:
                follow(target)
            done.add(way.pop())

    for name in arrows:
        follow(name)


def needed(path, known):
    """The modules without which one cannot be imported."""
    top = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    for node in top:
        for _, target in imports(node):
            module = target if target in known else target.rpartition(".")[0]
            if module not in ("bonas", dotted(path)) and not dotted(path).startswith(f"{module}."):
                yield module


# Public names


@pytest.mark.parametrize("path", FILES, ids=dotted)
def test_modules_functions_and_classes_have_docstrings(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), f"{path} has no docstring"
    assert [node.name for node in public(tree) if not ast.get_docstring(node)] == []


def methods(owner):
    """The public methods and properties that a class defines; a field whose default is a function is none."""
    for name, thing in vars(owner).items():
        code = getattr(thing, "__func__", None) or getattr(thing, "fget", None) or getattr(thing, "func", None) or thing
        if not name.startswith("_") and getattr(code, "__qualname__", "") == f"{owner.__qualname__}.{name}":
            yield name


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_methods_have_words_or_inherit_them(path):
    module = importlib.import_module(dotted(path))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    owners = [getattr(module, node.name) for node in public(tree) if isinstance(node, ast.ClassDef)]
    silent = [
        f"{dotted(path)}.{owner.__name__}.{name}"
        for owner in owners
        for name in methods(owner)
        if not inspect.getdoc(getattr(owner, name))
    ]
    assert silent == []


@pytest.mark.parametrize("name", bonas.__all__)
def test_every_public_name_has_words(name):
    found = getattr(bonas, name)
    assert inspect.getdoc(found), f"bonas.{name} has no docstring"


@pytest.mark.parametrize("path", [path for path in FILES if path.name == "__init__.py"], ids=dotted)
def test_public_names_are_handed_on_once(path):
    names = [
        alias.asname or alias.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert [name for name, times in Counter(names).items() if times > 1] == []


def test_public_names_stand_in_one_place():
    """The list for type checkers and the one by which names are found say the same."""
    tree = ast.parse((ROOT / "bonas/__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.asname: f"{node.module}.{alias.name}" for node in block.body for alias in node.names}
    found = {name: f"{home}.{name}" for name, home in bonas._HOMES.items()} | {room: f"bonas.{room}" for room in bonas._ROOMS}
    assert typed == found


@pytest.mark.parametrize("room", [room for room in ROOMS if (ROOT / "bonas" / room / "__init__.py").exists()])
def test_a_room_hands_on_what_is_its_own(room):
    path = ROOT / "bonas" / room / "__init__.py"
    assert {target.split(".")[1] for _, target in imports(ast.parse(path.read_text(encoding="utf-8")))} <= {room}
    assert importlib.import_module(f"bonas.{room}").__doc__


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.name == "__init__.py" and path.parent.name != "bonas"], ids=dotted
)
def test_what_is_neither_function_nor_class_has_a_comment_above_it(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bonas."):
            home = ROOT.joinpath(*node.module.split(".")).with_suffix(".py")
            lines = home.read_text(encoding="utf-8").splitlines() if home.exists() else []
            for name in (alias.name for alias in node.names):
                above = [before for before, line in pairwise(lines) if line.startswith(f"{name} = ")]
                assert all(line.startswith("# ") for line in above), f"nothing is said of {name} in {home}"


# Tests


def home(thing):
    """The module that something is, or is written in."""
    return thing.__name__ if inspect.ismodule(thing) else getattr(thing, "__module__", None)


def used(path):
    """The modules of bonas that a file of tests imports, or names something of: `gp.Kernel` is in bonas.gp.kernel."""
    tree, known = ast.parse(path.read_text(encoding="utf-8")), {"bonas": bonas}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "bonas":
            for alias in node.names:
                place = importlib.import_module(node.module)
                found = getattr(place, alias.name, None) or importlib.import_module(f"{node.module}.{alias.name}")
                known[alias.asname or alias.name] = found
    chains = (ast.unparse(node).split(".") for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    for first, *rest in (chain for chain in chains if chain[0] in known):
        for name in rest:
            known[f"{first}.{name}"] = getattr(known[first], name, None) if inspect.ismodule(known[first]) else None
            first = f"{first}.{name}"
    return {home(thing) for thing in known.values() if thing is not None}


@pytest.mark.slow
def test_every_module_is_tested_by_name_or_through_one_of_its_room_that_is():
    """A part such as gp/gpar_layers.py is tested as what it is a part of."""
    tests = (path for path in (ROOT / "tests").rglob("*.py") if path.name != Path(__file__).name)
    reached = {module for path in tests for module in used(path)}
    parts = {dotted(path): path for path in MODULES}
    waiting = [name for name in parts if name in reached]
    while waiting:
        name = waiting.pop()
        for _, target in imports(ast.parse(parts[name].read_text(encoding="utf-8"))):
            module = target if target in parts else target.rpartition(".")[0]
            if module in parts and module not in reached and room_of(parts[module]) == room_of(parts[name]):
                reached.add(module)
                waiting.append(module)
    assert sorted(set(parts) - reached) == []


# Scripts


def test_every_script_is_in_the_list():
    text = (ROOT / "experiments/README.md").read_text(encoding="utf-8")
    listed = Counter(re.findall(r"^\| `(\w+\.py)[ `]", text, re.M))
    assert listed == Counter(path.name for path in (ROOT / "experiments").glob("*.py"))
