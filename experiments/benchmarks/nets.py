"""Is training many networks in one call faster than a loop in PyTorch?

Two tasks on one thread of one core: 64 random multilayer perceptrons on scikit-learn's diabetes
data, with 1,000 updates of Adam on batches of 32 rows and on all rows; and one ensemble of 30
sparse networks of the size of Wilton's first experiment, with 1,000 epochs of Adadelta. JAX with
one program per network is measured too. The cost of compiling is reported separately, by training
a second population of other networks. PyTorch has its own environment:

    python3 -m venv rivals
    rivals/bin/pip install -r experiments/benchmarks/rivals/requirements.txt
    python -m experiments.benchmarks.nets --rivals rivals/bin/python

Every result is saved, and a second call measures the missing ones.
"""

import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from rich.console import Console
from rich.progress import track
from rich.table import Table

import bonas
from bonas import nets
from bonas.problems import datasets, synthetic
from experiments import common
from experiments.benchmarks.rivals.contenders import Clock


@dataclass(frozen=True)
class Config:
    networks: int = 64  # population of a typical search
    depth: int = 3  # hidden layers, from 1
    narrowest: int = 4
    widest: int = 64  # units per layer
    # Training rows of diabetes, ten batches of 32; the other 122 rows are for validation
    rows: int = 320
    updates: int = 1000
    batch: int = 32
    members: int = 30  # members of the ensemble: the maximum in Wilton's search
    # Hidden layers and units of a member: Wilton's best design of experiment 1
    ensemble: tuple[int, int] = (5, 15)
    density: float = 0.949  # density of the sparse networks of this design
    epochs: int = 1000  # minimum training of a member
    exact: int = 64  # networks that are also compiled individually
    # More populations for contenders that train one per call and so have one time, not 64; the
    # median is reported
    warm: int = 5
    seeds: int = 1  # populations; medians are reported


SMOKE = Config(networks=3, widest=20, updates=20, members=2, epochs=10, exact=2, warm=1)
TASKS = ("batches", "full batch", "ensemble")
CONTENDERS = ("bonas", "exact", "torch")


def main() -> None:
    args, config = arguments()
    if not args.smoke:
        common.pin_to_core(args.core)
    bonas.configure(cache=False)  # compiling is timed; one thread, here and in children
    args.out.mkdir(parents=True, exist_ok=True)
    file = args.out / "benchmarks_nets.json"
    report = load_report(file, config)
    for seed in range(config.seeds):
        for task in TASKS:
            for contender in CONTENDERS:
                name = f"{task}, {contender}, {seed}"
                if (
                    name in report["runs"]
                    or (contender == "torch" and not args.rivals)
                    or (contender, task) == ("exact", TASKS[2])
                ):
                    continue
                report["runs"][name] = MEASURE[contender](config, task, seed, args)
                report["ratios"] = ratios(config, report["runs"])
                common.write_json(file, report)
    show(report)
    print(f"\nwritten to {file}")


def arguments():
    parser = common.benchmark_parser(
        __doc__,
        "benchmarks_nets",
        smoke="tiny sizes, as a quick test",
        seeds="number of populations; medians are reported (default 1)",
    )
    parser.add_argument(
        "--rivals",
        help="Python of the environment with PyTorch; without it, only JAX runs",
    )
    return common.parse(parser, Config(), SMOKE)


def load_report(file: Path, config: Config) -> dict:
    """Return the saved report of this configuration, or an empty one."""
    fresh = {
        "config": json.loads(json.dumps(asdict(config))),
        **common.provenance(),
        "runs": {},
    }
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return fresh
    same = {**found.get("config", {}), "seeds": config.seeds} == fresh["config"]
    return {**fresh, "runs": found["runs"]} if same else fresh


# Tasks


def population(config: Config, task: str, seed: int) -> list[list[int]]:
    """Return the widths of the hidden layers of every network."""
    if task == "ensemble":
        return [[config.ensemble[1]] * config.ensemble[0]] * config.members
    draw = np.random.default_rng(seed)
    depths = draw.integers(1, config.depth, size=config.networks, endpoint=True)
    return [
        draw.integers(
            config.narrowest, config.widest, size=depth, endpoint=True
        ).tolist()
        for depth in depths
    ]


def rows(config: Config, task: str) -> nets.Examples:
    if task == "ensemble":
        train, test = (synthetic.wilton_pieces(jax.random.key(i)) for i in range(2))
        return nets.examples(
            train.x / 14.0,
            train.y / train.y.std(),
            test.x / 14.0,
            test.y / train.y.std(),
        )
    diabetes = datasets.load("diabetes")
    x, y = (column - column.mean(axis=0) for column in (diabetes.x, diabetes.y))
    x, y = x / x.std(axis=0), y / y.std()
    order = np.random.default_rng(0).permutation(len(x))
    inside, outside = order[: config.rows], order[config.rows :]
    return nets.examples(x[inside], y[inside], x[outside], y[outside])


def schedule(
    config: Config, task: str, data: nets.Examples
) -> tuple[nets.Settings, int]:
    """Return the training settings and the number of updates."""
    batch = config.batch if task == "batches" else None
    an_epoch = 1 if batch is None else -(-len(data.x) // batch)
    epochs = config.epochs if task == "ensemble" else max(config.updates // an_epoch, 1)
    optimizer = "adadelta" if task == "ensemble" else "adam"
    settings = nets.Settings(
        optimizer=optimizer,
        batch=batch,
        max_epochs=epochs,
        checkpoints=epochs,
        initial="uniform",
    )
    return settings, epochs * an_epoch


# Contenders: each returns seconds of a compiled population, of the first one with compiling, and
# the validation loss.


def train_by_bonas(config: Config, task: str, seed: int, args) -> dict:
    """Train all networks in one call, then other populations without compiling."""
    print(f"... {task}: bonas, all networks in one call", flush=True)
    data = rows(config, task)
    settings, _ = schedule(config, task, data)
    depth, width = (
        config.ensemble if task == "ensemble" else (config.depth, config.widest)
    )
    shape = nets.Shape(data.x.shape[1], 1, depth, width, activations=("relu",))
    density = config.density if task == "ensemble" else None

    def call(number):
        widths = population(config, task, number)
        networks = nets.stack(
            [nets.architecture(shape, each, density=density) for each in widths]
        )
        keys = jax.random.split(jax.random.key(number), len(widths))
        jax.block_until_ready((networks, keys))
        clock = Clock()
        result = jax.block_until_ready(
            nets.train_many(
                keys, shape, settings, networks, nets.Hyperparameters(), data
            )
        )
        return clock.read(), result

    first, result = call(seed)
    others = [call(seed + 1000 + i)[0] for i in range(config.warm)]
    warm = {name: float(np.median([other[name] for other in others])) for name in first}
    return {
        "warm": warm,
        "first": first,
        "validation": float(np.median(result.final[:, 0])),
    }


def train_by_exact_shapes(config: Config, task: str, seed: int, args) -> dict:
    """Train every network with its own jitted program."""
    data, chosen = rows(config, task), population(config, task, seed)[: config.exact]
    settings, updates = schedule(config, task, data)
    compiling, running, losses = [], [], []
    for i, widths in enumerate(
        track(chosen, description=f"{task}: JAX, one program per network")
    ):
        key = jax.random.key(i)
        clock = Clock()
        program = jax.jit(
            lambda key, widths=tuple(widths): plain_training(
                key, widths, settings.batch, updates, data
            )
        )
        compiled = program.lower(key).compile()
        compiling.append(clock.read())
        clock = Clock()
        losses.append(float(compiled(key)))
        running.append(clock.read())
    share = len(population(config, task, seed)) / len(chosen)
    compile_time, warm = (
        {name: share * sum(one[name] for one in all_) for name in all_[0]}
        for all_ in (compiling, running)
    )
    first = {name: warm[name] + compile_time[name] for name in warm}
    return {"warm": warm, "first": first, "validation": float(np.median(losses))}


def plain_training(
    key, widths: tuple[int, ...], batch: int | None, updates: int, data: nets.Examples
):
    """Return the validation loss of a network trained with dense layers and optax in one scan."""
    sizes, optimizer, n = (data.x.shape[1], *widths, 1), optax.adam(1e-3), len(data.x)

    def start(key, incoming, units):
        return jax.random.uniform(
            key, (incoming + 1, units), data.x.dtype, -1.0, 1.0
        ) / np.sqrt(incoming).astype(data.x.dtype)

    def outputs(layers, x):
        for i, layer in enumerate(layers):
            x = x @ layer[:-1] + layer[-1][None, :]
            x = jax.nn.relu(x) if i < len(layers) - 1 else x
        return x

    def loss(layers, x, y):
        return jnp.mean((outputs(layers, x) - y) ** 2)

    def update(carry, taken):
        layers, moments = carry
        gradient = jax.grad(loss)(
            layers,
            *((data.x, data.y) if batch is None else (data.x[taken], data.y[taken])),
        )
        change, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(layers, change), moments), None

    keys = jax.random.split(key, len(sizes))
    layers = [
        start(k, a, b) for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=False)
    ]
    an_epoch = 1 if batch is None else n // batch
    orders = jax.vmap(lambda k: jax.random.permutation(k, n))(
        jax.random.split(keys[-1], updates // an_epoch)
    )
    taken = (
        orders.reshape(updates, -1)
        if batch is not None
        else jnp.zeros((updates, 0), int)
    )
    (layers, _), _ = jax.lax.scan(update, (layers, optimizer.init(layers)), taken)
    return loss(layers, data.valid_x, data.valid_y)


def train_by_torch(config: Config, task: str, seed: int, args) -> dict:
    """Train one network after another in the environment of PyTorch."""
    data, widths = rows(config, task), population(config, task, seed)
    settings, updates = schedule(config, task, data)
    job = {
        name: np.asarray(getattr(data, name)).tolist()
        for name in ("x", "y", "valid_x", "valid_y")
    }
    density = config.density if task == "ensemble" else 1.0
    job |= {
        "widths": widths,
        "batch": settings.batch,
        "updates": updates,
        "optimizer": settings.optimizer,
    }
    file = args.out / "job.json"
    file.write_text(
        json.dumps(job | {"density": density, "seed": seed}), encoding="utf-8"
    )
    command = [
        args.rivals,
        str(Path(__file__).parent / "rivals" / "torch_nets.py"),
        str(file),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        lines = track(
            process.stdout,
            total=len(widths),
            description=f"{task}: PyTorch, one by one",
        )
        done = [json.loads(line) for line in lines]
        if process.wait() or len(done) != len(widths):
            raise SystemExit(
                f"{' '.join(command)} ended with code {process.returncode}"
            )
    finally:
        process.terminate()
        file.unlink()
    spent = {
        name: sum(one[name] for one in done) for name in ("seconds", "cpu_seconds")
    }
    return {
        "warm": spent,
        "first": spent,
        "validation": float(np.median([one["validation"] for one in done])),
    }


MEASURE = {
    "bonas": train_by_bonas,
    "exact": train_by_exact_shapes,
    "torch": train_by_torch,
}


# Results


def ratios(config: Config, runs: dict) -> dict:
    """Return CPU seconds relative to bonas, medians over seeds."""
    table: dict = {}
    for task in TASKS:
        for rival in CONTENDERS[1:]:
            pairs = [
                (runs.get(f"{task}, bonas, {s}"), runs.get(f"{task}, {rival}, {s}"))
                for s in range(config.seeds)
            ]
            pairs = [pair for pair in pairs if all(pair)]
            for when in ("first", "warm") if pairs else ():
                values = [
                    theirs[when]["cpu_seconds"] / ours[when]["cpu_seconds"]
                    for ours, theirs in pairs
                ]
                table.setdefault(f"{rival} / bonas, {task}", {})[when] = float(
                    np.median(values)
                )
    return table


def show(report: dict) -> None:
    table = Table(
        "task, contender, seed",
        "with compiling, s",
        "without, s",
        "validation loss, median",
    )
    for name, run in report["runs"].items():
        cells = (
            run["first"]["cpu_seconds"],
            run["warm"]["cpu_seconds"],
            run["validation"],
        )
        table.add_row(name, *(f"{value:.3g}" for value in cells))
    console = Console()
    console.print(table)
    for name, ratio in report.get("ratios", {}).items():
        console.print(
            f"{name}: {ratio['first']:.1f} with compiling, {ratio['warm']:.1f} without"
        )


if __name__ == "__main__":
    main()
