"""Directives and roles of this site; whatever they cannot find is a warning, and the build takes warnings for errors.

.. front::                  what `import bonas` offers
.. room:: bonas.gp          every public name of a room, from its docstrings; `:first: kernel exact` are modules to begin with
.. scripts::                every experiment, from its docstring
{test}`gp/test_exact.py::the_conditioning_theorem`   a test that exists; "test_" is left out
{script}`wilton.py`         the experiment of that name
"""

import ast
import inspect
import re
from functools import cache
from typing import ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

from . import docstrings, house, marks

log = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict:
    """Tell Sphinx of all this."""
    app.add_directive("room", Room)
    app.add_directive("rooms", Rooms)
    app.add_directive("front", Front)
    app.add_directive("scripts", Scripts)
    app.add_role("test", Test())
    app.add_object_type("script", "script", objname="experiment")
    app.connect("autodoc-process-docstring", rewrite)
    app.connect("doctree-resolved", marks.link)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}


class Room(SphinxDirective):
    """The docstring of a room, a table of what it hands on, and then everything, module by module."""

    required_arguments = 1
    option_spec: ClassVar = {"first": str.split}  # the modules to begin with

    def run(self) -> list[nodes.Node]:
        room = self.arguments[0]
        parts = {module: house.names_of(module) for module in self.modules(room)}
        first = [f"{room}.{module}" for module in self.options.get("first", ())]
        offered = [name for names in parts.values() for name in names if not name.inside]
        offered.sort(key=lambda name: (name.module not in first, name.module not in first and name.kind == "class"))
        text = [f".. py:module:: {room}", ""] if is_place(room) else []
        text += [*prose(room), *overview(offered)]
        for module, names in parts.items():
            text += heading(module) if module != room else []
            outside, inside = [name for name in names if not name.inside], [name for name in names if name.inside]
            text += [line for name in outside for line in described(name)]
            text += [".. rubric:: Inside", ""] if outside and inside else []
            text += [f"To be had by ``from {module} import {inside[0].name}``.", ""] if inside else []
            text += [line for name in inside for line in described(name)]
        return self.parse_text_to_nodes("\n".join(text), allow_section_headings=True)

    def modules(self, room: str) -> list[str]:
        """In the order of the page: those that are to be first, those that have something to hand on, the others."""
        first = [f"{room}.{module}" for module in self.options.get("first", ())]
        rest = [module for module in house.modules_of(room) if module not in first]
        return first + sorted(rest, key=lambda module: all(name.inside for name in house.names_of(module)))


class Front(SphinxDirective):
    """A table of all that `import bonas` offers."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes("\n".join(overview([name for name in names() if name.shown.count(".") == 1])))


class Rooms(SphinxDirective):
    """A table of the rooms, the top of the house first."""

    def run(self) -> list[nodes.Node]:
        text = [".. list-table::", "    :widths: 30 70", "    :class: overview", ""]
        for room in reversed(house.rooms()):
            told = (ast.get_docstring(house.tree(room)) or "").split("\n\n")[0].replace("\n", " ")
            text += [f"    * - :py:obj:`{room}`", f"      - {docstrings.inline(told, resolve)}"]
        return self.parse_text_to_nodes("\n".join(text))


class Scripts(SphinxDirective):
    """A section for each experiment."""

    def run(self) -> list[nodes.Node]:
        text = []
        for path in sorted((house.ROOT / "experiments").glob("*.py")):
            told = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            text += [path.name, "-" * len(path.name), "", f".. script:: {path.name}", ""]
            text += [f"    {line}" if line else "" for line in docstrings.to_rst(told.splitlines(), (), resolve)]
        return self.parse_text_to_nodes("\n".join(text), allow_section_headings=True)


class Test(SphinxRole):
    """A test, by its file below tests/ and its name."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        file, _, name = self.text.partition("::")
        if name not in tests_in(file):
            log.warning("there is no test %s in tests/%s", name, file, location=self.get_location())
        words = [
            nodes.inline(text=name.replace("_", " "), classes=["test"]),
            nodes.Text(" "),
            nodes.literal(text=f"tests/{file}"),
        ]
        return words, []


@cache
def tests_in(file: str) -> frozenset[str]:
    """The names of the tests in a file, without "test_"."""
    path = house.ROOT / "tests" / file
    return frozenset(re.findall(r"^def test_(\w+)", path.read_text(encoding="utf-8"), re.M)) if path.exists() else frozenset()


def prose(module: str) -> list[str]:
    """The docstring of a module."""
    return docstrings.to_rst((ast.get_docstring(house.tree(module)) or "").splitlines(), (), resolve)


def heading(module: str) -> list[str]:
    """That of a module: its name as words, its file and its docstring."""
    title = module.rpartition(".")[2].replace("_", " ").capitalize()
    place = [f".. py:module:: {module}", ""] if is_place(module) else []
    return [title, "-" * len(title), "", *place, f":file:`{module.replace('.', '/')}.py`", "", *prose(module)]


def overview(names: list[house.Name]) -> list[str]:
    """A table of names and the first sentence about each."""
    made = [".. list-table::", "    :widths: 30 70", "    :class: overview", ""] if names else []
    for name in names:
        made += [f"    * - :py:obj:`{name.shown}`", f"      - {docstrings.inline(house.first_sentence(name), resolve)}"]
    return [*made, ""]


def described(name: house.Name) -> list[str]:
    """The directive that describes a name; one that nothing is said of is a warning."""
    if name.kind == "data":
        told = house.words(name)
        place, _, last = name.shown.rpartition(".")
        return [f".. py:data:: {last}", f"    :module: {place}", "", f"    {docstrings.inline(told, resolve)}", ""]
    if not house.words(name):
        log.warning("%s has no docstring", name.shown)
    members = ["    :members:"] if name.kind == "class" else []
    return [f".. auto{name.kind}:: {name.shown}", *members, ""]


def rewrite(app: Sphinx, what: str, path: str, thing: object, options: object, lines: list[str]) -> None:
    """The docstring of a function or class as reStructuredText, with the fields of the class that it does not explain."""
    said = [line for line in lines if not line.startswith("Create new instance of")]  # what Python says of a NamedTuple
    made = docstrings.to_rst(said, docstrings.settings_of(thing), resolve)
    if what == "class":
        place = house.Name(path, thing.__module__, thing.__qualname__)
        for field, told in house.fields_of(place).items():
            made += docstrings.item(field, told, resolve) if told else []
    lines[:] = made


def skip(app: Sphinx, what: str, name: str, thing: object, skipped: bool, options: object) -> bool | None:
    """Public methods are shown, and one that nothing is said of is a warning; one that takes the place of another has its words
    there. Fields are listed with the class, by the comments beside them."""
    code = getattr(thing, "__func__", None) or getattr(thing, "fget", None) or getattr(thing, "func", None) or thing
    place = getattr(code, "__qualname__", "")
    if name.startswith("_") or not place.endswith(f".{name}"):
        return True
    if not inspect.getdoc(thing):
        log.warning("%s.%s has no docstring", code.__module__, place)
    return None if (thing.__doc__ or "").strip() else True


@cache
def resolve(code: str) -> str | None:
    """The path that a piece of code in a docstring is documented under: `gp.arc(space)`, `bonas.minimise`, `space.active`."""
    path = code.partition("(")[0]
    return everything().get(path) or everything().get(f"bonas.{path}")


@cache
def everything() -> dict[str, str]:
    """Every path under which a name or a module is met in docstrings, and the one that it is documented under."""
    found = {name.shown: name.shown for name in names()}
    for room in house.rooms():
        found |= {module: module for module in (room, *house.modules_of(room)) if is_place(module)}
    for name in names():
        found.setdefault(f"{name.module}.{name.name}", name.shown)
        found.setdefault(".".join([*name.module.split(".")[:2], name.name]), name.shown)
    return found


@cache
def names() -> tuple[house.Name, ...]:
    """Every public name."""
    return tuple(name for room in house.rooms() for module in house.modules_of(room) for name in house.names_of(module))


@cache
def is_place(module: str) -> bool:
    """Whether a module can be referred to: not where a public name is in its way, as `bonas.gp.additive` is."""
    return all(name.shown != module for name in names())
