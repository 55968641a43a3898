"""Check the numbers on the benchmarks page, and compile times in the README, against the stored
results of the experiments.
"""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = re.sub(
    r"\s+", " ", (ROOT / "notebooks/site/benchmarks.md").read_text(encoding="utf-8")
)


def load(name):
    return json.loads(
        (ROOT / f"experiments/results/{name}.json").read_text(encoding="utf-8")
    )


def small(value):
    """Format with two significant digits, and with an exponent below a thousandth."""
    return f"{value:.1e}" if value < 1e-3 else f"{value:#.2g}"


def searches():
    found, titles = (
        load("benchmarks_search"),
        {"forrester": "Forrester", "rosenbrock": "Rosenbrock"},
    )
    titles |= {"mccormick": "McCormick", "six_hump_camel": "six-hump camel"}
    rows = {(row["function"], row["contender"]): row for row in found["results"]}
    for name, title in titles.items():
        ours = rows[name, "bonas"]
        cells = [f"{small(ours['regret']['median'])}, {ours['cpu_seconds']:.3f} s"]
        for rival in ("hyperoptax", "optuna", "botorch"):
            row = rows[name, rival]
            times = (
                f"{row['times_bonas']:.3g}"
                if row["times_bonas"] >= 100
                else f"{row['times_bonas']:.1f}"
            )
            cells.append(f"{small(row['regret']['median'])}, {times}×")
        yield f"| {title} | {' | '.join([*cells, small(rows[name, 'random']['regret']['median'])])} |"  # noqa: E501
    asks = {
        (row["contender"], row["n"]): 1e3 * row["cpu_seconds"]
        for row in found["suggestions"]
    }
    yield f"takes {asks['bonas', 100]:.0f} ms at 100 observations (Optuna {asks['optuna', 100]:.0f} ms)"  # noqa: E501
    yield f"takes {found['vmap'][0]['ratio']:.2f} times as long as `run_many`"
    yield f"its compilation ({whole_seconds(*compile_times(found['results']))}, once"
    one = whole_seconds(*compile_times(found["suggestions"]))
    yield f"The first one compiles and takes {one}."


def compile_times(rows):
    """Return the shortest and the longest first call of bonas."""
    ours = [row for row in rows if row["contender"].startswith("bonas")]
    times = [row["first_call_seconds"] for row in ours]
    return min(times), max(times)


def whole_seconds(shortest, longest):
    return f"{shortest:.0f} to {longest:.0f} s"


def practice():
    found = load("benchmarks_practice")["results"]["verdict"]["median"]
    ours, first = found["bonas"], found["bonas, first time"]
    seconds = f"{ours['seconds']:.1f} ({first['seconds']:.1f} the first time)"
    yield f"| bonas | {ours['validation']:.1f} | {ours['test']:.1f} | {seconds} |"
    for name, title in (
        ("optuna", "Optuna's TPE with scikit-learn's MLPRegressor"),
        ("random search", "RandomizedSearchCV with the same model"),
    ):
        yield f"| {title} | {found[name]['validation']:.1f} | {found[name]['test']:.1f} | {found[name]['seconds']:.1f} |"  # noqa: E501


def study():
    found = load("benchmarks_study")
    over = [1e3 * row["overhead_seconds"] for row in found["overhead"]]
    yield f"take {min(over):.1f} to {max(over):.1f} ms longer than in memory"
    long = found["long"][0]
    late = 1e3 * long["late_seconds"]
    yield f"take {long['bytes'] / 1e6:.1f} MB; after them a trial takes {late:.1f} ms, {long['slowing']:.1f} times"  # noqa: E501


def chains():
    found = load("benchmarks_hmc")
    titles = {
        "bonas HMC": "bonas, HMC, output layer integrated out",
        "bonas NUTS": "bonas, NUTS",
        "NumPyro HMC, 20 steps": "NumPyro, HMC with 20 steps",
        "NumPyro NUTS, depth 6": "NumPyro, NUTS with at most 2⁶ steps",
        "NumPyro NUTS": "NumPyro, NUTS",
    }
    for name, title in titles.items():
        row = found["contenders"][name]
        middle, least = (
            row["effective_a_second_median"],
            row["effective_a_second_smallest"],
        )
        words = (
            f"{middle:.0f} ({least:.0f})"
            if middle >= 100
            else f"{middle:.1f} ({least:.2g})"
        )
        yield f"| {title} | {words} | {row['largest_r_hat']:.3f} |"
    yield f"bonas is {found['bonas_over_the_best_rival']:.0f} times as fast as the best other sampler"  # noqa: E501
    yield f"takes {found['search_step_cpu_seconds']:.2f} CPU seconds"


def curves():
    found = load("benchmarks_curves")["results"]
    ours, joint = found["gpar"]["bonas"]["both"], found["gpar"]["gpar, joint"]
    yield f"take {1e3 * ours:.0f} ms in bonas and {1e3 * joint['both']:.0f} ms in `gpar` 0.3.2"
    yield f"{joint['times_bonas']['both']:.0f} times as long"
    titles = {
        "all rows, 10 independent draws, one network": "all rows, 10 independent draws, one network",  # noqa: E501
        "all rows, 10 independent draws, many": "all rows, 10 independent draws, 32 networks at once",  # noqa: E501
        "all rows, 10 draws in pairs, one network": "antithetic pairs (default), one network",
        "all rows, 10 draws in pairs, many": "antithetic pairs (default), 32 networks at once",
        "128 rows, 1 draw, one network": "128 rows, 1 draw, one network",
    }
    for name, title in titles.items():
        row = found["vi"][name]
        ratio = (
            f"{row['times_bonas']:.1f}"
            if row["times_bonas"] < 10
            else f"{row['times_bonas']:.0f}"
        )
        yield f"{title} | {row['bonas']:.2f} | {row['torch']:.2f} | {ratio}× |"


def networks():
    found = load("benchmarks_nets")["runs"]
    for kind, title in (
        ("batches", "64 networks, batches of 32"),
        ("full batch", "64 networks, all 320 rows"),
        ("ensemble", "ensemble of 30"),
    ):
        ours, torch, exact = (
            found.get(f"{kind}, {who}, 0") for who in ("bonas", "torch", "exact")
        )
        cells = [
            f"{ours['first']['cpu_seconds']:.1f} s",
            f"{ours['warm']['cpu_seconds']:.1f} s",
            f"{torch['warm']['cpu_seconds']:.1f} s",
        ]
        cells += (
            [
                f"{exact['first']['cpu_seconds']:.0f} s",
                f"{exact['warm']['cpu_seconds']:.1f} s",
            ]
            if exact
            else ["", ""]
        )
        yield re.sub(r" +", " ", f"| {title} | {' | '.join(cells)} |")


def processes():
    found = load("benchmarks_gp")
    for row in found["evidence"]:
        value, both = (
            row[name] / row["cholesky"] for name in ("value", "value_and_gradient")
        )
        yield f"| {row['n']} | {1e6 * row['cholesky']:.0f} µs | {value:.1f} Choleskys | {both:.1f} Choleskys |"  # noqa: E501


def compiling():
    found = load("benchmarks_compile")
    names = {"minimize": "`minimize`", "study": "`Study.optimize`"}
    for row in found["starts"]:
        seconds = f"{row['first']:.2f} | {row['model']:.1f}"
        yield f"| {names[row['runner']]} | {row['cache']} | {seconds} |"
    short, long = found["slowdown"]
    ratios = [row["compiling"] / row["alone"] for row in (long, short)]
    yield f"that takes {long['alone']:.2f} s takes {ratios[0]:.2f} times as long"
    yield f"one that takes {short['alone']:.2f} s {ratios[1]:.2f} times"
    ask = next(row for row in found["programs"] if row["space"] == "4 conditional")
    yield f"tracing an ask takes {ask['trace']:.1f} s of CPU time, lowering {ask['lower']:.1f} s"
    yield f"and compiling {ask['compile']:.1f} s"
    constant = found["tables"]["constant"][1]
    yield f"and {constant:.1f} s if it is a constant"
    grid = found["heat_map"]
    one, loop = grid["vmap"], grid["loop"]
    yield (
        f"A heat map of 8 × 8 settings with 20 seeds each, {grid['searches']:,} searches of 20 "
        f"evaluations, takes {one['compile'] + one['run']:.1f} s of CPU time in one call, of which "
        f"{one['compile']:.1f} s for compiling; a search made for each setting takes "
        f"{sum(loop) / len(loop):.1f} s for its 20 seeds"
    )


def throughput():
    found = load("benchmarks_throughput")
    for seeds in (*found["config"]["fewer"], found["config"]["seeds"]):
        rows = [row["cpu_seconds"] for row in found["many"] if row["seeds"] == seeds]
        first, again = (
            sorted(row[kind] for row in rows) for kind in ("first", "again")
        )
        per_run = [1e3 * seconds / seeds for seconds in again]
        yield (
            f"| {seeds:,} | {first[0]:.1f} to {first[-1]:.1f} s | {again[0]:.2g} to "
            f"{again[-1]:.2g} s | {per_run[0]:.0f} to {per_run[-1]:.0f} ms |"
        )
    long = found["long"]["cpu_seconds"]
    yield f"takes {long['again']:.1f} s of CPU, and {long['first']:.1f} s with compiling"


SECTIONS = (
    searches,
    throughput,
    compiling,
    practice,
    study,
    chains,
    curves,
    networks,
    processes,
)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_the_page_has_the_numbers_that_the_experiments_stored(section):
    missing = [
        phrase
        for phrase in section()
        if re.sub(r"\s+", " ", phrase).strip() not in PAGE
    ]
    assert missing == []


def test_the_readme_has_the_time_of_a_thousand_searches():
    readme = re.sub(r"\s+", " ", (ROOT / "README.md").read_text(encoding="utf-8"))
    found = load("benchmarks_throughput")
    most = [row for row in found["many"] if row["seeds"] == 1000]
    slowest = max(row["cpu_seconds"]["first"] for row in most)
    assert (
        f"1,000 searches of 40 evaluations take {slowest:.0f} seconds in one call"
        in readme
    )


def test_the_readme_has_the_compile_times_that_the_experiments_stored():
    readme = re.sub(r"\s+", " ", (ROOT / "README.md").read_text(encoding="utf-8"))
    found = load("benchmarks_search")
    runs = compile_times(found["results"])
    assert f"one-time compilation ({whole_seconds(*runs)})" in readme
    starts = load("benchmarks_compile")["starts"]
    first = sorted(row["model"] for row in starts if row["cache"] == "empty")
    assert f"compilation: {whole_seconds(*first)} in our benchmarks" in readme
