"""One search by one method: `python practice_contenders.py NAME SEED CONFIG` prints JSON.

All methods search the same networks (hidden layers, widths, learning rate of Adam) on the same
scaled rows, train each for the same number of epochs, and choose by the same validation rows.
"""

import json
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

BEGAN = time.perf_counter()


def rows(seed: int):
    """Return diabetes, split by a seed and scaled by its training part."""
    from bonas.problems import datasets

    return datasets.split(datasets.load("diabetes"), seed)


def bonas_study(config: dict, seed: int) -> dict:
    """Run `Study.optimize` over networks that are trained in one compiled loop."""
    import jax
    import numpy as np

    import bonas
    from bonas import nets
    from bonas.nets import bucket
    from bonas.xla_options import for_long_arrays

    bonas.configure()
    found, layers, widest = rows(seed), config["layers"], config["widths"][1]
    data = nets.examples(
        found.train.x, found.train.y, found.validation.x, found.validation.y
    )
    whole = nets.Shape(
        data.x.shape[1], 1, depth=layers, width=widest, activations=("relu",)
    )
    settings = nets.Settings(
        batch=config["batch"], max_epochs=config["epochs"], checkpoints=config["epochs"]
    )
    space = bonas.Space(
        depth=bonas.Int(1, layers),
        **{
            f"width_{i}": bonas.Int(
                *config["widths"],
                log=True,
                when={"depth": (">=", i)} if i > 1 else None,
            )
            for i in range(1, layers + 1)
        },
        learning_rate=bonas.Float(*config["rates"], log=True),
    )

    @partial(jax.jit, compiler_options=for_long_arrays())
    # data is an argument: one program for all seeds
    def train(key, shape, network, hyper, data, x):
        result = nets.train(key, shape, settings, network, hyper, data)
        return result.final[0], nets.apply(shape, result.params, x, network)[:, 0]

    key = jax.random.key(seed)
    predictions = {}

    def objective(chosen: dict) -> float:
        widths = [chosen.get(f"width_{i}", 0) for i in range(1, layers + 1)]
        network = nets.Architecture(np.array(widths, np.int32), np.int32(0))
        hyper = nets.Hyperparameters(np.float32(chosen["learning_rate"]))
        square, test = train(
            key, bucket(whole, max(widths)), network, hyper, data, found.test.x
        )
        value = math.sqrt(float(square)) * found.scaling.y_scale
        predictions[value] = np.asarray(test)
        return value

    with (
        tempfile.TemporaryDirectory() as folder,
        bonas.Study(Path(folder) / "s.db", space, seed=seed) as study,
    ):
        study.optimize(objective, config["trials"], progress=False)
        best = study.best.value
    return outcome(found, best, predictions[best])


def regressor(config: dict, seed: int, layers: tuple[int, ...], rate: float):
    """Return scikit-learn's network with the given layers, learning rate and epochs."""
    from sklearn.neural_network import MLPRegressor

    return MLPRegressor(
        hidden_layer_sizes=layers,
        learning_rate_init=rate,
        max_iter=config["epochs"],
        random_state=seed,
    )


def optuna_tpe(config: dict, seed: int) -> dict:
    """Run Optuna's default sampler over scikit-learn's network."""
    import numpy as np
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    found = rows(seed)
    fitted = {}

    def objective(trial) -> float:
        depth = trial.suggest_int("depth", 1, config["layers"])
        layers = tuple(
            trial.suggest_int(f"width_{i}", *config["widths"], log=True)
            for i in range(1, depth + 1)
        )
        model = regressor(
            config,
            seed,
            layers,
            trial.suggest_float("rate", *config["rates"], log=True),
        )
        model.fit(found.train.x, found.train.y)
        away = model.predict(found.validation.x) - found.validation.y
        fitted[trial.number] = model
        return float(np.sqrt(np.mean(away**2))) * found.scaling.y_scale

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(objective, n_trials=config["trials"])
    return outcome(
        found, study.best_value, fitted[study.best_trial.number].predict(found.test.x)
    )


def random_search(config: dict, seed: int) -> dict:
    """Run RandomizedSearchCV over scikit-learn's network with one split."""
    import numpy as np
    from scipy.stats import loguniform
    from sklearn.model_selection import PredefinedSplit, RandomizedSearchCV

    found = rows(seed)
    rng = np.random.default_rng(seed)
    low, high = (math.log(end) for end in config["widths"])
    shapes = [
        tuple(
            round(math.exp(width))
            for width in rng.uniform(
                low, high, size=rng.integers(1, config["layers"] + 1)
            )
        )
        for _ in range(1000)
    ]
    x, y = (
        np.concatenate([getattr(found.train, part), getattr(found.validation, part)])
        for part in ("x", "y")
    )
    fold = np.concatenate(
        [np.full(len(found.train.x), -1), np.zeros(len(found.validation.x))]
    )
    search = RandomizedSearchCV(
        regressor(config, seed, (64,), 1e-3),
        {
            "hidden_layer_sizes": shapes,
            "learning_rate_init": loguniform(*config["rates"]),
        },
        n_iter=config["trials"],
        scoring="neg_root_mean_squared_error",
        cv=PredefinedSplit(fold),
        refit=False,
        random_state=seed,
    ).fit(x, y)
    best = regressor(
        config,
        seed,
        search.best_params_["hidden_layer_sizes"],
        search.best_params_["learning_rate_init"],
    )
    predicted = best.fit(found.train.x, found.train.y).predict(found.test.x)
    return outcome(found, -search.best_score_ * found.scaling.y_scale, predicted)


def outcome(found, best: float, predicted) -> dict:
    """Return the lowest validation error and the test error of the same network."""
    import numpy as np

    test = (
        float(np.sqrt(np.mean((predicted - found.test.y) ** 2))) * found.scaling.y_scale
    )
    seconds = {
        "seconds": time.perf_counter() - BEGAN,
        "processor_seconds": time.process_time(),
    }
    return {"validation": float(best), "test": test, **seconds}


CONTENDERS: dict[str, Callable[[dict, int], dict]] = {
    "bonas": bonas_study,
    "optuna": optuna_tpe,
    "random search": random_search,
}


if __name__ == "__main__":
    # scikit-learn warns about networks that could train longer
    warnings.filterwarnings("ignore")
    name, seed, config = sys.argv[1:]
    print(json.dumps(CONTENDERS[name](json.loads(config), int(seed))))
