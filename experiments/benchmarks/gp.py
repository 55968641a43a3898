"""How fast are evidence, slice sampling and NUTS, and how do BLAS threads affect them?

The unit is one SciPy Cholesky factorization of the same size on one thread in the same run, because
ratios differ less between machines than seconds. Run it on an idle machine.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

from experiments import common


@dataclass(frozen=True)
class Config:
    # observations of a short, a typical and a long search
    sizes: tuple[int, ...] = (64, 128, 256)
    columns: int = 6  # hyperparameters of a typical network
    inference_size: int = 50  # observations for slice sampling and NUTS
    sweeps: int = 100  # sweeps of slice sampling, each over all eight hyperparameters
    nuts_steps: int = 256  # steps of burn-in, and the same number of steps after it
    # Timed blocks; the fastest is reported, because other processes only slow a block down
    repeats: int = 40
    block: int = 10  # calls per block


SMOKE = Config(
    sizes=(16, 32), inference_size=10, sweeps=2, nuts_steps=4, repeats=2, block=2
)


def main() -> None:
    seeds = "number of data sets; medians are reported (default 1)"
    parser = common.parser(
        __doc__, "benchmarks_gp", smoke="tiny sizes, as a quick test", seeds=seeds
    )
    # for child processes, which time one number of threads
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    config = SMOKE if args.smoke else Config()
    if args.threads is not None:
        print(json.dumps(time_threads(config, args.threads)))
        return
    report = {
        **common.provenance(),
        "config": asdict(config),
        **measure(config, args.seeds or 1),
    }
    report["threads"] = {
        str(n): run_in_child(n, args.smoke) for n in (1, os.cpu_count() or 1)
    }
    args.out.mkdir(parents=True, exist_ok=True)
    common.write_json(args.out / "benchmarks_gp.json", report)
    show(report)
    print(f"\nwritten to {args.out / 'benchmarks_gp.json'}")


def measure(config: Config, seeds: int) -> dict:
    """Measure everything that runs in this process, on one BLAS thread."""
    import numpy as np

    import bonas

    bonas.configure()
    rows = []
    for n in config.sizes:
        print_note(f"evidence at n = {n}")
        timings = [evidence(config, n, seed) for seed in range(seeds)]
        rows.append(
            {
                "n": n,
                **{
                    name: float(np.median([t[name] for t in timings]))
                    for name in timings[0]
                },
            }
        )
    return {"evidence": rows, "inference": inference(config)}


def problem(n: int, columns: int, seed: int):
    """Return a dataset of a smooth function at random points."""
    import numpy as np

    import bonas

    x = np.random.default_rng(seed).random((n, columns))
    return bonas.dataset(x, np.sin(5 * x).sum(axis=1))


def evidence(config: Config, n: int, seed: int) -> dict:
    """Time a SciPy Cholesky, the log evidence, and its value with gradient."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import scipy.linalg

    from bonas import gp

    data = problem(n, config.columns, seed)
    params = {
        "variance": jnp.asarray(1.7),
        "lengthscale": jnp.full(config.columns, 0.5),
    }

    def log_evidence(params, noise):
        return gp.log_evidence(gp.matern52(), params, data, noise=noise)

    cov = np.asarray(gp.gram(gp.matern52(), params, data.x, data.x)) + 1e-2 * np.eye(n)
    value, gradient = (
        jax.jit(log_evidence),
        jax.jit(jax.value_and_grad(log_evidence, (0, 1))),
    )
    calls = {
        "cholesky": lambda: scipy.linalg.cholesky(cov, lower=True, check_finite=False),
        "value": lambda: value(params, 1e-2),
        "value_and_gradient": lambda: gradient(params, 1e-2),
    }
    return fastest_seconds(calls, config)


def fastest_seconds(calls: dict, config: Config) -> dict:
    """Return seconds per call, the best of many blocks; the calls take turns."""
    import jax

    best = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        jax.block_until_ready(call())
    for _ in range(config.repeats):
        for name, call in calls.items():
            began = time.perf_counter()
            for _ in range(config.block):
                result = call()
            jax.block_until_ready(result)
            best[name] = min(best[name], (time.perf_counter() - began) / config.block)
    return best


def inference(config: Config) -> dict:
    """Time slice sampling and NUTS with and without compiling."""
    import jax
    import numpy as np

    from bonas import gp, infer

    target = gp.hyperposterior(
        gp.matern52(), problem(config.inference_size, config.columns, 0)
    )
    steps = config.nuts_steps
    methods = {
        "slice": lambda key: infer.slice_sample(
            key, target.sampling, target.start, samples=config.sweeps, burn=0
        ),
        "nuts": lambda key: infer.nuts(
            key, target.sampling, target.start, samples=steps, burn=steps
        ),
    }
    report = {}
    for name, method in methods.items():
        print_note(f"{name} at n = {config.inference_size}")
        run, seconds = jax.jit(method), []
        for seed in range(3):
            began = time.perf_counter()
            samples, info = jax.block_until_ready(run(jax.random.key(seed)))
            seconds.append(time.perf_counter() - began)
        report[name] = {
            "first": seconds[0],
            "again": min(seconds[1:]),
            "evaluations": int(info.evaluations),
        }
        if len(info.log_density) >= 4:
            sizes = jax.tree.leaves(
                infer.effective_sample_size(
                    jax.tree.map(lambda leaf: leaf[None], samples)
                )
            )
            report[name]["least_effective_samples"] = float(
                np.min([np.min(size) for size in sizes])
            )
    return report


def run_in_child(threads: int, smoke: bool) -> dict:
    """Call `threaded` in a new process, because BLAS chooses its threads when it is loaded."""
    print_note(f"{threads} BLAS thread{'s' if threads > 1 else ''}")
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    command = [
        sys.executable,
        "-m",
        __spec__.name,
        "--threads",
        str(threads),
        *(["--smoke"] if smoke else []),
    ]
    return json.loads(
        subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout
    )


def time_threads(config: Config, threads: int) -> dict:
    """Time one value and gradient on an idle machine and next to a busy process."""
    import jax
    import jax.numpy as jnp

    import bonas
    from bonas import gp

    bonas.configure(threads=threads)
    n = config.sizes[0]
    data = problem(n, config.columns, 0)
    params = {
        "variance": jnp.asarray(1.7),
        "lengthscale": jnp.full(config.columns, 0.5),
    }
    call = jax.jit(
        jax.value_and_grad(
            lambda p: gp.log_evidence(gp.matern52(), p, data, noise=1e-2)
        )
    )
    alone = mean_seconds(lambda: call(params), config)
    burner = (
        "import numpy as np, time\nend = time.time() + 20\na = np.random.rand(300, 300)\n"
        "while time.time() < end: a @ a"
    )
    other = subprocess.Popen([sys.executable, "-c", burner])
    try:
        time.sleep(0.5)
        shared = mean_seconds(lambda: call(params), config)
    finally:
        other.kill()
        other.wait()
    return {"n": n, "alone": alone, "shared": shared}


def mean_seconds(call, config: Config) -> float:
    """Return mean seconds per call, because the slow calls matter here."""
    import jax
    import numpy as np

    jax.block_until_ready(call())
    seconds = []
    for _ in range(config.repeats * config.block):
        began = time.perf_counter()
        jax.block_until_ready(call())
        seconds.append(time.perf_counter() - began)
    return float(np.mean(seconds))


def print_note(text: str) -> None:
    print(f"... {text}", file=sys.stderr, flush=True)


def show(report: dict) -> None:
    print(
        f"Matérn 5/2 with {report['config']['columns']} length scales, float64, one BLAS thread\n"
    )
    print(
        f"{'n':>5} {'Cholesky':>12} {'evidence':>12} {'and gradient':>13}   in Choleskys"
    )
    for row in report["evidence"]:
        value = row["value"] / row["cholesky"]
        both = row["value_and_gradient"] / row["cholesky"]
        ratios = f"{value:.1f} and {both:.1f}"
        times = " ".join(
            f"{1e6 * row[name]:>9.0f} µs"
            for name in ("cholesky", "value", "value_and_gradient")
        )
        print(f"{row['n']:>5} {times}    {ratios}")
    print()
    for name, row in report["inference"].items():
        effective = row.get("least_effective_samples", float("nan"))
        print(
            f"{name:6s} {row['again']:.2f} s ({row['first']:.1f} s with compiling), "
            f"{row['evaluations']} evaluations, "
            f"at least {effective:.0f} effective samples"
        )
    print()
    for threads, row in report["threads"].items():
        print(
            f"{threads} BLAS thread(s), value and gradient at n = {row['n']}: "
            f"{1e6 * row['alone']:.0f} µs on an idle machine, "
            f"{1e6 * row['shared']:.0f} µs next to a busy process"
        )


if __name__ == "__main__":
    main()
