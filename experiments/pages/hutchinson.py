"""Hutchinson's sections."""

import math
import statistics
from collections.abc import Iterator

from pages.text import interval, joined, number, percent, table, whole, with_error, won, word, written

# The axes of figures 5.7 to 5.14, which bracket the best mean log likelihood, by the code that draws them (H-S9).
AXES = {
    "boston": (-2.57, -2.43),
    "concrete": (-3.1, -2.95),
    "energy": (-0.8, -0.45),
    "kin8nm": (1.26, 1.32),
    "power": (-2.820, -2.795),
    "protein": (-2.8, -2.74),
    "wine_red": (-0.96, -0.94),
    "yacht": (-1.0, -0.4),
}


def networks(found: dict) -> Iterator[str]:
    """The table of networks."""
    hours = number("hours", 2)(found)
    yield f"{found['networks']} networks, {hours} hours of one core, sha256 `{found['sha256'][:16]}…`."
    sets = {name: {**row, "axis": AXES.get(name)} for name, row in found.items() if isinstance(row, dict) and "best" in row}
    yield table(
        "set",
        sets,
        {
            "networks": whole("networks"),
            "best: layers": whole("best/0"),
            "units a layer": whole("best/1"),
            "its log likelihood": number("log_likelihood", 4),
            "axis of the published figure": lambda row: " to ".join(written(end, 4) for end in row["axis"] or ()),
            "diverged": whole("diverged"),
        },
    )


def effects(found: dict) -> Iterator[str]:
    """Figures 5.1 to 5.3."""
    yield "Validation log likelihoods in nats a row."
    yield table(
        "set",
        found["sets"],
        {
            "best width": whole("best_width"),
            "lost at the widest": number("drop_from_best_to_widest"),
            "best prior variance": number("best_prior", 2),
            "narrowest prior costs": number("cost_of_narrowest_prior"),
            "widest prior costs": number("cost_of_widest_prior"),
            "first noise changes": number("range_over_first_noise"),
        },
    )
    multiples = found["config"]["multiples"]
    for kind, words in (
        ("right", "the likelihood counted m times"),
        ("published", "as published, the divergence weighed by m²"),
    ):
        yield f"Data repeated m times, {words}; training and validation:"
        yield table(
            "set",
            found["sets"],
            {
                f"m = {m:g}": joined(", ", *(number(f"multiples/{kind}/{part}/{i}") for part in ("train", "validation")))
                for i, m in enumerate(multiples)
            },
        )
        yield "Validation at its best on the way, after so many updates, and what is lost from there to the end:"
        yield table(
            "set",
            found["sets"],
            {
                f"m = {m:g}": joined(
                    ", ",
                    *(number(f"multiples/{kind}/best/{i}"), whole(f"multiples/{kind}/after/{i}")),
                    with_error(f"multiples/{kind}/lost/{i}", f"multiples/{kind}/lost_error/{i}"),
                )
                for i, m in enumerate(multiples)
            },
        )


def pruning(found: dict) -> Iterator[str]:
    """Figures 5.4 to 5.6."""
    wide = found["wide"]
    yield (
        f"Figure 5.4, {wide['units']} units a layer: whether the logarithms of the divergences have one mode (Silverman's "
        "test), and two normal distributions for them: apart where Ashman's D is above 2, and preferred to one by the gain of "
        "BIC. The depth of the valley between them is a share of the lower peak; nats are those of their middles."
    )
    rows = {name: {**row, "nats": [10**mean for mean in row["means"]]} for name, row in wide["layers"].items()}
    yield table(
        "layer",
        rows,
        {
            "active by the published threshold": whole("active"),
            "p of one mode": number("one_mode_p", 2),
            "Ashman's D": number("ashman_d", 2),
            "BIC gain": whole("bic_gain"),
            "depth of the valley": percent("valley"),
            "nats": joined(", ", number("nats/0", 2), number("nats/1", 2)),
            "in the upper": percent("upper_share"),
        },
    )
    rows = [(f"{name}, {depth}", row) for name, depths in found["sets"].items() for depth, row in depths.items()]
    yield table(
        "set, hidden layers",
        rows,
        {
            "nine tenths used up to the width": whole("widest_with_nine_tenths_active"),
            "most active": whole("most_active"),
            "active at the widest": whole("active_at_the_widest"),
            "of them in the first layer": percent("share_of_first_layer_at_the_widest"),
            "best width": whole("best_width"),
            "nats lost at the widest": number("log_likelihood_lost_at_the_widest"),
        },
    )


def deterministic(found: dict) -> Iterator[str]:
    """Moments against draws."""
    config = found["config"]
    widths, updates = config["widths"], config["checkpoints"][-1]
    yield (
        f"Networks of {len(widths)} × {widths[0]} units, {updates:,} updates, {config['seeds']} seeds; validation log "
        "likelihood in nats a row, processor seconds of a training with its scores, medians. Moments against draws in pairs of "
        "seeds: the mean difference with its 95% interval, above 0 where moments are better in likelihood, below 0 in error."
    )
    rows = [
        (f"{name}, {way}", {**means, "pair": row["against"].get(way)})
        for name, row in found["sets"].items()
        for way, means in row["ways"].items()
    ]
    yield table(
        "set, way",
        rows,
        {
            "log likelihood": number("log_likelihood", 4),
            "RMSE": number("rmse"),
            "seconds": number("seconds"),
            **{
                f"moments, {words}": joined(
                    ", ",
                    number(f"pair/{metric}/mean_difference", 2, sign=True),
                    interval(f"pair/{metric}/interval"),
                    word(f"pair/{metric}/verdict"),
                )
                for metric, words in (("log_likelihood", "likelihood"), ("rmse", "error"))
            },
            "× the seconds of moments": number("pair/times_our_seconds", 2),
        },
    )


def fits(found: dict) -> Iterator[str]:
    """Tables 5.1 to 5.4."""
    scores = {(row["study"], row["train"], row["model"], row["set"]): row for row in found["scores"]}
    sets = list(dict.fromkeys(row["set"] for row in found["scores"]))
    for study, train in dict.fromkeys((row["study"], row["train"]) for row in found["scores"]):
        models = dict.fromkeys(row["model"] for row in found["scores"] if (row["study"], row["train"]) == (study, train))
        rows = {model: {name: scores.get((study, train, model, name)) for name in sets} for model in models}
        yield f"{study.capitalize()}, {train} curves to train on: mean log density of a held-out curve ± deviation over runs."
        yield table("model", rows, {name: with_error(f"{name}/mean", f"{name}/std") for name in sets})
    yield "What the prose says, in pairs of runs; of scores to be minimised, so that below 0 the first is better:"
    yield table(
        "remark",
        ((row["claim"], row) for row in found["claims"]),
        {
            "set": word("set"),
            "trained on": whole("train"),
            "difference": number("mean_difference", 2, sign=True),
            "95% interval": interval("interval"),
            "verdict": word("verdict"),
        },
    )
    covered = ", ".join(f"{name} {share:.0%}" for name, share in found["share_within_two_deviations"].items())
    yield f"Of the rest of curves that had begun, within two standard deviations: {covered}."
    if found["missing"]:
        yield f"Sets that were not there: {', '.join(found['missing'])}."


def search(found: dict) -> Iterator[str]:
    """Figures 5.7 to 5.14."""
    yield (
        f"Mean regret of the best trained network at the end of the budget ± standard error over {found['seeds']} seeds, in "
        "deviations of the table."
    )
    yield from _regrets(found["sets"], found["results"], found["verdicts"])
    several = [name for name, about in found["sets"].items() if about["runs"] > 1]
    rest = {part: {name: found["architectures"][part][name] for name in several} for part in ("results", "verdicts")}
    if several:
        yield "The same of its architecture, by the mean of its runs; and what training one run of each architecture leaves:"
        yield from _regrets(found["sets"], **rest, extra={"training all": number("floor", 2)})


def _regrets(sets: dict, results: dict, verdicts: dict, extra: dict | None = None) -> Iterator[str]:
    """A table of methods, one of verdicts, and their sum."""
    methods = list(dict.fromkeys(method for rows in results.values() for method in rows))
    rows = {name: {**sets[name], **row} for name, row in results.items()}
    for first in range(0, len(methods), 8):  # so many fit on a page
        some = methods[first : first + 8]
        yield table("set", rows, {method: with_error(f"{method}/end", f"{method}/error") for method in some} | (extra or {}))
    rows = {
        name: {
            **sets[name],
            **row,
            "pair": results[name].get("final-performance BO", {}).get("ours_against_it"),
            "best": results[name][row["best_baseline"]].get("ours_against_it"),
        }
        for name, row in verdicts.items()
    }
    yield table(
        "set",
        rows,
        {
            "networks": whole("networks"),
            "against random, in the end": word("against_random"),
            "along the budget": word("against_random_along"),
            "against final-performance BO": joined(", ", won("pair"), word("pair/verdict")),
            "its end is reached after": percent("share_of_steps_of_final_performance"),
            "best baseline": word("best_baseline"),
            "against it": joined(", ", won("best"), word("best/verdict")),
        },
    )
    random = [row["against_random"] for row in verdicts.values()]
    best = [row["against_best_baseline"] for row in verdicts.values()]
    final = [at["verdict"] for row in rows.values() if (at := row["pair"])]
    shares = [row["share_of_steps_of_final_performance"] for row in verdicts.values()]
    middle = statistics.median(math.inf if share is None else share for share in shares)
    reached = "is not reached" if math.isinf(middle) else f"is reached after {middle:.0%} of the steps"
    yield (
        f"In the end better than random search on {random.count('better')} of {len(random)} sets and worse on "
        f"{random.count('worse')}; better than the best baseline on {best.count('better')}, worse on {best.count('worse')}; "
        f"against final-performance BO better on {final.count('better')}, undecided on {final.count('undecided')} and worse on "
        f"{final.count('worse')} of {len(final)}, whose end {reached} in the median over sets "
        f"(never on {shares.count(None)})."
    )
    yield "Every method in pairs of seeds, over all sets; better, undecided, worse:"
    yield table("method", {method: _counts(method, results) for method in methods}, {name: word(name) for name in _RIVALS})


_RIVALS = {"against random": "random", "against final-performance BO": "final-performance BO", "against bonas": "bonas"}
_OPPOSITE = {"better": "worse", "worse": "better", "undecided": "undecided"}


def _counts(method: str, results: dict) -> dict[str, str | None]:
    """How often a method is better than a rival, undecided and worse."""
    found: dict[str, str | None] = {}
    for name, rival in _RIVALS.items():
        rows = [row[method] for row in results.values() if method in row]
        if rival == "bonas":
            said = [_OPPOSITE[row["ours_against_it"]["verdict"]] for row in rows if "ours_against_it" in row]
        else:
            said = [row["against"][rival] for row in rows if rival in row["against"]]
        found[name] = ", ".join(str(said.count(each)) for each in ("better", "undecided", "worse")) if said else None
    return found


def defaults(found: dict) -> Iterator[str]:
    """How a search on learning curves begins and chooses."""
    yield f"Mean regret on made-up tables after so many whole networks' training; least in all: {found['best']}."
    at = [n for n in (2, 4, 6, 9, 12) if n <= found["config"]["networks"]]
    rows = {name: {"mean": mean} for name, mean in found["mean"].items()}
    yield table("variant", rows, {str(n): number(f"mean/{n - 1}") for n in at})
