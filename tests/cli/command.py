"""Run the `bonas` command in a process, and make a table for it."""

import subprocess
import sys
from pathlib import Path

import numpy as np

BONAS = Path(sys.executable).with_name("bonas")
SMALL = ["--method", "random", "--trials", "2", "--target", "price", "--impute"]
# Processes that are started in the background ignore Ctrl-C; this program restores the default.
ALLOW_CTRL_C = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


def houses(path, n=60):
    """Write a table with numbers, text and a missing value."""
    rng = np.random.default_rng(0)
    area, heating = rng.uniform(40, 200, n), rng.choice(["gas", "oil"], n)
    price = 1000 * area + 20_000 * (heating == "oil") + rng.normal(0, 5000, n)
    rows = [
        f"{a:.1f},{h},{p:.0f}" for a, h, p in zip(area, heating, price, strict=True)
    ]
    rows[3] = f",gas,{price[3]:.0f}"
    path.write_text("area,heating,price\n" + "\n".join(rows) + "\n")


def run(*arguments, folder):
    """Run the command in a process."""
    return subprocess.run(
        [BONAS, *arguments], cwd=folder, capture_output=True, text=True, timeout=600
    )


def start_search(folder, *arguments, **options):
    """Start a random search in a process."""
    command = [
        BONAS,
        "search",
        "houses.csv",
        "--target",
        "price",
        "--impute",
        "--method",
        "random",
        *arguments,
    ]
    return subprocess.Popen(
        [sys.executable, "-c", ALLOW_CTRL_C, *command], cwd=folder, text=True, **options
    )


def wait_for_line(process, start):
    """Read the output of a process up to a line with this start."""
    for line in process.stdout:
        if line.startswith(start):
            return
    raise AssertionError(f"the output has no line that starts with {start!r}")


def kill(process):
    """Kill a process and wait for its end."""
    process.kill()
    process.wait()
    process.stdout.close()
