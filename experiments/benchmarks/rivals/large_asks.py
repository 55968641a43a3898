"""Time asks of BoTorch and Optuna after many observations; needs requirements.txt, not bonas.

    python large_asks.py points.json --most 30

points.json has the keys "x" (n, d), "y" (n,) and "sizes". Every library gets the first rows,
searches the unit cube on one thread and uses the settings of contenders.py. A library stops after
the first ask that takes more than --most seconds of CPU. Each ask prints one line of JSON.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from contenders import optuna_study, suggest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("points", type=Path)
    parser.add_argument("--most", type=float, default=30.0)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    given = json.loads(args.points.read_text())
    x, y = np.array(given["x"]), np.array(given["y"])
    for name, ask in (("botorch", botorch_ask), ("optuna", optuna_ask)):
        ask(x[:10], y[:10])  # imports are not timed
        for n in given["sizes"]:
            seconds = ask(x[:n], y[:n])
            row = {"model": name, "n": n, "d": x.shape[1], "cpu_seconds": seconds}
            print(json.dumps(row), flush=True)
            if seconds > args.most:
                break


def botorch_ask(x: np.ndarray, y: np.ndarray) -> float:
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    torch.manual_seed(0)
    begin = time.process_time()
    values = -torch.tensor(y)[:, None]  # BoTorch maximizes
    model = SingleTaskGP(torch.tensor(x), values, outcome_transform=Standardize(m=1))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    acquisition = LogExpectedImprovement(model, best_f=values.max())
    bounds = torch.tensor([[0.0], [1.0]]).double().expand(2, x.shape[1])
    optimize_acqf(acquisition, bounds=bounds, q=1, num_restarts=10, raw_samples=512)
    return time.process_time() - begin


def optuna_ask(x: np.ndarray, y: np.ndarray) -> float:
    from optuna.distributions import FloatDistribution
    from optuna.trial import create_trial

    study = optuna_study(x[:5], 0)
    box = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(x.shape[1])}
    for row, value in zip(x, y, strict=True):
        params = dict(zip(box, map(float, row), strict=True))
        study.add_trial(
            create_trial(params=params, distributions=box, value=float(value))
        )
    begin = time.process_time()
    suggest(study.ask(), len(box))
    return time.process_time() - begin


if __name__ == "__main__":
    main()
