"""Time the `gpar` of PyPI for benchmarks.curves on one thread; needs requirements_curves.txt.

    python gpar_curves.py job.json

The job holds curves, candidates and initial hyperparameters. Imports and a short fit are not timed.
Prints one line of JSON for a joint fit of the layers, and one for a fit layer by layer, as in
Hutchinson's scripts.
"""

import contextlib
import io
import json
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from contenders import Clock, tell
from gpar.regression import GPARRegressor

WARM_UP = 2  # iterations of a first fit


def regressor(job: dict) -> GPARRegressor:
    """Return the model of bonas in `gpar`; values are already scaled."""
    start = job["start"]
    return GPARRegressor(
        replace=False,
        impute=False,
        scale=start["lengthscale"],
        scale_tie=True,
        linear=True,
        linear_scale=1.0 / start["slope"],
        nonlinear=False,
        markov=1,
        noise=start["noise"],
        normalize_y=False,
    )


def log_evidence(model: GPARRegressor, x, y) -> float:
    with torch.no_grad():
        return float(model.logpdf(x, y))


def measure(job: dict, x, y, candidates, layered: bool) -> dict:
    with contextlib.redirect_stdout(io.StringIO()):  # hides the progress output
        regressor(job).fit(x, y, fix=layered, iters=WARM_UP)
        model = regressor(job)
        model.condition(x, y)
        start = log_evidence(model, x, y)
        clock = Clock()
        model.fit(x, y, fix=layered, iters=job["iterations"])
        fit, clock = clock.read(), Clock()
        drawn = model.sample(
            candidates, num_samples=job["samples"], latent=True, posterior=True
        )
        sample = clock.read()
    last = np.stack(drawn)[:, :, -1]
    found = {
        name: np.asarray(value).tolist()
        for name, value in model.get_variables().items()
    }
    return {
        "layered": layered,
        "fit": fit,
        "sample": sample,
        "evidence_at_start": start,
        "evidence": log_evidence(model, x, y),
        "variables": found,
        "mean": last.mean(axis=0).tolist(),
        "std": last.std(axis=0).tolist(),
        "version": version("gpar"),
    }


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(job["seed"])
    x, candidates = (np.array(job[name]) for name in ("x", "candidates"))
    y = np.array(
        [[np.nan if value is None else value for value in row] for row in job["y"]]
    )
    for layered in (False, True):
        tell(measure(job, x, y, candidates, layered))


if __name__ == "__main__":
    main()
