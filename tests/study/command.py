"""The `bonas` command in processes of its own, and a table to run it on."""

import subprocess
import sys
from pathlib import Path

import numpy as np

BONAS = Path(sys.executable).with_name("bonas")
SMALL = ["--method", "random", "--trials", "2", "--target", "price", "--impute"]
# Ctrl-C is ignored by processes that were started in the background, such as these tests may be.
HEED_CTRL_C = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"


def houses(path, n=60):
    """A table with numbers, text and gaps."""
    rng = np.random.default_rng(0)
    area, heating = rng.uniform(40, 200, n), rng.choice(["gas", "oil"], n)
    price = 1000 * area + 20_000 * (heating == "oil") + rng.normal(0, 5000, n)
    rows = [f"{a:.1f},{h},{p:.0f}" for a, h, p in zip(area, heating, price, strict=True)]
    rows[3] = f",gas,{price[3]:.0f}"
    path.write_text("area,heating,price\n" + "\n".join(rows) + "\n")


def run(*arguments, folder):
    """The command in a process of its own."""
    return subprocess.run([BONAS, *arguments], cwd=folder, capture_output=True, text=True, timeout=600)


def started(folder, *arguments, **how):
    command = [BONAS, "search", "houses.csv", "--target", "price", "--impute", "--method", "random", *arguments]
    return subprocess.Popen([sys.executable, "-c", HEED_CTRL_C, *command], cwd=folder, text=True, **how)


def wait_for_line(process, start):
    """Until its output has a line that starts so."""
    for line in process.stdout:
        if line.startswith(start):
            return
    raise AssertionError(f"the search ended and never said {start!r}")


def killed(process):
    process.kill()
    process.wait()
    process.stdout.close()
