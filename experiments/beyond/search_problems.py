"""The problems of beyond.search_defaults, each in a choosing or a confirming half."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import bonas
from bonas.problems import datasets, functions
from bonas.search import History
from experiments.beyond import search_networks
from experiments.common import load_or_compute

CHOOSE = "choose"
CONFIRM = "confirm"
PARTS = (CHOOSE, CONFIRM)

NETWORKS = "small networks"
NEAREST = "small networks, nearest row"
LCBENCH = "LCBench"
FUNCTIONS = "functions"
NAS = "NAS-Bench"
SEEDS_APART = 1000  # between the first seeds of two tables of one space
KINDS = (NETWORKS, NEAREST, LCBENCH, FUNCTIONS, NAS)

# Of the 24 sets at hand, sorted: six at even positions, and six at odd ones.
LCBENCH_SETS = {
    CHOOSE: (
        "Amazon_employee_access",
        "MiniBooNE",
        "albert",
        "car",
        "credit-g",
        "fabert",
    ),
    CONFIRM: (
        "Fashion-MNIST",
        "adult",
        "bank-marketing",
        "connect-4",
        "dionis",
        "helena",
    ),
}
LCBENCH_SPACE = bonas.Space(
    batch=bonas.Int(16, 512, log=True),
    learning_rate=bonas.Float(1e-4, 1e-1, log=True),
    momentum=bonas.Float(0.1, 0.99),
    weight_decay=bonas.Float(1e-5, 1e-1),
    layers=bonas.Int(1, 4),
    units=bonas.Int(64, 1024, log=True),
    dropout=bonas.Float(0.0, 1.0),
)
MACRO_SPACE = bonas.Space(
    **{f"layer{i}": bonas.Choice("0", "1", "2") for i in range(8)}
)
CELL_SPACE = bonas.Space(**{f"edge{i}": bonas.Choice(*"01234") for i in range(6)})
SOURCES = {
    "lcbench": "LCBench, github.com/automl/LCBench, as arrays x (2000, 7), loss (2000, epochs)",
    "nas": "NAS-Bench-Macro, github.com/xiusu/NAS-Bench-Macro, and NAS-Bench-201",
}


@dataclass(frozen=True)
class LookUp:
    """An objective that looks up a random training of the row of a table (m, trainings)."""

    space: bonas.TableSpace

    def row(self, u: Array) -> Array:
        return self.space.row(u)

    def __call__(self, key: Array, u: Array, table: Array) -> Array:
        return table[self.row(u), jax.random.randint(key, (), 0, table.shape[1])]


@dataclass(frozen=True)
class LookUpMacro(LookUp):
    """The same for all networks of eight ternary layers, sorted."""

    space: bonas.Space

    def row(self, u: Array) -> Array:
        return (jnp.round(2.0 * u) @ 3.0 ** np.arange(7, -1, -1)).astype(int)


class Case(NamedTuple):
    """A problem: a function, or a table of errors or losses."""

    name: str
    kind: str
    part: str
    space: bonas.Space
    objective: Callable
    tables: tuple[np.ndarray, ...]  # empty for a function
    optimum: float
    typical: float  # the median of random points
    # The first seed: others for each table of a space, whose searches would start alike
    first: int = 0

    def regret(self, history: History) -> np.ndarray:
        """Return the regret (runs, steps) of the best point so far; 1 for the typical value.

        The best point is the one with the lowest observed value. If trainings differ, the mean of
        the trainings of this point counts.
        """
        y = np.asarray(history.y, float)
        values = y
        if self.tables:
            rows = self.objective.row(
                jnp.asarray(history.x).reshape(-1, self.space.dim)
            )
            values = self.tables[0].mean(axis=1)[np.asarray(rows)].reshape(y.shape)
        lowest = np.minimum.accumulate(y, axis=1)
        steps = np.arange(y.shape[1])
        new = np.diff(lowest, axis=1, prepend=np.inf) < 0.0
        first = np.maximum.accumulate(np.where(new, steps, 0), axis=1)
        found = np.take_along_axis(values, first, axis=1)
        return (found - self.optimum) / (self.typical - self.optimum)


def table_case(
    name: str,
    kind: str,
    part: str,
    objective: LookUp,
    table: np.ndarray,
    number: int = 0,
) -> Case:
    """Return the problem of a table; `number` is its position among those of one space."""
    table = np.asarray(table, float).reshape(len(table), -1)
    means = table.mean(axis=1)
    low, middle = float(means.min()), float(np.median(means))
    return Case(
        name,
        kind,
        part,
        objective.space,
        objective,
        (table,),
        low,
        middle,
        first=SEEDS_APART * number,
    )


def cases_of(config, part: str, kind: str, folder) -> list[Case]:
    """Return the problems of a kind in one of the two halves."""
    if kind in (NETWORKS, NEAREST):
        return network_cases(config, part, kind, folder)
    if kind == LCBENCH:
        return lcbench_cases(part)
    if kind == FUNCTIONS:
        names = config.functions[PARTS.index(part)]
        return [function_case(FUNCTION[name], part) for name in names]
    return [macro_case() if part == CHOOSE else cell_case()]


# Tables at hand


def load(folder: str, file: str) -> dict[str, np.ndarray]:
    """Load a table from the folder BONAS_DATA."""
    path = datasets.find(f"{folder}/{file}.npz")
    if path is None:
        raise FileNotFoundError(
            f"expected {folder}/{file}.npz in the folder {datasets.FOLDER_VARIABLE}: "
            f"{SOURCES[folder]}"
        )
    return dict(np.load(path, allow_pickle=False))


def lcbench_cases(part: str) -> list[Case]:
    """Return the validation losses after the last epoch; all sets have the same configurations."""
    files = {name: load("lcbench", name) for name in LCBENCH_SETS[part]}
    columns = next(iter(files.values()))["x"].T
    unit = [
        parameter.unit(jnp.asarray(column))
        for parameter, column in zip(
            LCBENCH_SPACE.parameters.values(), columns, strict=True
        )
    ]
    rows = LCBENCH_SPACE.snap(jnp.clip(jnp.stack(unit, axis=1), 0.0, 1.0))
    objective, kept = distinct(LCBENCH_SPACE, np.asarray(rows))
    return [
        table_case(name, LCBENCH, part, objective, file["loss"][kept, -1], i)
        for i, (name, file) in enumerate(files.items())
    ]


def distinct(space: bonas.Space, rows: np.ndarray) -> tuple[LookUp, np.ndarray]:
    """Return the objective on the distinct rows, and their positions."""
    _, first = np.unique(rows.round(6), axis=0, return_index=True)
    kept = np.sort(first)
    return LookUp(bonas.TableSpace(space, rows[kept])), kept


def macro_case() -> Case:
    """Return NAS-Bench-Macro: three trainings of each network, of which a look-up draws one."""
    file = load("nas", "nasbench_macro_cifar10")
    order = np.lexsort(file["layers"].T[::-1])
    return table_case(
        "NAS-Bench-Macro",
        NAS,
        CHOOSE,
        LookUpMacro(MACRO_SPACE),
        -file["accuracy"][order],
    )


def cell_case() -> Case:
    """Return NAS-Bench-201: the validation error of distinct cells."""
    file = load("nas", "nasbench201_cifar10")
    rows = file["edges"] / 4.0  # options of a Choice are evenly spaced
    objective = LookUp(bonas.TableSpace(CELL_SPACE, rows))
    return table_case("NAS-Bench-201", NAS, CONFIRM, objective, -file["accuracy"])


# Small networks for classification, trained here


def network_cases(config, part: str, kind: str, folder) -> list[Case]:
    """Return tables of networks.

    The space has their rows only or, for `NEAREST`, any configuration, whose nearest row counts.
    """
    space = search_networks.SPACE
    drawn = space.sample(jax.random.key(7), config.networks)
    objective, _ = distinct(space, np.asarray(space.snap(drawn)))
    cases = []
    for number, name in enumerate(config.network_sets[PARTS.index(part)]):
        made = load_or_compute(
            folder / "tables" / f"{name}_{config.networks}.npz",
            config.training,
            lambda name=name: {
                "error": search_networks.train(config.training, name, objective.space)
            },
        )
        case = table_case(name, kind, part, objective, made["error"], number)
        if kind == NEAREST:
            case = case._replace(name=f"{name}, nearest row", space=space)
        cases.append(case)
    return cases


# Functions


def rastrigin(x: Array) -> Array:
    return jnp.sum(x**2 - 10.0 * jnp.cos(2.0 * jnp.pi * x) + 10.0)


def griewank(x: Array) -> Array:
    root = jnp.sqrt(jnp.arange(1, len(x) + 1))
    return 1.0 + jnp.sum(x**2) / 400.0 - jnp.prod(jnp.cos(x / root))


def styblinski_tang(x: Array) -> Array:
    return 0.5 * jnp.mean(x**4 - 16.0 * x**2 + 5.0 * x)


def log_rosenbrock(x: Array) -> Array:
    valleys = 100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2
    return jnp.log1p(jnp.sum(valleys))


def on_box(
    name: str, formula: Callable, d: int, low: float, high: float, best: float
) -> functions.Problem:
    """Make a function whose minimum is at (best, …, best); the box is not centered at it."""
    space = bonas.Space(**{f"x{i}": bonas.Float(low, high) for i in range(1, d + 1)})
    optimum = float(formula(jnp.full(d, best)))
    objective = functions.BoxObjective(space, formula)
    return functions.Problem(name, space, objective, optimum, ((best,) * d,))


def function_case(make: Callable[[], functions.Problem], part: str) -> Case:
    problem = make()
    u = problem.space.sample(jax.random.key(0), 4096)
    key = jax.random.key(0)  # not used by these functions
    values = jax.vmap(lambda row: problem.objective(key, row))(u)
    return Case(
        problem.name,
        FUNCTIONS,
        part,
        problem.space,
        problem.objective,
        (),
        problem.optimum,
        float(jnp.median(values)),
    )


FUNCTION = {
    "ackley8": lambda: functions.ackley(8),
    "hartmann6": lambda: functions.hartmann6,
    "branin": lambda: functions.branin,
    "rastrigin6": lambda: on_box("rastrigin6", rastrigin, 6, -2.1, 2.6, 0.0),
    "griewank8": lambda: on_box("griewank8", griewank, 8, -47.0, 43.0, 0.0),
    "levy8": lambda: functions.levy(8),
    "hartmann3": lambda: functions.hartmann3,
    "six_hump_camel": lambda: functions.six_hump_camel,
    "styblinski_tang8": lambda: on_box(
        "styblinski_tang8", styblinski_tang, 8, -5.0, 5.0, -2.903534
    ),
    "rastrigin8": lambda: on_box("rastrigin8", rastrigin, 8, -1.1, 2.1, 0.0),
    "log_rosenbrock8": lambda: on_box(
        "log_rosenbrock8", log_rosenbrock, 8, -2.0, 2.0, 1.0
    ),
}
