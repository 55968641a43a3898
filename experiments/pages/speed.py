"""The benchmarks' sections, and what a search is worth in practice."""

from collections.abc import Iterator

from pages.text import interval, joined, number, percent, table, whole, word

MILLI, MICRO = 1e3, 1e6


def searches(found: dict) -> Iterator[str]:
    """Searches beside rivals."""
    config = found["config"]
    rivals = ", ".join(f"{name} {version}" for name, version in found.get("rivals", {}).items())
    yield f"{config['seeds']} seeds of {config['evaluations']} evaluations, CPU seconds on one core; {rivals}."
    yield table(
        "function, contender",
        ((f"{row['function']}, {row['contender']}", row) for row in found["results"]),
        {
            "median final regret": number("regret/median", 2),
            "quartiles": joined(" to ", number("regret/lower", 2), number("regret/upper", 2)),
            "CPU seconds a run": number("cpu_seconds", 2),
            "× bonas": number("times_bonas", 2),
            "its regret minus ours, 95% interval": interval("interval"),
            "bonas is": word("bonas_is"),
        },
    )
    yield table(
        "a suggestion",
        ((row["contender"], row) for row in found["suggestions"]),
        {"observations": whole("n"), "ms": number("seconds", times=MILLI), "first call, s": number("first_call_seconds", 2)},
    )
    for row in found["vmap"]:
        yield f"`jax.vmap(run)` takes {row['ratio']:.2f} times as long as `run_many` on {row['function']}."


def nets(found: dict) -> Iterator[str]:
    """Many networks."""
    yield "CPU seconds; again: other networks of the same sizes, for which nothing is compiled."
    yield table(
        "task, contender, seed",
        sorted(found["runs"].items()),
        {
            "first": number("first/cpu_seconds"),
            "again": number("warm/cpu_seconds"),
            "median validation loss": number("validation"),
        },
    )
    yield table("seconds over seconds", found["ratios"], {"first": number("first"), "again": number("warm")})


def gps(found: dict) -> Iterator[str]:
    """Gaussian processes."""
    rows = [
        (str(row["n"]), {**row, **{name: row[name] / row["cholesky"] for name in ("value", "value_and_gradient")}})
        for row in found["evidence"]
    ]
    yield table(
        "observations",
        rows,
        {
            "one Cholesky, µs": number("cholesky", times=MICRO),
            "log evidence, Choleskys": number("value", 2),
            "value and gradient, Choleskys": number("value_and_gradient", 2),
        },
    )
    yield table(
        "sampling",
        found["inference"],
        {
            "first, s": number("first", 2),
            "again, s": number("again", 2),
            "evaluations": whole("evaluations"),
            "least effective samples": whole("least_effective_samples"),
        },
    )
    yield table(
        "BLAS threads",
        found["threads"],
        {"alone, µs": number("alone", times=MICRO), "beside a busy process, µs": number("shared", times=MICRO)},
    )


def chains(found: dict) -> Iterator[str]:
    """Effective samples of functions a second."""
    yield table(
        "contender",
        found["contenders"],
        {
            "effective samples a second, median of the grid": number("effective_a_second_median"),
            "smallest": number("effective_a_second_smallest"),
            "with burn-in": number("with_burn_in"),
            "a draw": number("effective_share", 2),
            "largest R-hat": number("largest_r_hat", 4),
            "µs a gradient": number("microseconds_a_gradient"),
            "off bonas, standard errors, rms": number("off_in_standard_errors/root_mean_square", 2),
            "most": number("off_in_standard_errors/largest", 2),
            "compiling, s": number("compile_seconds", 2),
        },
    )
    yield table(
        "",
        {"bonas HMC": found},
        {
            "times the best rival": number("bonas_over_the_best_rival", 2),
            "warm search step, CPU s": number("search_step_cpu_seconds", 2),
        },
    )


def curves(found: dict) -> Iterator[str]:
    """GPAR and variational networks."""
    gpar = {
        name: {"evidence": found["results"]["gpar"]["evidence"], **row}
        for name, row in found["results"]["gpar"].items()
        if isinstance(row, dict)
    }
    parts = ("fit", "sample", "both")
    yield table(
        "GPAR",
        gpar,
        {
            **{f"{part}, ms": number(part, times=MILLI) for part in parts},
            **{f"{part}, × bonas": number(f"times_bonas/{part}", 2) for part in parts},
            "log evidence reached": number("evidence", 4),
            "evidences of the same apart": number("evidences_of_the_same_apart", 1),
        },
    )
    yield table(
        "an update of a variational network",
        found["results"]["vi"],
        {"bonas, ms": number("bonas"), "PyTorch, ms": number("torch"), "× bonas": number("times_bonas", 2)},
    )


def study(found: dict) -> Iterator[str]:
    """What durability costs."""
    parts = ("ask", "tell", "core", "overhead", "commit")
    yield table(
        "search",
        ((row["search"], row) for row in found["overhead"]),
        {
            "trials": whole("trials"),
            **{f"{part}, ms": number(f"{part}_seconds", times=MILLI) for part in parts},
            "bytes a trial": whole("bytes_a_trial"),
        },
    )
    yield table(
        "random search",
        ((f"{row['trials']} trials", row) for row in found["long"]),
        {
            "seconds": number("seconds"),
            "then ms a trial": number("late_seconds", times=MILLI),
            "in a new study": number("early_seconds", times=MILLI),
            "times slower": number("slowing"),
            "bytes": whole("bytes"),
        },
    )
    names = ("jax_seconds", "bonas_beyond_jax_seconds", "study_beyond_jax_seconds", "help_seconds")
    yield table(
        "imports",
        {"seconds": found["imports"]},
        {name.removesuffix("_seconds").replace("_", " "): number(name, 2) for name in names},
    )


def practice(found: dict) -> Iterator[str]:
    """Beside scikit-learn and Optuna."""
    verdict = found["results"]["verdict"]
    yield f"Medians over {found['config']['seeds']} divisions of the rows, {found['config']['trials']} trials each."
    yield table(
        "contender",
        verdict["median"],
        {
            "validation RMSE": number("validation"),
            "test RMSE": number("test"),
            "seconds": number("seconds"),
            "of the processor": number("processor_seconds"),
        },
    )
    yield from _truths(verdict)


def demo(found: dict) -> Iterator[str]:
    """`bonas search` beside what one would train without it."""
    verdict, names = found["results"]["verdict"], ("bonas", "linear", "mlp")
    error = number("standard_error_of_ridge")(verdict)
    yield f"Errors on test rows; the standard error of ridge regression is {error} in the median."
    yield table(
        "seed",
        [
            *((str(row["seed"]), row) for row in found["results"]["runs"]),
            ("median", {"test": verdict["median_test_rmse"], "seconds": verdict["median_seconds"]}),
        ],
        {
            **{name: number(f"test/{name}") for name in names},
            "within 90% bands": percent("within_90"),
            "best network": word("best"),
            "seconds": number("seconds"),
        },
    )
    yield from _truths(verdict)


def _truths(verdict: dict) -> Iterator[str]:
    told = [
        f"{name.replace('_', ' ')}: {'yes' if holds else 'no'}" for name, holds in verdict.items() if isinstance(holds, bool)
    ]
    yield f"{'; '.join(told).capitalize()}."
