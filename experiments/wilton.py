"""Does Bayesian optimisation find Wilton's ensembles, or better ones? His two experiments, figures 3 to 8 (W-E1, W-E2).

A search over designs (L, D, N, p): hidden layers, their width, networks in the ensemble, and the chance that a weight exists.
Wilton's best designs were (5, 15, 23, 0.949) at iteration 13 of the first experiment and (7, 7, 30, 0.73) at iteration 3 of
the second. No losses are stated, so his design and the one found here are both trained anew, ten times, by the same code on
the same training rows, and scored on new test rows: the luck of the search does not count. In the median over seeds, each
with data and a search of its own, the design found must do at least as well. "Found" is what Wilton takes, the least test
loss of the search; beside it stands the design that the model recommends, whose posterior mean is least.

Not stated, and chosen: five initial designs ("iteration 0" is the best of them), a test set as large as the training set, and
what `bonas.problems.wilton` says. A tenth of Wilton's 5000 hyperparameter samples is the default; --full takes them all.
"""

import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ensembles import figures
from ensembles.verdict import best, number, report, summarise
from jax import Array
from script import flags, progress, ready, record

import bonas
from bonas.nets import ensemble, views
from bonas.problems import wilton


@dataclass(frozen=True)
class Config:
    seeds: int = 8  # asked for; each has its own data and its own search
    samples: int = 500  # of the hyperparameters, where 5000 are stated: a tenth of the time, and EI is an average over them
    initial: int = 5  # not stated; as many as searches begin with here
    retrainings: int = 10  # asked for: of the design found and of Wilton's
    test_rows: int = 2000  # new ones for the verdict: a loss is then known to 1.6 per cent, and both designs see the same
    others: int = 2  # retrainings of the design found with other views of the data: this only illustrates
    grid: int = 500  # points of a fit that is drawn, and against which errors near jumps are measured
    near: float = 0.5  # a point is near a jump within this: three or so training rows on either side
    shown: int = 0  # the seed of the figures: the first, not a chosen one
    epochs: int | None = None  # None: as stated
    depth: int | None = None
    members: int | None = None
    iterations: int | None = None


SMOKE = Config(
    seeds=1, samples=4, initial=2, retrainings=2, test_rows=20, others=1, grid=50, epochs=20, depth=2, members=3, iterations=2
)
# What members see in place of everything. There is one input, so no random features; and the second function has no jumps.
VIEWS = {1: {"bootstrap": views.bootstrap, "pieces": views.pieces()}, 2: {"bootstrap": views.bootstrap}}


class Evaluation(NamedTuple):
    """One ensemble."""

    loss: Array  # () Euclidean distance on the test rows
    counted: Array  # () int: members that were not left out
    mean: Array  # (grid,)
    std: Array  # (grid,)


def experiment_of(config: Config, number: int) -> wilton.Experiment:
    """The experiment, smaller where the config says so."""
    chosen = wilton.EXPERIMENTS[number - 1]
    depth, width, members, density = chosen.published
    deepest, most = config.depth or chosen.depth, config.members or chosen.members
    return replace(
        chosen,
        depth=deepest,
        members=most,
        max_epochs=config.epochs or chosen.max_epochs,
        iterations=config.iterations or chosen.iterations,
        published=(min(depth, deepest), width, min(members, most), density),
    )


def grid(config: Config, experiment: wilton.Experiment) -> np.ndarray:
    return np.linspace(experiment.low, experiment.high, config.grid, dtype=np.float32)


@jax.jit
def evaluate(experiment, key, u, data, x, seen) -> Evaluation:
    """The ensemble of the design u: its loss, and its fit at x (grid, 1)."""
    found = wilton.train(experiment, key, experiment.design(u), data, seen)
    mean, std = ensemble.predict(found, x)
    return Evaluation(wilton.loss_of(found, data), found.counted.sum(), mean[:, 0], std[:, 0])


def searched(config: Config, experiment: wilton.Experiment, key: Array, data, tick) -> list[dict]:
    """One search: every design that was tried, its loss, and its fit."""
    search = wilton.search(experiment, samples=config.samples, initial=config.initial)
    ask, tell = jax.jit(search.ask), jax.jit(search.tell)
    x, space = jnp.asarray(grid(config, experiment))[:, None], experiment.space
    steps = config.initial + experiment.iterations
    init_key, run_key = jax.random.split(key)
    state, trials = search.init(init_key, steps), []
    for i in range(steps):
        ask_key, train_key = jax.random.split(jax.random.fold_in(run_key, i))
        start = time.perf_counter()
        u, state, info = jax.block_until_ready(ask(ask_key, state))
        asked = time.perf_counter()
        made = jax.block_until_ready(evaluate(experiment, train_key, u[0], data, x, views.everything))
        trial = bonas.Trial(u[0], made.loss.astype(u.dtype), jnp.asarray(0), jnp.asarray(1.0), jnp.isfinite(made.loss))
        state = tell(state, trial)
        trials.append(
            {
                "iteration": max(i - config.initial + 1, 0),
                "design": space.decode(u[0]),
                "u": u[0].tolist(),
                "loss": number(made.loss),
                "counted": int(made.counted),
                "fallback": int(info.fallback),
                "seconds_to_ask": round(asked - start, 3),
                "seconds_to_train": round(time.perf_counter() - asked, 3),
                "fit": {"mean": rounded(made.mean), "std": rounded(made.std)},
            }
        )
        tick()
    return trials


def rounded(values) -> list[float | None]:
    return [None if number(value) is None else round(float(value), 3) for value in np.asarray(values)]


def error_near_jumps(config: Config, experiment: wilton.Experiment, mean: np.ndarray) -> float | None:
    """Root mean square error of a fit (grid,) against the function without noise."""
    if not experiment.jumps:
        return None
    x = grid(config, experiment)
    here = (np.abs(x[:, None] - np.array(experiment.jumps)[None, :]) < config.near).any(axis=1)
    return number(np.sqrt(np.mean((np.asarray(mean) - experiment.truth(x))[here] ** 2)))


def known(config: Config, seed: int, path: Path) -> dict:
    """What is in a seed's file, if that was made with the same settings."""
    mine = json.loads(json.dumps(asdict(replace(config, seeds=0))))
    entry = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return entry if entry.get("config") == mine else {"config": mine, "seed": seed}


def keys(seed: int) -> Array:
    """Of the data, the search, the new test rows, the retrainings and the recommendation."""
    return jax.random.split(jax.random.key(seed), 5)


def search_seed(config: Config, experiment: wilton.Experiment, seed: int, path: Path, tick) -> None:
    """The search of one seed, saved with the design that a model of all losses recommends."""
    entry = known(config, seed, path)
    data_key, search_key, _, _, model_key = keys(seed)
    if "trials" in entry:
        tick(len(entry["trials"]))
    else:
        entry["trials"] = searched(config, experiment, search_key, experiment.data(data_key), tick)
    if "recommended" not in entry:
        x, y = ([trial[name] for trial in entry["trials"]] for name in ("u", "loss"))
        entry["recommended"] = wilton.recommend(model_key, x, np.array(y, float), samples=config.samples)
        save(entry, path)


def retrain_seed(config: Config, experiment: wilton.Experiment, others: dict, seed: int, path: Path, tick) -> dict:
    """The designs trained anew and scored on new test rows, saved one by one; what is in the file is not done again."""
    entry = known(config, seed, path)
    data_key, _, fresh_key, retrain_key, _ = keys(seed)
    fresh = experiment.data(fresh_key, test=config.test_rows)
    data = experiment.data(data_key)._replace(valid_x=fresh.valid_x, valid_y=fresh.valid_y)
    x, trials = jnp.asarray(grid(config, experiment))[:, None], entry["trials"]
    found = jnp.asarray(best(trials)["u"])
    published = experiment.space.encode(dict(zip(experiment.space.names, experiment.published, strict=True)))
    wanted = {
        "found": (found, views.everything, config.retrainings),
        "published": (published, views.everything, config.retrainings),
        "recommended": (jnp.asarray(trials[entry["recommended"]]["u"]), views.everything, config.retrainings),
    }
    wanted |= {name: (found, seen, config.others) for name, seen in others.items()}
    retrained = entry.setdefault("retrained", {})
    for name, (u, seen, times) in wanted.items():
        rows = retrained.setdefault(name, [])
        if name == "recommended" and (u == found).all():
            rows[:] = retrained["found"]
        tick(len(rows))
        for i in range(len(rows), times):
            made = evaluate(experiment, jax.random.fold_in(retrain_key, i), u, data, x, seen)
            rows.append({"loss": number(made.loss), "near_jumps": error_near_jumps(config, experiment, made.mean)})
            save(entry, path)
            tick()
    save(entry, path)
    return entry


def save(entry: dict, path: Path) -> None:
    """All of it or nothing, so that a kill leaves a file that can be read."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(entry, allow_nan=False) + "\n", encoding="utf-8")
    part.replace(path)


def main() -> None:
    parser = flags.parser(
        __doc__, "wilton", smoke="a few seconds: one seed of tiny ensembles", seeds=f"searches (default {Config.seeds})"
    )
    parser.add_argument("--experiment", type=int, choices=(1, 2), help="one of the two (default: both)")
    parser.add_argument("--full", action="store_true", help="Wilton's 5000 hyperparameter samples")
    given, config = flags.read(parser, Config(), SMOKE)
    config = replace(config, samples=5000 if given.full else config.samples)

    ready.begin(given.out)
    for chosen in (1, 2) if given.experiment is None else (given.experiment,):
        experiment, folder = experiment_of(config, chosen), given.out / f"wilton_{chosen}"
        folder.mkdir(parents=True, exist_ok=True)
        each = config.initial + experiment.iterations + 3 * config.retrainings + len(VIEWS[chosen]) * config.others
        paths = [folder / f"seed_{seed}.json" for seed in range(config.seeds)]
        with progress.bar() as bar:
            task = bar.add_task(f"experiment {chosen}: ensembles", total=each * config.seeds)

            def tick(n=1):
                bar.advance(task, n)

            for seed, path in enumerate(paths):
                search_seed(config, experiment, seed, path, tick)
            records = [retrain_seed(config, experiment, VIEWS[chosen], seed, path, tick) for seed, path in enumerate(paths)]
        summary = summarise(experiment, records, test_rows=config.test_rows, others=config.others)
        record.write(given.out / f"wilton_{chosen}.json", {**record.about(), "config": asdict(config), "results": summary})
        shown = records[config.shown]
        data = experiment.data(keys(config.shown)[0])
        figures.draw(chosen, experiment, grid(config, experiment), data, shown["trials"], summary, records, given.out)
        report(chosen, summary)
    print(f"figures and numbers are in {given.out}")


if __name__ == "__main__":
    main()
