"""Runs that are saved as they end, so that a script which was killed goes on where it was."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np


def kept(path: Path, config, make: Callable[[], dict[str, Any]]) -> dict[str, np.ndarray]:
    """The arrays that were saved at a path for this configuration, or are made and saved now."""
    settings = json.dumps(asdict(config))
    if not path.exists() or str(np.load(path)["config"]) != settings:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part.npz")
        np.savez(unfinished, config=settings, **make())
        unfinished.replace(path)  # at once: a file is whole or not there
    return dict(np.load(path))
