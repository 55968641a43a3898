"""Array shapes in annotations are true: tests marked `typed` run once more with every call checked.

The check needs an import hook before bonas is imported, so it runs in a process of its own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.skipif("BONAS_TYPECHECK" in os.environ, reason="this is that process")
def test_annotated_shapes_hold_at_run_time():
    # Other files may pass wrong types on purpose while they are collected.
    files = [
        path
        for path in ROOT.glob("tests/**/test_*.py")
        if "@pytest.mark.typed" in path.read_text()
    ]
    files.remove(Path(__file__))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "typed",
        "-p",
        "no:cacheprovider",
    ]
    environment = os.environ | {"BONAS_TYPECHECK": "1"}
    done = subprocess.run(
        [*command, *files], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
