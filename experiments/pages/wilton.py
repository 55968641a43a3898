"""Wilton's section, which has two files."""

from collections.abc import Iterator

from pages.text import joined, number, table, whole, with_error, word


def experiment(found: dict) -> Iterator[str]:
    """One of Wilton's two experiments."""
    config, results = found["config"], found["results"]
    design = ", ".join(map(str, results["published"]))
    yield (
        f"Published: ({design}), found within {results['iterations']} iterations. Here both designs are trained anew "
        f"{config['retrainings']} times and scored on new rows, over {config['seeds']} seeds; below 1, ours is better."
    )
    yield table(
        "ratio of test losses",
        {name: results[name] for name in ("found", "recommended")},
        {
            "median": number("median_ratio", 4),
            "quartiles": joined(" to ", number("quartiles/0", 4), number("quartiles/1", 4)),
            "seeds at least as good": whole("seeds_at_least_as_good"),
            "reached": word("reached"),
            "best among the initial designs": whole("from_the_initial_designs"),
        },
    )
    yield table(
        "seed",
        ((str(row["seed"]), row) for row in results["seeds"]),
        {
            "design found": joined(
                ", ",
                *(whole(f"found/design/{name}") for name in ("depth", "width", "members")),
                number("found/design/density", 2),
            ),
            "at iteration": whole("found/iteration"),
            "its loss": number("found/rmse"),
            "that of the published design": number("rmse_published"),
            "ratio": with_error("found/ratio", "found/ratio_error"),
        },
    )
    views = {name: row for name, row in results.get("views", {}).items() if row}
    if views:
        yield "Other data for each network (Wilton's views), against the design found:"
        yield table(
            "view",
            views,
            {
                "median ratio": number("median_ratio"),
                "seeds better": whole("seeds_better"),
                "near jumps": number("median_ratio_near_jumps"),
                "seeds better there": whole("seeds_better_near_jumps"),
            },
        )
