"""Run the other libraries of benchmarks.search as recommended; needs requirements.txt, not bonas.

    python contenders.py run optuna forrester points.json --seeds 0 1 2 --evaluations 40
    python contenders.py suggest points.json --sizes 50 100

Every library searches the unit cube from the points of points.json, on one thread and in float64,
except Hyperoptax, whose candidates are always float32. Imports and a short first run are not timed.
Each run prints one line of JSON as soon as it ends.
"""

import argparse
import json
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

SETTINGS = {
    "botorch": "SingleTaskGP with Standardize, LogExpectedImprovement, "
    "optimize_acqf(num_restarts=10, raw_samples=512)",
    "optuna": "GPSampler, defaults but for n_startup_trials, the number of common points",
    "hyperoptax": "BayesianSearch(Matern(nu=2.5), EI(), n_parallel=1), defaults otherwise; "
    "vmap of optimize_scan, float32",
}
PACKAGES = (
    "botorch",
    "gpytorch",
    "hyperoptax",
    "jax",
    "numpy",
    "optuna",
    "scipy",
    "torch",
)
WARM_UP = 2  # suggestions of the run before the clock starts
# Calls of a contender that runs all seeds in one call and so has one time, not fifty; the median is
# reported.
CALLS = 5
HARTMANN_SCALES = [
    [10, 3, 17, 3.5, 1.7, 8],
    [0.05, 10, 17, 0.1, 8, 14],
    [3, 3.5, 1.7, 10, 17, 8],
    [17, 8, 0.05, 10, 0.1, 14],
]
HARTMANN_CENTERS = [
    [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
    [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
    [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
    [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
]


def forrester(u, xp=np):
    return (6.0 * u[0] - 2.0) ** 2 * xp.sin(12.0 * u[0] - 4.0)


def rosenbrock(u, xp=np):
    x, y = 4.096 * u[0] - 2.048, 4.096 * u[1] - 2.048
    return 100.0 * (y - x**2) ** 2 + (1.0 - x) ** 2


def mccormick(u, xp=np):
    x, y = 5.5 * u[0] - 1.5, 7.0 * u[1] - 3.0
    return xp.sin(x + y) + (x - y) ** 2 - 1.5 * x + 2.5 * y + 1.0


def six_hump_camel(u, xp=np):
    x, y = 6.0 * u[0] - 3.0, 4.0 * u[1] - 2.0
    return (4.0 - 2.1 * x**2 + x**4 / 3.0) * x**2 + x * y + (4.0 * y**2 - 4.0) * y**2


def hartmann6(u, xp=np):
    scales, centers, weights = (
        xp.asarray(HARTMANN_SCALES),
        xp.asarray(HARTMANN_CENTERS),
        xp.asarray([1.0, 1.2, 3.0, 3.2]),
    )
    return -weights @ xp.exp(-xp.sum(scales * (u - centers) ** 2, axis=1))


# Functions on the unit cube
FUNCTIONS = {
    f.__name__: f for f in (forrester, rosenbrock, mccormick, six_hump_camel, hartmann6)
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["run", "suggest", "versions"])
    parser.add_argument(
        "names",
        nargs="*",
        help="run: contender, function, file of points; suggest: file of points",
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--evaluations", type=int, default=40)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 100])
    parser.add_argument(
        "--count", type=int, default=10, help="suggestions timed around every size"
    )
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    if args.what == "versions":
        tell({name: version(name) for name in PACKAGES})
    elif args.what == "suggest":
        suggestions(json.loads(Path(args.names[0]).read_text()), args.sizes, args.count)
    else:
        contender, function, file = args.names
        points = json.loads(Path(file).read_text())[function]
        CONTENDERS[contender](
            FUNCTIONS[function],
            {seed: np.array(points[seed]) for seed in args.seeds},
            args.evaluations,
        )


def tell(row: dict) -> None:
    print(json.dumps(row, allow_nan=False), flush=True)


class Clock:
    """Measure wall-clock and CPU seconds since its creation."""

    def __init__(self):
        self.wall, self.processor = time.perf_counter(), time.process_time()

    def read(self, runs: int = 1) -> dict:
        return {
            "seconds": (time.perf_counter() - self.wall) / runs,
            "cpu_seconds": (time.process_time() - self.processor) / runs,
        }


def all_at_once(call, runs: int) -> tuple[Any, dict]:
    """Return the result of a compiled call that does many runs, and the warm time per run."""
    clock = Clock()
    result = call()
    compiling, spent = clock.read()["seconds"], []
    for _ in range(CALLS):
        clock = Clock()
        result = call()
        spent.append(clock.read(runs))
    return result, {
        name: float(np.median([one[name] for one in spent])) for name in spent[0]
    } | {"first_call_seconds": compiling}


def one_by_one(search, function, points: dict, evaluations: int) -> None:
    """Run search(function, first, evaluations, seed) for every seed, after a short warm-up."""
    first = next(iter(points.values()))
    search(function, first, len(first) + WARM_UP, 0)
    for seed, first in points.items():
        clock = Clock()
        values = search(function, first, evaluations, seed)
        tell(
            {
                "seed": seed,
                "best": np.minimum.accumulate(values).tolist(),
                **clock.read(),
            }
        )


def botorch(function, points: dict, evaluations: int) -> None:
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)

    def search(function, first, evaluations, seed):
        torch.manual_seed(seed)
        x = torch.tensor(first, dtype=torch.float64)
        values = [float(function(row)) for row in first]
        bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, x.shape[1])
        while len(values) < evaluations:
            y = -torch.tensor(values, dtype=torch.float64)[:, None]  # BoTorch maximizes
            model = SingleTaskGP(x, y, outcome_transform=Standardize(m=1))
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            acquisition = LogExpectedImprovement(model, best_f=y.max())
            new, _ = optimize_acqf(
                acquisition, bounds=bounds, q=1, num_restarts=10, raw_samples=512
            )
            x = torch.cat([x, new])
            values.append(float(function(new[0].numpy())))
        return values

    one_by_one(search, function, points, evaluations)


def optuna_study(first, seed: int):
    """Return a study of the unit cube whose GP takes over after the first points."""
    import optuna
    import torch

    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study(
        sampler=optuna.samplers.GPSampler(seed=seed, n_startup_trials=len(first))
    )


def suggest(trial, columns: int) -> list[float]:
    return [trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(columns)]


def optuna(function, points: dict, evaluations: int) -> None:
    def search(function, first, evaluations, seed):
        study = optuna_study(first, seed)
        for row in first:
            study.enqueue_trial({f"x{i}": float(value) for i, value in enumerate(row)})
        study.optimize(
            lambda trial: float(function(np.array(suggest(trial, first.shape[1])))),
            n_trials=evaluations,
        )
        return [trial.value for trial in study.trials]

    one_by_one(search, function, points, evaluations)


def hyperoptax(function, points: dict, evaluations: int) -> None:
    """Run all seeds in one vmapped scan, as the library recommends."""
    import jax
    import jax.numpy as jnp
    from hyperoptax import EI, BayesianSearch, LinearSpace, Matern

    first = jnp.asarray(np.stack(list(points.values())))
    count, d = first.shape[1:]
    space = {f"x{i}": LinearSpace(0.0, 1.0) for i in range(d)}
    empty, optimizer = BayesianSearch.init(
        space,
        n_max=evaluations,
        kernel=Matern(length_scale=1.0, nu=2.5),
        acquisition=EI(),
        n_parallel=1,
        maximize=False,
    )

    def objective(key, config):
        return function(jnp.stack([config[name] for name in space]), jnp)

    def search(key, first):
        state = empty
        for row in first:
            config = {name: row[i : i + 1] for i, name in enumerate(space)}
            state = optimizer.update_state(state, key, objective(key, config), config)
        _, (_, values) = optimizer.optimize_scan(
            state, key, objective, n_iterations=evaluations - count
        )
        known = jax.vmap(lambda row: function(row, jnp))(first)
        all_values = jnp.concatenate([known, values[:, 0]])
        return jax.lax.cummin(jnp.where(jnp.isfinite(all_values), all_values, jnp.inf))

    compiled, keys = (
        jax.jit(jax.vmap(search)),
        jax.vmap(jax.random.key)(jnp.asarray(list(points))),
    )
    best, spent = all_at_once(
        lambda: np.asarray(compiled(keys, first), float), len(points)
    )
    for seed, curve in zip(points, best, strict=True):
        tell({"seed": seed, "best": curve.tolist(), **spent})


def suggestions(points: dict, sizes: list[int], count: int) -> None:
    """Time Optuna's suggestions on Hartmann 6 around every size."""
    from optuna.distributions import FloatDistribution
    from optuna.trial import create_trial

    function, known = FUNCTIONS["hartmann6"], np.array(points["hartmann6"])
    box = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(known.shape[1])}
    for n in sizes:
        study, clocks = optuna_study(known[:5], 0), []
        for row in known[: n - count // 2]:
            params = dict(zip(box, map(float, row), strict=True))
            study.add_trial(
                create_trial(
                    params=params, distributions=box, value=float(function(row))
                )
            )
        for _ in range(count):
            clock = Clock()
            trial = study.ask()
            x = suggest(trial, len(box))
            clocks.append(clock.read())
            study.tell(trial, float(function(np.array(x))))
        warm = clocks[1:]  # the first suggestion has no fit to start from
        tell(
            {
                "n": n,
                **{name: float(np.median([c[name] for c in warm])) for name in warm[0]},
            }
        )


CONTENDERS = {"botorch": botorch, "optuna": optuna, "hyperoptax": hyperoptax}


if __name__ == "__main__":
    main()
