"""Format numbers with significant digits, and means with standard errors."""

import math

LARGE = 1e6  # larger numbers are shown with powers of ten


def number(value: float, style: str) -> str:
    """Return a number with `style` significant digits, with a sign if it starts with "+"."""
    if not value:
        return "0"
    sign = "+" if style.startswith("+") else ""
    digits = int(style.lstrip("+") or 3)
    plain = 10**digits <= abs(value) < LARGE
    text = format(value, f"{sign},.0f" if plain else f"{sign}#.{digits}g").rstrip(".")
    return text.replace("-", "−", 1) if text.startswith("-") else text


def with_error(mean: float, error: float | None, style: str) -> str:
    """Return a mean with its standard error, which has two significant digits."""
    if not error:
        return number(mean, style)
    decimals = max(0, 1 - math.floor(math.log10(error)))
    return f"{mean:{style}.{decimals}f} ± {error:.{decimals}f}".replace("-", "−", 1)
