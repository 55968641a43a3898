"""Importing bonas is fast, silent and without effect (in child processes); its public names."""

import importlib.metadata
import json
import os
import subprocess
import sys

import pytest
from test_architecture import PACKAGES

import bonas

# Seconds of processor time. JAX alone takes several times as long.
AFFORDABLE = 0.2


def child(code, *flags):
    """Run code in a new process without JAX settings."""
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith("JAX_")
    }
    return subprocess.run(
        [sys.executable, *flags, "-c", code],
        env=clean,
        capture_output=True,
        text=True,
        timeout=300,
    )


def result_of(code):
    process = child(code)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


# import bonas


def test_importing_prints_nothing_and_warns_of_nothing():
    process = child("import bonas", "-W", "error")
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")


@pytest.fixture(scope="module")
def import_cost():
    return result_of(
        """
import json, sys, time
before, start = set(sys.modules), time.process_time()
import bonas
seconds = time.process_time() - start
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps({"seconds": seconds, "others": sorted(new - sys.stdlib_module_names)}))
"""
    )


def test_importing_loads_no_other_package(import_cost):
    assert import_cost["others"] == ["bonas"]


def test_importing_is_fast(import_cost):
    assert import_cost["seconds"] < AFFORDABLE


# from bonas import *


@pytest.fixture(scope="module")
def everything():
    return result_of(
        """
import json
import jax
from jax._src import xla_bridge
def settings():
    return {name: repr(value) for name, value in jax.config.values.items()}
before = settings()
from bonas import *
after = settings()
changed = sorted(name for name in before | after if before.get(name) != after.get(name))
result = {"changed": changed, "backends": sorted(xla_bridge._backends)}
jax.numpy.zeros(1)
result["backends once used"] = sorted(xla_bridge._backends)
print(json.dumps(result))
"""
    )


@pytest.mark.slow
def test_no_import_changes_a_setting(everything):
    assert everything["changed"] == []


def test_no_import_starts_a_device(everything):
    """Precision, platform and memory cannot be chosen after that. The last line tests the test."""
    assert everything["backends"] == []
    assert everything["backends once used"]


def test_importing_a_module_does_not_hide_the_function_of_its_name():
    assert result_of(
        "import bonas.configuration, json; print(json.dumps(callable(bonas.configure)))"
    )


# Packages and their modules

REACHED = (
    "data.clean",
    "linalg.factorize",
    "spaces.Space",
    "tabular",
    "report.write_report",
    "problems.datasets.load",
    "problems.tables.table",
    "problems.synthetic.two_class_plane",
)


@pytest.mark.slow
def test_every_package_is_reached_without_an_import_of_its_own():
    code = f"""
import json, sys
import bonas
missing = []
for name in {PACKAGES}:
    found = getattr(bonas, name, None)
    if found is None or found is not sys.modules.get(f"bonas.{{name}}"):
        missing.append(name)
print(json.dumps(missing))
"""
    assert result_of(code) == []


@pytest.mark.slow
def test_packages_and_their_modules_need_no_import_of_their_own():
    code = f"""
import json
from operator import attrgetter
import bonas
missing = []
for path in {REACHED}:
    try:
        attrgetter(path)(bonas)
    except AttributeError:
        missing.append(path)
print(json.dumps(missing))
"""
    assert result_of(code) == []


@pytest.mark.parametrize("package", ["study", "problems"])
def test_modules_that_are_loaded_late_are_listed(package):
    value = getattr(bonas, package)
    assert set(value._MODULES) <= set(dir(value))


@pytest.mark.parametrize("package", ["study", "problems"])
def test_unknown_names_of_a_package_are_attribute_errors(package):
    with pytest.raises(
        AttributeError, match=f"module 'bonas.{package}' has no attribute 'nonsense'"
    ):
        getattr(bonas, package).nonsense  # noqa: B018


# Names


@pytest.mark.parametrize("name", bonas.__all__)
def test_every_public_name_can_be_imported(name):
    value = getattr(bonas, name)
    assert getattr(value, "__name__", name).rpartition(".")[2] == name


def test_every_name_is_listed():
    assert set(bonas.__all__) <= set(dir(bonas))


def test_unknown_names_are_attribute_errors():
    with pytest.raises(
        AttributeError, match="module 'bonas' has no attribute 'nonsense'"
    ):
        bonas.nonsense  # noqa: B018


def test_the_version_is_that_of_the_distribution():
    assert bonas.__version__ == importlib.metadata.version("bonas")
