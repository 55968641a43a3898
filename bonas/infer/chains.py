"""Checks of the arguments of Markov chain methods."""


def check_counts(samples: int, burn: int, thin: int) -> None:
    """Raise a ValueError unless samples, burn and thin are valid."""
    if samples < 1 or burn < 0 or thin < 1:
        raise ValueError(
            f"expected samples >= 1, burn >= 0 and thin >= 1; got {samples}, {burn} and {thin}"
        )
