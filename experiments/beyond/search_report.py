"""Comparisons, the figure and the terminal table of beyond.search_defaults."""

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

from experiments import compare, figures
from experiments.beyond.search_problems import CHOOSE

DEFAULT = "default"
ALL = "all"
SIGNIFICANT = 0.05


def compare_at(config, found: dict, method: str, kind: str, steps: int) -> dict | None:
    """Compare a method with the default in pairs of seeds, over all problems of a kind."""
    ours, theirs = [], []
    for problem in found.values():
        regrets = problem["regrets"]
        if method in regrets and kind in (ALL, problem["kind"]):
            seeds = min(len(regrets[method]), len(regrets[DEFAULT]))
            ours.append(regrets[method][:seeds, steps - 1])
            theirs.append(regrets[DEFAULT][:seeds, steps - 1])
    if not ours:
        return None
    row = compare.paired(np.concatenate(ours), np.concatenate(theirs), config.resamples)
    better = row["wins"] > row["losses"]
    decided = row["sign_test_p"] < SIGNIFICANT
    row["by_sign"] = "undecided" if not decided else "better" if better else "worse"
    row["problems"] = len(ours)
    return row


def judge(config, found: dict) -> dict:
    """Apply the rule of choice to the choosing half."""
    verdicts = {}
    for name in config.variants:
        late, early = (
            compare_at(config, found, name, ALL, steps)
            for steps in (config.steps, config.early)
        )
        better = late["by_sign"] == "better"
        not_worse = early["by_sign"] != "worse"
        verdicts[name] = {
            "better_late": better,
            "not_worse_early": not_worse,
            "passes": better and not_worse,
        }
    return verdicts


def summarize(config, found: dict) -> dict:
    """Compare every method with the default, and average the regrets over problems and seeds."""
    kinds = [ALL, *dict.fromkeys(problem["kind"] for problem in found.values())]
    present = dict.fromkeys(m for p in found.values() for m in p["regrets"])
    methods = sorted(present, key=lambda name: name not in config.variants)
    pairs: dict = {}
    for method in methods:
        for kind in kinds:
            rows = {
                str(steps): compare_at(config, found, method, kind, steps)
                for steps in config.at
            }
            if method != DEFAULT and all(rows.values()):
                pairs.setdefault(method, {})[kind] = rows
    regret = {
        name: {
            method: {str(n): float(rows[:, n - 1].mean()) for n in config.at}
            for method, rows in problem["regrets"].items()
        }
        for name, problem in found.items()
    }
    return {"pairs": pairs, "means": means(config, found, regret), "problems": regret}


def means(config, found: dict, regret: dict) -> dict:
    """Return the mean regret by kind and method, over the problems of the kind that it has run."""
    kinds = dict.fromkeys(problem["kind"] for problem in found.values())
    result: dict = {}
    for kind in kinds:
        names = [name for name, problem in found.items() if problem["kind"] == kind]
        for method in dict.fromkeys(m for name in names for m in regret[name]):
            rows = [regret[name][method] for name in names if method in regret[name]]
            result.setdefault(kind, {})[method] = {
                str(n): float(np.mean([row[str(n)] for row in rows])) for n in config.at
            }
    return result


def draw(config, parts: dict, file) -> None:
    """Draw the share of wins among decided pairs, with 95% intervals; above a half is better."""
    at = config.at[1:]
    figure, axes = plt.subplots(
        1,
        len(parts),
        figsize=(11, 4.2),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    names = list(parts[CHOOSE]["pairs"])
    for axis, (part, summary) in zip(axes[0], parts.items(), strict=True):
        axis.axhline(0.5, color="0.6", lw=1)
        for i, steps in enumerate(at):
            places, shares, bars = [], [], []
            for j, name in enumerate(names):
                row = summary["pairs"].get(name, {}).get(ALL, {}).get(str(steps))
                if row is None or not row["wins"] + row["losses"]:
                    continue
                test = stats.binomtest(row["wins"], row["wins"] + row["losses"])
                ends = test.proportion_ci(method="wilson")
                places.append(j + 0.2 * (i - (len(at) - 1) / 2))
                shares.append(test.statistic)
                bars.append((test.statistic - ends.low, ends.high - test.statistic))
            axis.errorbar(
                places,
                shares,
                np.array(bars).reshape(-1, 2).T,
                fmt="o",
                ms=4,
                color=figures.COLORS[i],
                label=f"after {steps} evaluations",
            )
        axis.set_title(f"{part}: {len(summary['problems'])} problems", fontsize=10)
        axis.set_xticks(range(len(names)), names, rotation=25, ha="right", fontsize=8)
    axes[0, 0].set_ylabel("share of pairs that the variant wins")
    figures.hide_spines(axes[0])
    figures.legend_below(figure, axes[0], columns=len(at))
    figures.save(figure, file)


def show(config, result: dict) -> None:
    """Print wins and losses against the default by half, kind and method."""
    for part, summary in result["parts"].items():
        heads = [f"at {n}" for n in config.at]
        table = Table(f"{part}: wins:losses (p)", "problems", *heads)
        for method, kinds in summary["pairs"].items():
            for kind, rows in kinds.items():
                label = f"[bold]{method}" if kind == ALL else f"  {kind}"
                count = next(iter(rows.values()))["problems"]
                cells = [
                    f"{row['wins']}:{row['losses']} ({row['sign_test_p']:.2g})"
                    for row in rows.values()
                ]
                table.add_row(label, str(count), *cells)
        Console(width=100).print(table)
    for name, verdict in result["verdicts"].items():
        words = "passes" if verdict["passes"] else "does not pass"
        print(
            f"{name}: {words} (better late: {verdict['better_late']}, "
            f"not worse early: {verdict['not_worse_early']})"
        )
