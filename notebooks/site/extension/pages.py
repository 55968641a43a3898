"""Directives and roles of this site. What they cannot find is a warning, and warnings are errors.

.. toplevel::               the names that `import bonas` offers
.. package:: bonas.gp       every public name of a package; `:first: kernel exact` come first
.. packages::               a table of the packages
.. scripts::                every experiment, from its docstring
{test}`gp/test_exact.py::the_conditioning_theorem`   an existing test, without "test_"
{script}`wilton/search.py`  the experiment of that name
"""

import ast
import importlib
import inspect
import re
from functools import cache
from typing import ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

from . import api, docstrings

log = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict:
    """Register the directives and roles."""
    app.add_directive("package", Package)
    app.add_directive("packages", Packages)
    app.add_directive("toplevel", TopLevel)
    app.add_directive("scripts", Scripts)
    app.add_role("test", Test())
    app.add_object_type("script", "script", objname="experiment")
    app.connect("autodoc-process-docstring", rewrite)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}


class Package(SphinxDirective):
    """The docstring of a package, a table of its exports, then every module."""

    required_arguments = 1
    option_spec: ClassVar = {"first": str.split}  # modules to show first

    def run(self) -> list[nodes.Node]:
        package = self.arguments[0]
        parts = {module: api.names_of(module) for module in self.modules(package)}
        first = [f"{package}.{module}" for module in self.options.get("first", ())]
        offered = [
            name for names in parts.values() for name in names if not name.inside
        ]
        offered.sort(
            key=lambda name: (
                name.module not in first,
                name.module not in first and name.kind == "class",
            )
        )
        text = [f".. py:module:: {package}", ""] if is_place(package) else []
        text += [*prose(package), *overview(offered)]
        for module, names in parts.items():
            text += heading(module) if module != package else []
            outside, inside = (
                [name for name in names if not name.inside],
                [name for name in names if name.inside],
            )
            text += [line for name in outside for line in described(name)]
            text += [".. rubric:: Internal", ""] if outside and inside else []
            text += (
                [f"Import with ``from {module} import {inside[0].name}``.", ""]
                if inside
                else []
            )
            text += [line for name in inside for line in described(name)]
        return self.parse_text_to_nodes("\n".join(text), allow_section_headings=True)

    def modules(self, package: str) -> list[str]:
        """Return the modules in the order of the page: given ones, those with exports, others."""
        first = [f"{package}.{module}" for module in self.options.get("first", ())]
        rest = [module for module in api.modules_of(package) if module not in first]
        return first + sorted(
            rest, key=lambda module: all(name.inside for name in api.names_of(module))
        )


class TopLevel(SphinxDirective):
    """A table of all names that `import bonas` offers."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(
            "\n".join(
                overview([name for name in names() if name.shown.count(".") == 1])
            )
        )


class Packages(SphinxDirective):
    """A table of the packages, the highest first."""

    def run(self) -> list[nodes.Node]:
        text = [".. list-table::", "    :widths: 30 70", "    :class: overview", ""]
        for package in reversed(api.packages()):
            text_of = (
                (ast.get_docstring(api.tree(package)) or "")
                .split("\n\n")[0]
                .replace("\n", " ")
            )
            text += [
                f"    * - :py:obj:`{package}`",
                f"      - {docstrings.inline(text_of, resolve)}",
            ]
        return self.parse_text_to_nodes("\n".join(text))


class Scripts(SphinxDirective):
    """A section for each experiment."""

    def run(self) -> list[nodes.Node]:
        text = []
        folder = api.ROOT / "experiments"
        for path in sorted(folder.glob("*/*.py")):
            title = path.relative_to(folder).as_posix()
            code = path.read_text(encoding="utf-8")
            if "def main()" not in code:  # a module that a script imports
                continue
            text_of = ast.get_docstring(ast.parse(code)) or ""
            text += [title, "-" * len(title), "", f".. script:: {title}", ""]
            text += [
                f"    {line}" if line else ""
                for line in docstrings.to_rst(text_of.splitlines(), (), resolve)
            ]
        return self.parse_text_to_nodes("\n".join(text), allow_section_headings=True)


class Test(SphinxRole):
    """A test, by its file in tests/ and its name."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        file, _, name = self.text.partition("::")
        if name not in tests_in(file):
            log.warning(
                "there is no test %s in tests/%s",
                name,
                file,
                location=self.get_location(),
            )
        words = [
            nodes.inline(text=name.replace("_", " "), classes=["test"]),
            nodes.Text(" "),
            nodes.literal(text=f"tests/{file}"),
        ]
        return words, []


@cache
def tests_in(file: str) -> frozenset[str]:
    """Return the names of the tests in a file, without "test_"."""
    path = api.ROOT / "tests" / file
    return (
        frozenset(
            re.findall(r"^def test_(\w+)", path.read_text(encoding="utf-8"), re.M)
        )
        if path.exists()
        else frozenset()
    )


def prose(module: str) -> list[str]:
    """Convert the docstring of a module."""
    return docstrings.to_rst(
        (ast.get_docstring(api.tree(module)) or "").splitlines(), (), resolve
    )


def heading(module: str) -> list[str]:
    """Return the heading of a module: its name, file and docstring."""
    title = module.rpartition(".")[2].replace("_", " ").capitalize()
    place = [f".. py:module:: {module}", ""] if is_place(module) else []
    return [
        title,
        "-" * len(title),
        "",
        *place,
        f":file:`{module.replace('.', '/')}.py`",
        "",
        *prose(module),
    ]


def overview(names: list[api.Name]) -> list[str]:
    """Return a table of names and the first sentence about each."""
    made = (
        [".. list-table::", "    :widths: 30 70", "    :class: overview", ""]
        if names
        else []
    )
    for name in names:
        made += [
            f"    * - :py:obj:`{name.shown}`",
            f"      - {docstrings.inline(api.first_sentence(name), resolve)}",
        ]
    return [*made, ""]


def described(name: api.Name) -> list[str]:
    """Return the directive that documents a name, and warn if it has no docstring."""
    if name.kind == "data":
        text_of = api.documentation(name)
        place, _, last = name.shown.rpartition(".")
        return [
            f".. py:data:: {last}",
            f"    :module: {place}",
            "",
            f"    {docstrings.inline(text_of, resolve)}",
            "",
        ]
    if not api.documentation(name):
        log.warning("%s has no docstring", name.shown)
    members = ["    :members:"] if name.kind == "class" else []
    return [f".. auto{name.kind}:: {name.shown}", *members, ""]


def rewrite(
    app: Sphinx, what: str, path: str, thing: object, options: object, lines: list[str]
) -> None:
    """Convert the docstring of a function or class, and add fields with their comments."""
    given = [
        line for line in lines if not line.startswith("Create new instance of")
    ]  # Python's text for a NamedTuple
    made = docstrings.to_rst(given, docstrings.arguments_of(thing), resolve)
    if what == "class":
        place = api.Name(path, thing.__module__, thing.__qualname__)
        for field, text_of in api.fields_of(place).items():
            made += docstrings.item(field, text_of, resolve) if text_of else []
    lines[:] = made


def skip(
    app: Sphinx, what: str, name: str, thing: object, skipped: bool, options: object
) -> bool | None:
    """Show public methods, and warn about those without a docstring; fields are listed apart."""
    code = (
        getattr(thing, "__func__", None)
        or getattr(thing, "fget", None)
        or getattr(thing, "func", None)
        or thing
    )
    place = getattr(code, "__qualname__", "")
    if name.startswith("_") or not place.endswith(f".{name}"):
        return True
    if not inspect.getdoc(thing) and not is_declared_by_a_base(code, name):
        log.warning("%s.%s has no docstring", code.__module__, place)
    return None if (thing.__doc__ or "").strip() else True


def is_declared_by_a_base(code: object, name: str) -> bool:
    """Whether a base class declares a method as an attribute, which its docstring describes."""
    owner = importlib.import_module(code.__module__)
    for part in code.__qualname__.split(".")[:-1]:
        owner = getattr(owner, part, None)
    bases = getattr(owner, "__mro__", ())[1:]
    return any(name in vars(base).get("__annotations__", {}) for base in bases)


@cache
def resolve(code: str) -> str | None:
    """Return the documented path that code such as `gp.arc(space)` refers to."""
    path = code.partition("(")[0]
    return everything().get(path) or everything().get(f"bonas.{path}")


@cache
def everything() -> dict[str, str]:
    """Map every path that docstrings use to the path in the documentation."""
    found = {name.shown: name.shown for name in names()}
    for package in api.packages():
        found |= {
            module: module
            for module in (package, *api.modules_of(package))
            if is_place(module)
        }
    for name in names():
        found.setdefault(f"{name.module}.{name.name}", name.shown)
        found.setdefault(".".join([*name.module.split(".")[:2], name.name]), name.shown)
    return found


@cache
def names() -> tuple[api.Name, ...]:
    """Return every public name."""
    return tuple(
        name
        for package in api.packages()
        for module in api.modules_of(package)
        for name in api.names_of(module)
    )


@cache
def is_place(module: str) -> bool:
    """Whether a module can be referred to: no public name has the same path."""
    return all(name.shown != module for name in names())
