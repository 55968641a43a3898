"""Check the structure of the code: layering, public names, sizes and documentation."""

import ast
import importlib
import inspect
import io
import sys
import tokenize
from collections import Counter
from itertools import pairwise
from pathlib import Path

import jax
import pytest

import bonas

ROOT = Path(__file__).parents[1]
# From the lowest package to the highest: a package imports only from those before it.
PACKAGES = (
    "static_settings",
    "traced_settings",
    "xla_options",
    "configuration",
    "linalg",
    "gaussian_density",
    "distances",
    "fast_trigonometry",
    "extreme_values",
    "spaces",
    "data",
    "checked_data",
    "half_capacity",
    "infer",
    "gp",
    "nets",
    "surrogates",
    "acquire",
    "search",
    "curves",
    "problems",
    "plots",
    "study",
    "tabular",
    "report",
    "interchange",
    "cli",
)
# The files that a default search of a space with real numbers passes through, and the number of
# tokens of code that they may have in total.
CORE = (
    "data",
    "linalg",
    "spaces/parameter",
    "spaces/numeric",
    "spaces/choice",
    "spaces/conditions",
    "spaces/space",
    "infer/posterior",
    "infer/optimize",
    "gp/kernel",
    "gp/default_kernels",
    "gp/conditional_kernels",
    "gp/exact",
    "gp/hyperparameters",
    "acquire/acquisition",
    "acquire/log_improvement",
    "acquire/pending",
    "acquire/maximize",
    "surrogates/surrogate",
    "surrogates/gaussian_process",
    "search/search",
    "search/observations",
    "search/output_scales",
    "search/bayesian",
    "search/batches",
    "search/runs",
)
CORE_TOKENS = 24_000
# Files on this path that buy speed only, or the ends of the range of numbers; a reader may take
# them as the formulas they name.
SPEED = (
    "distances",
    "extreme_values",
    "fast_trigonometry",
    "gaussian_density",
    "gp/starting_point",
    "half_capacity",
    "search/garbage_collection",
)
# How objectives and the noise may be written, arguments are checked, inference and runs be started
# and histories read: a reader of the algorithm may skip them.
INTERFACE = (
    "gp/noise_settings",
    "static_settings",
    "traced_settings",
    "infer/prior_middle",
    "acquire/argument_checks",
    "search/checks",
    "search/objectives",
    "search/start_states",
    "search/history",
    "search/model_warnings",
)
LONGEST_FILE = 350
# The functions whose results are kept while a process runs; none keeps a search or an objective.
CACHED = {
    "study/compiled_search.py _source_digest",
    "study/trial.py _open_storage",
    "tabular/job.py job_trainer",
}
FILES = sorted((ROOT / "bonas").rglob("*.py"))
MODULES = [path for path in FILES if path.name != "__init__.py"]
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def package_of(path):
    return path.relative_to(ROOT / "bonas").with_suffix("").parts[0]


def dotted(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(
        ".__init__"
    )


def imports(node):
    """Yield (line, path) for every import from bonas, those inside functions included."""
    for each in ast.walk(node):
        if (
            isinstance(each, ast.ImportFrom)
            and (each.module or "").partition(".")[0] == "bonas"
        ):
            for alias in each.names:
                yield each.lineno, f"{each.module}.{alias.name}"
        elif isinstance(each, ast.Import):
            for alias in each.names:
                if alias.name.startswith("bonas."):
                    yield each.lineno, alias.name


def public(tree):
    """Return the public functions and classes at the top level of a module."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [
        node for node in tree.body if isinstance(node, kinds) and node.name[0] != "_"
    ]


def exports(package):
    """Return the names that a package's `__init__` offers."""
    tree = parse(ROOT / "bonas" / package / "__init__.py")
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {
        alias.asname or alias.name
        for node in found
        if (node.module or "").startswith(f"bonas.{package}")
        for alias in node.names
    }


# Layers


def test_every_package_has_a_place_in_the_order():
    assert {package_of(path) for path in FILES} - {"__init__"} <= set(PACKAGES)


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_imports_point_downwards(path):
    height = PACKAGES.index(package_of(path))
    for line, target in imports(parse(path)):
        package = target.split(".")[1]
        if package in PACKAGES:
            allowed = PACKAGES.index(package) <= height
            assert allowed, (
                f"{path}:{line}: {package_of(path)} must not import {package}"
            )


def is_outside_import(target, own_package):
    """Whether an import reaches past the `__init__` of another package."""
    parts = target.split(".")
    if len(parts) < 4 or parts[1] == own_package:
        return False
    return parts[2] not in exports(parts[1])  # a module may be exported as such


@pytest.mark.parametrize("path", FILES, ids=dotted)
def test_other_packages_are_imported_through_their_init(path):
    found = imports(parse(path))
    own = package_of(path)
    assert [
        f"{path}:{line}: {name}" for line, name in found if is_outside_import(name, own)
    ] == []


def test_modules_do_not_import_each_other_in_a_circle():
    """Imports for type checkers and inside functions do not count."""
    known = {dotted(path): path for path in FILES}
    arrows = {name: sorted(needed(path, known)) for name, path in known.items()}
    done, stack = set(), []

    def follow(name):
        assert name not in stack, " -> ".join([*stack[stack.index(name) :], name])
        if name not in done:
            stack.append(name)
            for target in arrows[name]:
                follow(target)
            done.add(stack.pop())

    for name in arrows:
        follow(name)


def needed(path, known):
    """Yield the modules without which a module cannot be imported."""
    kinds = (ast.Import, ast.ImportFrom)
    for node in [node for node in parse(path).body if isinstance(node, kinds)]:
        for _, target in imports(node):
            module = target if target in known else target.rpartition(".")[0]
            own = dotted(path)
            if module not in ("bonas", own) and not own.startswith(f"{module}."):
                yield module


# Names and sizes


@pytest.mark.parametrize(
    "package", [name for name in PACKAGES if (ROOT / "bonas" / name).is_dir()]
)
def test_no_module_is_hidden_by_an_export_of_the_same_name(package):
    found = importlib.import_module(f"bonas.{package}")
    modules = {path.stem for path in (ROOT / "bonas" / package).glob("*.py")}
    hidden = [
        name
        for name in exports(package) & modules
        if not inspect.ismodule(getattr(found, name))
    ]
    assert hidden == []


def test_no_module_is_hidden_by_a_top_level_name():
    there = {path.stem for path in (ROOT / "bonas").iterdir()}
    hidden = [name for name in bonas._NAMES if name in there]
    assert hidden == []


@pytest.mark.parametrize("path", FILES, ids=dotted)
def test_files_are_short_enough_to_read(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


def code_tokens(path):
    """Count the tokens of a file without comments and docstrings."""
    source = path.read_text(encoding="utf-8")
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    skipped = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            text = node.body[0]
            skipped |= set(range(text.lineno, text.end_lineno + 1))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return sum(
        token.type not in NOT_CODE and token.start[0] not in skipped for token in tokens
    )


def files_called(function):
    """Return the files of bonas in which a call runs functions, packages' `__init__` apart."""
    folder = ROOT / "bonas"
    codes = set()

    def record(frame, event, argument):
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            codes.add(
                frame.f_code
            )  # of a function: a module or class body has no such flag

    sys.setprofile(record)
    try:
        function()
    finally:
        sys.setprofile(None)
    paths = {Path(code.co_filename).with_suffix("") for code in codes}
    inside = {path for path in paths if folder in path.parents}
    return {path.relative_to(folder).as_posix() for path in inside} - {"__init__"}


@pytest.mark.slow
def test_a_default_search_passes_through_these_files_and_no_others():
    lr = bonas.Float(1e-5, 1.0, log=True)
    options = {"lr": lr, "depth": bonas.Int(1, 3), "layer": bonas.Choice("a", "b")}
    width = bonas.Int(1, 99, when={"depth": (">=", 2), "layer": "a"})
    designs = [{"x": lr, "y": bonas.Float(0, 1)}, options, {**options, "width": width}]

    def search():
        for parameters in designs:
            found = bonas.bayes(bonas.Space(**parameters))
            jax.eval_shape(lambda key: bonas.run(found, objective, key, 8), key)

    def objective(key, u):
        return u.sum()

    key = jax.random.key(0)
    importlib.import_module("bonas.search")
    jax.clear_caches()  # what was traced before would not run again
    assert files_called(search) == {*CORE, *SPEED, *INTERFACE}


def test_telling_a_value_to_a_study_passes_through_four_files(tmp_path):
    study = bonas.Study(tmp_path / "runs.db", bonas.Space(x=bonas.Float(0.0, 1.0)))
    trial = study.ask()
    found = files_called(lambda: study.tell(trial, 0.3))
    study.close()
    assert found == {
        f"study/{name}" for name in ("study", "trial", "storage", "database")
    }


def test_a_default_search_can_be_read_in_an_hour():
    sizes = {name: code_tokens(ROOT / "bonas" / f"{name}.py") for name in CORE}
    assert sum(sizes.values()) <= CORE_TOKENS, sizes


def test_only_worker_processes_and_the_digest_of_the_code_use_caches():
    """Strategies compare by value, so nothing else needs one."""
    found = {
        f"{path.relative_to(ROOT / 'bonas')} {node.name}"
        for path in MODULES
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef)
        and any("cache" in ast.unparse(d) for d in node.decorator_list)
    }
    assert found == CACHED


# Documentation


@pytest.mark.parametrize("path", FILES, ids=dotted)
def test_modules_functions_and_classes_have_docstrings(path):
    tree = parse(path)
    assert ast.get_docstring(tree), f"{path} has no docstring"
    assert [node.name for node in public(tree) if not ast.get_docstring(node)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_has_an_api_page(package):
    pages = ROOT / "notebooks/site/api"
    assert package in (pages / "index.md").read_text(encoding="utf-8").splitlines()
    assert f".. package:: bonas.{package}" in (pages / f"{package}.rst").read_text()


def methods(owner):
    """Yield the public methods and properties of a class; a field with a function as default is not
    one.
    """
    for name, thing in vars(owner).items():
        code = (
            getattr(thing, "__func__", None)
            or getattr(thing, "fget", None)
            or getattr(thing, "func", None)
            or thing
        )
        qualified = getattr(code, "__qualname__", "")
        if not name.startswith("_") and qualified == f"{owner.__qualname__}.{name}":
            yield name


def is_declared_by_a_base(owner, name):
    """Whether a base class declares a method as an attribute, which its docstring describes."""
    return any(
        name in vars(base).get("__annotations__", {}) for base in owner.__mro__[1:]
    )


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_methods_have_docstrings_or_inherit_them(path):
    module = importlib.import_module(dotted(path))
    classes = [node for node in public(parse(path)) if isinstance(node, ast.ClassDef)]
    owners = [getattr(module, node.name) for node in classes]
    missing = [
        f"{dotted(path)}.{owner.__name__}.{name}"
        for owner in owners
        for name in methods(owner)
        if not inspect.getdoc(getattr(owner, name))
        and not is_declared_by_a_base(owner, name)
    ]
    assert missing == []


@pytest.mark.parametrize("name", bonas.__all__)
def test_every_public_name_has_a_docstring(name):
    assert inspect.getdoc(getattr(bonas, name)), f"bonas.{name} has no docstring"


def test_the_list_for_type_checkers_matches_the_lazy_imports():
    tree = parse(ROOT / "bonas/__init__.py")
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.asname: f"{node.module}.{alias.name}"
        for node in block.body
        for alias in node.names
    }
    lazy = {name: f"{source}.{name}" for name, source in bonas._NAMES.items()}
    lazy |= {package: f"bonas.{package}" for package in bonas._PACKAGES}
    assert typed == lazy


@pytest.mark.parametrize(
    "package", [name for name in PACKAGES if (ROOT / "bonas" / name).is_dir()]
)
def test_a_package_exports_only_its_own_names_and_each_once(package):
    tree = parse(ROOT / "bonas" / package / "__init__.py")
    assert {target.split(".")[1] for _, target in imports(tree)} <= {package}
    nodes = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    names = Counter(
        alias.asname or alias.name for node in nodes for alias in node.names
    )
    assert [name for name, times in names.items() if times > 1] == []


@pytest.mark.parametrize(
    "package", [name for name in PACKAGES if (ROOT / "bonas" / name).is_dir()]
)
def test_exported_values_have_a_comment(package):
    """Functions and classes have docstrings; for other exports the site shows the comment."""
    for node in ast.walk(parse(ROOT / "bonas" / package / "__init__.py")):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(
            "bonas."
        ):
            continue
        source = ROOT.joinpath(*node.module.split(".")).with_suffix(".py")
        lines = (
            source.read_text(encoding="utf-8").splitlines() if source.exists() else []
        )
        for alias in node.names:
            for above, line in pairwise(lines):
                if line.startswith(f"{alias.name} = "):
                    commented = above.startswith("# ") or "  # " in line
                    assert commented, f"{alias.name} in {source}"


# Tests and scripts


def module_of(thing):
    """Return the module that something is, or is defined in."""
    return (
        thing.__name__
        if inspect.ismodule(thing)
        else getattr(thing, "__module__", None)
    )


def modules_used(path):
    """Return the modules of bonas whose names a test file uses: `gp.Kernel` is in bonas.gp.kernel."""  # noqa: E501
    tree = parse(path)
    known = {"bonas": bonas}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ImportFrom)
            and (node.module or "").partition(".")[0] == "bonas"
        ):
            for alias in node.names:
                place = importlib.import_module(node.module)
                found = getattr(place, alias.name, None)
                if found is None:
                    found = importlib.import_module(f"{node.module}.{alias.name}")
                known[alias.asname or alias.name] = found
    chains = (
        ast.unparse(node).split(".")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
    )
    for first, *rest in (chain for chain in chains if chain[0] in known):
        for name in rest:
            is_module = inspect.ismodule(known[first])
            known[f"{first}.{name}"] = (
                getattr(known[first], name, None) if is_module else None
            )
            first = f"{first}.{name}"
    return {module_of(thing) for thing in known.values() if thing is not None}


@pytest.mark.slow
def test_every_module_is_tested_directly_or_through_another_of_its_package():
    tests = (
        path
        for path in (ROOT / "tests").rglob("*.py")
        if path.name != Path(__file__).name
    )
    reached = {module for path in tests for module in modules_used(path)}
    parts = {dotted(path): path for path in MODULES}
    waiting = [name for name in parts if name in reached]
    while waiting:
        name = waiting.pop()
        for _, target in imports(parse(parts[name])):
            module = target if target in parts else target.rpartition(".")[0]
            same = module in parts and package_of(parts[module]) == package_of(
                parts[name]
            )
            if same and module not in reached:
                reached.add(module)
                waiting.append(module)
    assert sorted(set(parts) - reached) == []
