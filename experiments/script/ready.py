"""What an experiment does before its first number."""

from pathlib import Path

import matplotlib.pyplot as plt

import bonas


def begin(out: Path) -> None:
    """Set bonas up, draw figures into files alone, and make the folder of the results."""
    bonas.configure()
    plt.switch_backend("Agg")
    out.mkdir(parents=True, exist_ok=True)
