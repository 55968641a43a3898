"""The numbers in README are those that the experiments left: each phrase is made from the JSON files and must stand there."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = re.sub(r"\s+", " ", (ROOT / "README.md").read_text(encoding="utf-8"))


def load(name):
    return json.loads((ROOT / f"experiments/results/{name}.json").read_text(encoding="utf-8"))


def small(value):
    """Two digits that count, powers of ten below a thousandth."""
    return f"{value:.1e}" if value < 1e-3 else f"{value:#.2g}"


def searches():
    found, titles = load("bench_search"), {"forrester": "Forrester", "rosenbrock": "Rosenbrock"}
    titles |= {"mccormick": "McCormick", "six_hump_camel": "six-hump camel"}
    rows = {(row["function"], row["contender"]): row for row in found["results"]}
    for name, title in titles.items():
        ours = rows[name, "bonas"]
        cells = [f"{small(ours['regret']['median'])}, {ours['cpu_seconds']:.3f} s"]
        for rival in ("hyperoptax", "optuna", "botorch"):
            row = rows[name, rival]
            times = f"{row['times_bonas']:.3g}" if row["times_bonas"] >= 100 else f"{row['times_bonas']:.1f}"
            cells.append(f"{small(row['regret']['median'])}, {times}×")
        yield f"| {title} | {' | '.join([*cells, small(rows[name, 'random']['regret']['median'])])} |"
    asks = {(row["contender"], row["n"]): 1e3 * row["cpu_seconds"] for row in found["suggestions"]}
    yield f"takes {asks['bonas', 100]:.0f} ms at 100 observations (Optuna {asks['optuna', 100]:.0f} ms)"
    yield f"takes {found['vmap'][0]['ratio']:.2f} times as long as `run_many`"


def practice():
    found = load("bench_practice")["results"]["verdict"]["median"]
    ours, first = found["bonas"], found["bonas, first time"]
    seconds = f"{ours['seconds']:.1f} ({first['seconds']:.1f} the first time)"
    yield f"| bonas | {ours['validation']:.1f} | {ours['test']:.1f} | {seconds} |"
    for name, title in (
        ("optuna", "Optuna's TPE over scikit-learn's MLPRegressor"),
        ("random search", "RandomizedSearchCV over the same"),
    ):
        yield f"| {title} | {found[name]['validation']:.1f} | {found[name]['test']:.1f} | {found[name]['seconds']:.1f} |"


def study():
    found = load("bench_study")
    over = [1e3 * row["overhead_seconds"] for row in found["overhead"]]
    yield f"take {min(over):.1f} to {max(over):.1f} ms longer than those of the pure core"
    long = found["long"][0]
    late = 1e3 * long["late_seconds"]
    yield f"fit into {long['bytes'] / 1e6:.1f} MB, after which a trial takes {late:.1f} ms, {long['slowing']:.1f} times"


def chains():
    found = load("bench_hmc")
    titles = {
        "bonas HMC": "bonas, HMC, output layer integrated out",
        "bonas NUTS": "bonas, NUTS",
        "NumPyro HMC, 20 steps": "NumPyro, HMC of 20 steps",
        "NumPyro NUTS, depth 6": "NumPyro, NUTS of at most 2⁶ steps",
        "NumPyro NUTS": "NumPyro, NUTS",
    }
    for name, title in titles.items():
        row = found["contenders"][name]
        middle, least = row["effective_a_second_median"], row["effective_a_second_smallest"]
        words = f"{middle:.0f} ({least:.0f})" if middle >= 100 else f"{middle:.1f} ({least:.2g})"
        yield f"| {title} | {words} | {row['largest_r_hat']:.3f} |"
    yield f"That is {found['bonas_over_the_best_rival']:.0f} times the best rival"
    yield f"takes {found['search_step_cpu_seconds']:.2f} CPU seconds"


def curves():
    found = load("bench_curves")["results"]
    ours, joint = found["gpar"]["bonas"]["both"], found["gpar"]["gpar, joint"]
    yield f"take {1e3 * ours:.0f} ms; `gpar` 0.3.2 of PyPI, with the same model, data and start, {1e3 * joint['both']:.0f} ms"
    yield f"{joint['times_bonas']['both']:.0f} times as long"
    vi = found["vi"]
    one, many = (vi[f"all rows, 10 independent draws, {count}"] for count in ("one network", "many"))
    yield f"takes {one['bonas']:.2f} ms (a loop in PyTorch {one['torch']:.2f}, {one['times_bonas']:.1f} times as long)"
    yield f"of 32 of them at once {many['bonas']:.2f} ms each ({many['times_bonas']:.1f} times)"
    one, many = (vi[f"all rows, 10 draws in pairs, {count}"] for count in ("one network", "many"))
    yield f"{one['bonas']:.2f} and {many['bonas']:.2f} ms ({one['times_bonas']:.1f} and {many['times_bonas']:.1f} times)"
    few = vi["128 rows, 1 draw, one network"]
    yield f"with one draw of 128 rows {few['bonas']:.2f} ms ({few['times_bonas']:.0f} times)"


def networks():
    found = load("bench_nets")["runs"]
    for kind, title in (
        ("batches", "64 networks, batches of 32"),
        ("full batch", "64 networks, all 320 rows"),
        ("ensemble", "ensemble of 30"),
    ):
        ours, torch, exact = (found.get(f"{kind}, {who}, 0") for who in ("bonas", "torch", "exact"))
        cells = [
            f"{ours['first']['cpu_seconds']:.1f} s",
            f"{ours['warm']['cpu_seconds']:.1f} s",
            f"{torch['warm']['cpu_seconds']:.1f} s",
        ]
        cells += [f"{exact['first']['cpu_seconds']:.0f} s", f"{exact['warm']['cpu_seconds']:.1f} s"] if exact else ["", ""]
        yield re.sub(r" +", " ", f"| {title} | {' | '.join(cells)} |")


def processes():
    found = load("bench_gp")
    for row in found["evidence"]:
        value, both = (row[name] / row["cholesky"] for name in ("value", "value_and_gradient"))
        yield f"| {row['n']} | {1e6 * row['cholesky']:.0f} µs | {value:.1f} Choleskys | {both:.1f} Choleskys |"


def demo():
    found = load("search_demo")["results"]["verdict"]["median_test_rmse"]
    yield f"median test error {found['bonas']:.1f}, ridge regression {found['linear']:.1f}"
    yield f"2 × 64 units {found['mlp']:.1f}"


def hutchinson():
    found = load("hutchinson_search")
    ends = {name: {method: row["end"] for method, row in rows.items()} for name, rows in found["results"].items()}
    cifar = ends["metaqnn_cifar10"]
    halved, final = cifar["successive halving"], cifar["final-performance BO"]
    yield f"regret {cifar['bonas']:.3f} on MetaQNN's CIFAR-10, successive halving {halved:.3f}, BO on final values {final:.3f}"
    random = [row["against_random"] for row in found["verdicts"].values()]
    yield f"better than random search on {random.count('better')} of {len(random)} sets"


SECTIONS = (searches, practice, study, chains, curves, networks, processes, demo, hutchinson)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_readme_says_what_the_experiments_found(section):
    missing = [phrase for phrase in section() if re.sub(r"\s+", " ", phrase).strip() not in README]
    assert missing == []
