"""Raiders' sections."""

from collections.abc import Iterator

from pages.text import interval, joined, number, percent, table, whole, with_error, won, word, written

MAIN = "arc"  # what the others are compared with
PLAIN, CONTIGUOUS, SAMPLED = "map, random folds", "map, contiguous folds", "sampled, random folds"


def table1(found: dict) -> Iterator[str]:
    """Table 1."""
    config, results = found["config"], found["results"]
    logs, plain = results.get(f"log, {PLAIN}", {}), results.get(f"original, {PLAIN}", {})
    rows = {
        name: {
            "log": logs.get(name),
            "original": plain.get(name),
            "rescaled": found["rescaled"].get(f"{name}, {PLAIN}"),
            "published": found["published"].get(name),
        }
        for name in sorted(logs, key=lambda name: logs[name]["nmse"]) + [name for name in plain if name not in logs]
    }
    yield f"{found['data']}; {config['folds']} folds drawn anew {config['seeds']} times; normalised squared errors."
    published = {
        scale: joined(" ± ", *(number(f"published/{scale}/{i}", 3 - i) for i in (0, 1))) for scale in ("log", "original")
    }
    yield table(
        "model",
        rows,
        {
            "logarithms": with_error("log/nmse", "log/error"),
            "published, logarithms": published["log"],
            "in pairs with the GP": with_error("log/minus_baseline/mean", "log/minus_baseline/error", sign=True),
            "p": number("log/minus_baseline/p", 2),
            "log density": number("log/log_predictive_density"),
            "original values": with_error("original/nmse", "original/error"),
            "through logarithms": number("rescaled/mean"),
            "published, original": published["original"],
        },
    )
    yield "Other folds, and hyperparameters that are sampled:"
    others = {
        f"{name}, {how}": {
            "log": results.get(f"log, {how}", {}).get(name),
            "original": results.get(f"original, {how}", {}).get(name),
        }
        for how in (CONTIGUOUS, SAMPLED)
        for name in results.get(f"log, {how}", {})
    }
    yield table(
        "model, way",
        others,
        {
            "logarithms": with_error("log/nmse", "log/error"),
            "folds": whole("log/folds"),
            "original values": with_error("original/nmse", "original/error"),
            "folds there": whole("original/folds"),
        },
    )


def search(found: dict) -> Iterator[str]:
    """Figures 3a and 3c."""
    config = found["config"]
    yield f"{config['data']}: {config['seeds']} seeds of {config['evaluations']} trainings; main is `{found['main']}`."
    deep = {
        name: {**row, "deep": sum(row["share_of_choices_by_depth"][3:])} for name, row in found["results"].items()
    }  # three hidden layers or more
    pair = "main_minus_this_in_log_error"
    yield table(
        "search",
        deep,
        {
            "best validation error, median": percent("median", 1),
            "on unseen images": percent("median_test_error", 1),
            "least there": percent("least_test_error", 1),
            "choices of three hidden layers or more": percent("deep"),
            "main minus this, log error": with_error(f"{pair}/mean", f"{pair}/standard_error", sign=True),
            "main is better in": joined(" of ", whole(f"{pair}/seeds_where_main_is_better"), whole(f"{pair}/seeds")),
        },
    )


def tables(found: dict) -> Iterator[str]:
    """Figure 3 on tables."""
    config, results = found["config"], found["results"]
    yield (
        f"{config['evaluations']} evaluations, {config['seeds']} seeds. Regret is the distance from the best network of the "
        "table, in points of validation error; wins and losses are against the arc in pairs of seeds."
    )
    for name, part in results.items():
        ranks = part["mean_ranks"]["methods"]
        rows = {
            who: {**row, "pair": part["pairs"].get(f"{who} against {MAIN}"), "rank": ranks.get(who)}
            for who, row in part["searches"].items()
        }
        yield f"**{name}**, {part['networks']} networks, {part['columns']} columns, least error {part['least_error']:.2%}:"
        yield table(
            "search",
            rows,
            {
                "seeds": whole("seeds"),
                "median regret": number("final_regret/median", 2, times=100.0),
                "mean rank": number("rank/final", 2),
                "find the best": percent("share_that_find_the_best"),
                "won": won("pair/final_error"),
                "mean difference, points": interval("pair/final_error/interval", times=100.0),
                "verdict": word("pair/final_error/verdict"),
                "CPU seconds a seed": number("cpu_seconds_a_seed", 2),
            },
        )
    common = list(next(iter(results.values()))["mean_ranks"]["methods"])
    mean = {who: [part["mean_ranks"]["methods"].get(who, {}).get("final") for part in results.values()] for who in common}
    told = ", ".join(f"{who} {written(sum(of) / len(of), 2)}" for who, of in mean.items() if None not in of)
    yield f"Mean ranks over all tables: {told}."


def missing(found: dict) -> Iterator[str]:
    """The demonstration with missing data."""
    results = found["results"]
    truth = with_error("return_where_missing/mean", "return_where_missing/standard_error")(results)
    yield f"Over {found['config']['seeds']} seeds; the mean return where the score is missing is {truth}."
    names = ("squared_error", "squared_error_where_missing", "return_predicted_where_missing")
    yield table(
        "way",
        results["ways"],
        {name.replace("_", " "): with_error(f"{name}/mean", f"{name}/standard_error") for name in names},
    )
