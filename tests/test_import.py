"""Importing bonas: cheap, silent and without effect, in processes of their own; and the names that it offers."""

import importlib.metadata
import json
import os
import subprocess
import sys

import pytest

import bonas

# Seconds of processor time. JAX alone takes several times as long.
AFFORDABLE = 0.2


def child(code, *flags):
    """A fresh process, for which no JAX setting is made."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    return subprocess.run([sys.executable, *flags, "-c", code], env=clean, capture_output=True, text=True, timeout=300)


def told(code):
    done = child(code)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# bonas alone


def test_importing_says_nothing_and_warns_of_nothing():
    done = child("import bonas", "-W", "error")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture(scope="module")
def alone():
    return told(
        """
import json, sys, time
before, start = set(sys.modules), time.process_time()
import bonas
seconds = time.process_time() - start
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps({"seconds": seconds, "others": sorted(new - sys.stdlib_module_names)}))
"""
    )


def test_importing_loads_nothing_else(alone):
    assert alone["others"] == ["bonas"]


def test_importing_takes_little(alone):
    assert alone["seconds"] < AFFORDABLE


# Everything that bonas offers


@pytest.fixture(scope="module")
def everything():
    return told(
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
told = {"changed": changed, "backends": sorted(xla_bridge._backends)}
jax.numpy.zeros(1)
told["backends once used"] = sorted(xla_bridge._backends)
print(json.dumps(told))
"""
    )


@pytest.mark.slow
def test_no_import_changes_a_setting(everything):
    assert everything["changed"] == []


def test_no_import_starts_a_device(everything):
    """Once started, neither precision nor platform nor memory can be chosen; the last entry shows that this would be seen."""
    assert everything["backends"] == []
    assert everything["backends once used"]


def test_importing_a_module_does_not_hide_the_function_of_its_name():
    assert told("import bonas.configure, json; print(json.dumps(callable(bonas.configure)))")


# Rooms and their modules

REACHED = (
    "data.clean",
    "linalg.factorise",
    "spaces.Space",
    "tabular",
    "study.report.write_report",
    "problems.datasets.load",
    "problems.tables.table",
    "problems.twist.plane",
)


@pytest.mark.slow
def test_rooms_and_their_modules_are_found_without_an_import_of_their_own():
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
    assert told(code) == []


@pytest.mark.parametrize("room", ["study", "problems"])
def test_modules_that_are_loaded_late_are_listed(room):
    found = getattr(bonas, room)
    assert set(found._MODULES) <= set(dir(found))


@pytest.mark.parametrize("room", ["study", "problems"])
def test_unknown_names_of_a_room_are_attribute_errors(room):
    with pytest.raises(AttributeError, match=f"module 'bonas.{room}' has no attribute 'nonsense'"):
        getattr(bonas, room).nonsense  # noqa: B018


# Names


@pytest.mark.parametrize("name", bonas.__all__)
def test_every_name_is_there(name):
    found = getattr(bonas, name)
    assert getattr(found, "__name__", name).rpartition(".")[2] == name


def test_every_name_is_listed():
    assert set(bonas.__all__) <= set(dir(bonas))


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'bonas' has no attribute 'nonsense'"):
        bonas.nonsense  # noqa: B018


def test_the_version_is_that_of_the_distribution():
    assert bonas.__version__ == importlib.metadata.version("bonas")
