"""Agrawal's sections, and that on many dimensions, which he leaves open."""

from collections.abc import Iterator

from pages.text import Cell, joined, number, percent, table, whole, won, word

QUARTILES = joined(" to ", number("final_regret/quartile", 2), number("final_regret/upper", 2))


def gps(found: dict) -> Iterator[str]:
    """Figure 11, the GP's side."""
    repeats, evaluations, success = (found["config"][name] for name in ("repeats", "evaluations", "success"))
    yield f"{repeats} repeats of {evaluations} evaluations; to succeed is to end within {success:g} of the minimum."
    rows = [(f"{name}, {label}", row) for name, by_label in found["results"].items() for label, row in by_label.items()]
    yield table(
        "function, search",
        rows,
        {
            "median final regret": number("final_regret/median", 2),
            "quartiles": QUARTILES,
            "succeed": percent("share_that_succeed"),
            "evaluations until the median does": whole("evaluations_until_the_median_succeeds"),
        },
    )


def spread(name: str, digits: int = 3) -> Cell:
    """A mean over data sets, and the least and the most."""
    ends = joined(" to ", number(f"{name}/least", digits), number(f"{name}/most", digits))
    return lambda row: f"{number(f'{name}/mean', digits)(row)} ({ends(row)})" if ends(row) else ""


def posterior(found: dict) -> Iterator[str]:
    """Figures 1 and 6 to 9."""
    yield f"Means over {found['config']['seeds']} data sets, the least and the most in brackets; 'published' is Agrawal's way."
    columns = {
        "truth within ± 2 deviations": "coverage",
        "root mean squared error": "rmse",
        "deviation at the data": "std_at_the_data",
        "away": "std_away",
        "largest R-hat of functions": "functions_r_hat_largest",
        "effective samples of functions, median": "functions_ess_median",
        "smallest": "functions_ess_smallest",
        "largest R-hat of parameters": "parameters_r_hat_largest",
    }
    ways = {way: row["over_data_sets"] for way, row in found["results"].items()}
    yield table("way", ways, {head: spread(name) for head, name in columns.items()})


def searches(found: dict) -> Iterator[str]:
    """Figures 10 and 11, both sides."""
    goals, against = found["goals"], found["network_against_gp"]
    keys = [(name, how) for name, by_how in goals.items() for how in by_how]
    rows = [
        (
            f"{name}, {how}",
            {
                "published": found["claims"].get(name),
                "goal": goals[name][how],
                "pair": against.get(name, {}).get(how),
            },
        )
        for name, how in keys
    ]
    yield table(
        "function, acquisition",
        rows,
        {
            "published": word("published"),
            "the network after": joined(" ", whole("goal/evaluations"), lambda _: "evaluations"),
            "median regret": number("goal/median_regret", 2),
            "wanted below": number("goal/wanted_below", 1),
            "reached": word("goal/reached"),
            "against the GP, won": won("pair"),
            "verdict": word("pair/verdict"),
        },
    )
    yield "The end of all runs:"
    named = [
        (f"{name}, {how}, {label}", row)
        for part in found["results"].values()
        for how, by_function in part.items()
        for name, by_label in by_function.items()
        for label, row in by_label.items()
    ]
    yield table(
        "function, acquisition, surrogate",
        named,
        {
            "repeats": whole("repeats"),
            "median final regret": number("final_regret/median", 2),
            "quartiles": QUARTILES,
            "below 0.01": percent("share_below_0.01"),
            "evaluations until the median is below 0.1": whole("evaluations_until_median_below/0.1"),
            "below 0.01 after": whole("evaluations_until_median_below/0.01"),
        },
    )
    tried = ", ".join(f"{each['x']:.3f}" for each in found["figure_10"]["proposals"])
    yield f"Figure 10, Forrester from {found['figure_10']['initial']} random points: the network asks for x = {tried}."


def many(found: dict) -> Iterator[str]:
    """Many dimensions."""
    yield "Differences are of log10 of the final regret, seed by seed: below 0, better. Ranks are among methods with all seeds."
    for result in found["results"].values():
        yield f"**{result['problem']}**, {result['columns']} columns, optimum {result['optimum']:.6g}:"
        rows = {
            name: {
                **row,
                "rank": result["mean_ranks"].get(name),
                **{other: result["pairs"].get(f"{name} against {other}") for other in ("random", "Sobol")},
            }
            for name, row in result["searches"].items()
        }
        beside = {f"against {other}": f"{other}/log_final_regret" for other in ("random", "Sobol")}
        yield table(
            "search",
            rows,
            {
                "assumes": word("needs"),
                "holds": word("holds"),
                "seeds": whole("seeds"),
                "median final regret": number("final_regret/median"),
                "quartiles": QUARTILES,
                "mean rank": number("rank", 2),
                "CPU seconds a seed": number("cpu_seconds_a_seed", 2),
                **{
                    head: joined(", ", won(path), number(f"{path}/mean_difference", 2, sign=True), word(f"{path}/verdict"))
                    for head, path in beside.items()
                },
            },
        )
