"""Compare the regret of two models beyond 512 observations, from the same first observations."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import bonas
from bonas import surrogates
from bonas.problems import Problem, functions
from bonas.search.output_scales import fit_scales
from bonas.study import SubsetSurrogate
from bonas.surrogates import GPState
from experiments import common, compare


def problem_of(name: str, noise: float) -> Problem:
    """Return a noisy problem by its name and number of columns."""
    made = {
        "hartmann6": lambda: functions.hartmann6,
        "levy8": lambda: functions.levy(8),
        "ackley10": lambda: functions.ackley(10),
    }
    return functions.add_noise(made[name](), noise)


def models(rows: int) -> dict[str, Any]:
    """Return a model through inducing rows, and an exact one of the best and latest rows."""
    return {
        "inducing": surrogates.large_gp(rows=rows, fitted=rows),
        "subset": SubsetSurrogate(surrogates.gp(), rows),
    }


class Runner:
    """Runs of one noisy problem by both models, which compile once."""

    def __init__(self, problem: Problem, noise_free: Problem, config: Any):
        self.config = config
        self.problem = problem
        self.noise_free = noise_free
        self.searches = {
            name: bonas.bayes(problem.space, surrogate=model, initial=config.initial)
            for name, model in models(config.common).items()
        }
        self._step = jax.jit(self._one_step, static_argnums=0)
        self._recommend = jax.jit(self._regret, static_argnums=0)

    def run(self, seed: int) -> dict[str, Any]:
        """Return the regrets and CPU seconds of both models from the same first observations."""
        config, key = self.config, jax.random.key(seed)
        search = self.searches["inducing"]
        state = search.init(key, config.common)
        start = self._advance(search, state, key, 0, config.common)
        found: dict[str, Any] = {"seed": seed}
        for name, search in self.searches.items():
            state = moved(start, search.init(key, max(config.evaluations)))
            begin, first, regrets = time.process_time(), config.common, []
            for last in config.evaluations:
                state = self._advance(search, state, key, first, last)
                regrets.append(float(self._recommend(search, state)))
                first = last
            seconds = time.process_time() - begin
            found[name] = {"regrets": regrets, "cpu_seconds": seconds}
        return found

    def _advance(self, search: Any, state: Any, key: Any, first: int, last: int) -> Any:
        for i in range(first, last):
            state = self._step(search, state, jax.random.fold_in(key, i))
        return state

    def _one_step(self, search: Any, state: Any, key: jax.Array) -> Any:
        ask_key, noise_key = jax.random.split(key)
        x, state, _ = search.ask(ask_key, state)
        y = self.problem.objective(noise_key, x[0])
        return search.tell(state, bonas.Observation(x[0], y))

    def _regret(self, search: Any, state: Any) -> jax.Array:
        data, key = state.observations.data, jax.random.key(0)
        fit = fit_scales(
            search.scales, search.surrogate, key, data=data, states=state.model
        )
        mean = search.surrogate.predict(fit.state, data.x).mean.mean(axis=0)
        best = jnp.argmin(jnp.where(data.mask[:, 0], mean, jnp.inf))
        value = self.noise_free.objective(key, data.x[best])
        return value - self.noise_free.optimum


def moved(state: Any, fresh: Any) -> Any:
    """Return observations and hyperparameters of a state in a larger one of another model."""
    larger = jax.tree.map(
        lambda new, old: new.at[: len(old)].set(old) if new.ndim else old,
        fresh.observations,
        state.observations,
    )
    model: GPState = fresh.model._replace(z=state.model.z, scale=state.model.scale)
    return fresh._replace(observations=larger, design=state.design, model=model)


def compare_regrets(
    config: Any, out: Path, advance: Callable[[str], None]
) -> list[dict]:
    """Run the missing seeds, the first seeds of all problems first, and compare the models."""
    settings = {
        name: [name, noise, config.initial, config.common, list(config.evaluations)]
        for name, noise in config.problems
    }
    saved = {
        name: common.SavedRuns(out / f"large_{name}.jsonl", settings[name])
        for name, _ in config.problems
    }
    runners: dict[str, Runner] = {}
    for seed in range(config.seeds):
        for name, noise in config.problems:
            advance(f"{name}, seed {seed}")
            if seed in saved[name].rows:
                continue
            if name not in runners:
                noise_free = problem_of(name, 0.0)
                runners[name] = Runner(problem_of(name, noise), noise_free, config)
            saved[name].save(runners[name].run(seed))
    return [row for name in saved for row in verdicts(name, saved[name], config)]


def verdicts(name: str, saved: common.SavedRuns, config: Any) -> list[dict]:
    """Compare the regrets of one problem, in pairs of seeds."""
    runs = saved.first(config.seeds)
    if not runs:
        return []
    found = []
    for i, evaluations in enumerate(config.evaluations):
        ours, theirs = (
            np.array([run[model]["regrets"][i] for run in runs])
            for model in ("inducing", "subset")
        )
        found.append(
            {
                "problem": name,
                "evaluations": evaluations,
                "pairs": len(runs),
                "inducing": float(np.median(ours)),
                "subset": float(np.median(theirs)),
                **compare.paired(ours, theirs, config.resamples),
            }
        )
    return found
