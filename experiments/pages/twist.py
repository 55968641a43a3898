"""Twist's sections."""

from collections.abc import Iterator

from pages.text import interval, joined, number, percent, table, whole, with_error, won, word


def training(found: dict) -> Iterator[str]:
    """Figures 3 and 4."""
    yield f"Over {found['config']['seeds']} seeds; medians are of those that learn."
    of_those = "medians_of_those_that_learn"
    yield table(
        "",
        found["results"],
        {
            "learn": percent("share_of_seeds_that_learn"),
            "overfit, of those": percent("share_that_overfit_of_those_that_learn"),
            "costs part past the stated epoch": percent("share_of_seeds_whose_costs_part_past_the_stated_epoch"),
            "epoch of the least validation cost": whole(f"{of_those}/epoch_of_the_lowest"),
            "validation points right": percent(f"{of_those}/validation_accuracy"),
            "plane that is uncertain": percent(f"{of_those}/share_of_the_plane_that_is_uncertain"),
            "looks at which the training cost rose": percent("median_share_of_looks_at_which_the_training_cost_rose"),
        },
    )


def posteriors(found: dict) -> Iterator[str]:
    """Figures 5 and 6."""
    config, results = found["config"], found["results"]
    away = {f"deviation at {x:g} from data": number(f"std_at_distances/mean/{i}") for i, x in enumerate(config["distances"])}
    yield f"Over {config['seeds']} seeds."
    yield table(
        "posterior",
        results["panels"],
        {
            "root mean squared error": with_error("rmse/mean", "rmse/standard_error"),
            "of the domain within the band": percent("coverage/mean", 1),
            **away,
        },
    )
    better = percent("share_of_seeds_where_appropriate_fits_better", 1)(results)
    faster = [f"{share:.0%}" for share in results["share_of_seeds_where_std_rises_faster_for_smaller"]]
    yield (
        f"The appropriate basis fits better in {better} of seeds. The deviation rises faster for the smaller length scale in "
        f"{', '.join(faster)} of seeds, from the data to the distances above."
    )


def stages(found: dict) -> Iterator[str]:
    """Figure 7."""
    yield f"Over {found['config']['seeds']} seeds, {found['config']['evaluations']} evaluations each."
    yield table(
        "after evaluations",
        ((str(row["evaluations"]), row) for row in found["results"]["stages"]),
        {
            "distance of the best point from the minimum": number("distance"),
            "regret": number("regret"),
            "deviation near the minimum": number("std_near"),
            "deviation over the domain": number("std"),
        },
    )
    yield table(
        "",
        {"all seeds": found["results"]},
        {
            "new points near the minimum": percent("share_of_new_points_near"),
            "of the domain that is so near": percent("share_of_the_domain"),
            "end within the tolerance": percent("share_that_succeed"),
        },
    )


def search(found: dict) -> Iterator[str]:
    """Figure 8."""
    kinds = {"one training": "one training an evaluation", "averaged": f"means of {found['config']['averaged']} trainings"}
    for kind, words in kinds.items():
        if kind in found["results"]:
            yield from _searches(words, found["results"][kind])
    rate = found["results"]["learning_rate"]
    yield table(
        "learning rate",
        {"swept": rate},
        {
            "best": number("best_rate", 2),
            "accuracy lost at the low end": joined(
                ", ", number("drop_at_the_low_end/mean", 2), interval("drop_at_the_low_end/interval")
            ),
            "at the high end": joined(", ", number("drop_at_the_high_end/mean", 2), interval("drop_at_the_high_end/interval")),
            "seeds with both drops": percent("share_of_seeds_with_an_interior_optimum_and_both_drops"),
        },
    )


def _searches(words: str, part: dict) -> Iterator[str]:
    yield f"{words[0].upper()}{words[1:]}: errors of the designs found, trained anew and scored on unseen points."
    yield table(
        "search",
        part["searches"],
        {
            "error on unseen points, mean": percent("test_error/mean", 1),
            "median": percent("test_error/median", 1),
            "best validation error": percent("best_validation_error", 1),
            "cost of all evaluations": number("cost_of_all_evaluations"),
            "layers of the design": number("mean_layers_of_the_design", 2),
            "units": whole("median_units_of_the_design"),
            "suggestions larger than random ones": percent("suggestion_larger_than_a_random_one/mean"),
        },
    )
    yield table(
        "in pairs of seeds",
        part["pairs"],
        {
            "unseen points: difference": number("test_error/mean_difference", 2, sign=True),
            "95% interval": interval("test_error/interval"),
            "won": won("test_error"),
            "verdict": word("test_error/verdict"),
            "validation: difference": number("best_validation_error/mean_difference", 2, sign=True),
            "interval": interval("best_validation_error/interval"),
            "won there": won("best_validation_error"),
            "verdict there": word("best_validation_error/verdict"),
        },
    )
