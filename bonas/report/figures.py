"""The figures of a report, drawn from trials and their space; text from users is escaped.

In all functions, `scale` is the axis of trial values, and `sign` is 1 if low values are good and -1
if high values are.
"""

import math
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
from jaxtyping import Float

from bonas.report.drawing import (
    Panel,
    Scale,
    format_value,
    label_text,
    picture,
    rectangle,
    responsive,
    shorten,
)
from bonas.report.fitted_model import Quantiles, Slice
from bonas.spaces import Parameter, Space
from bonas.study import TrialRecord

# Values that span at least this ratio are shown on a logarithmic scale.
_LOG_RATIO = 100.0
# Values that are this many times farther from the best than 80% of the values are at the edge.
_OUTLIER_RATIO = 5.0
_LARGEST = 1e280  # values beyond are drawn at the edge: the length of an axis is finite
# Learning curves: the curves that are shown, and the points of each.
_MAX_CURVES = 100
_MAX_STEPS = 60
# Largest horizontal jitter, in pixels, of the marks at one option.
_JITTER = 7.0


def value_of(trial: TrialRecord) -> float:
    """Return the value of a complete trial."""
    return cast(float, trial.value)


def count_outside(trials: Sequence[TrialRecord], scale: Scale) -> int:
    """Count the trials whose values are outside the axis and drawn at its end."""
    return sum(not scale.contains(value_of(trial)) for trial in trials)


def trial_title(trial: TrialRecord) -> str:
    """Return the title of a mark: the number and value of its trial."""
    return f"trial {trial.number}: {format_value(value_of(trial))}"


def parameter_scale(parameter: Parameter) -> Scale:
    """Return the axis of a parameter."""
    if parameter.choices:
        return Scale(0.0, 1.0, options=parameter.choices)
    whole = parameter.size < math.inf
    return Scale(float(parameter.low), float(parameter.high), parameter.log, whole)


def value_scale(values: Sequence[float], sign: float) -> Scale:
    """Return the axis of trial values.

    It is logarithmic if the values span decades, and does not extend to a few very bad values.

    Args:
        values: The values.
        sign: 1 if low values are good, -1 if high values are.
    """
    values = np.clip(values, -_LARGEST, _LARGEST).tolist()
    low = min(values)
    high = max(values)
    if low > 0.0 and high / low > _LOG_RATIO:
        room = math.exp(0.04 * (math.log(high) - math.log(low)))
        return Scale(low / room or low, high * room, log=True)
    costs = np.sort(sign * np.asarray(values))
    end = costs[0] + 2.0 * (costs[int(0.8 * (len(costs) - 1))] - costs[0])
    if costs[-1] - costs[0] > _OUTLIER_RATIO / 2.0 * (end - costs[0]) > 0.0:
        low, high = sorted((sign * costs[0], sign * end))
    room = 0.05 * (high - low) or 0.05 * abs(low) or 1.0
    return Scale(low - room, high + room)


def progress(
    trials: Sequence[TrialRecord],
    best: TrialRecord,
    scale: Scale,
    sign: float,
    label: str = "value",
) -> str:
    """Draw values by trial number, the best value so far, and failed trials at the bottom."""
    complete = [trial for trial in trials if trial.value is not None]
    failed = [trial for trial in trials if trial.state == "failed"]
    best_so_far = sign * np.minimum.accumulate(
        [sign * value_of(trial) for trial in complete]
    )
    first = trials[0].number
    last = trials[-1].number
    steps = [
        (trial.number, value)
        for trial, value in zip(complete, best_so_far, strict=True)
    ]
    steps.append((last, best_so_far[-1]))

    def draw(width: int) -> str:
        x = Scale(first, max(last, first + 1), whole=True)
        panel = Panel(x, scale, width, 300, "trial", label)
        points = [(trial.number, value_of(trial)) for trial in complete]
        panel.dots(points, "dot", [trial_title(trial) for trial in complete])
        panel.line(steps, "line", stepped=True)
        points = [(trial.number, scale.low) for trial in failed]
        reasons = [f"trial {trial.number} failed: {trial.error}" for trial in failed]
        panel.dots(points, "failed", reasons)
        panel.dots([(best.number, value_of(best))], "best", [trial_title(best)])
        return panel.svg("Value of every trial, and the best so far")

    return responsive(draw)


# One parameter at a time


def slices(
    trials: Sequence[TrialRecord], best: TrialRecord, space: Space, scale: Scale
) -> list[str]:
    """Draw the value against each parameter, without trials that do not use it."""
    figures = []
    for name, parameter in space.parameters.items():
        active = [trial for trial in trials if name in trial.config]
        panel = Panel(parameter_scale(parameter), scale, x_label=name)
        panel.dots(
            [(trial.config[name], value_of(trial)) for trial in active],
            "dot",
            [
                f"{trial_title(trial)}, {name} {format_value(trial.config[name])}"
                for trial in active
            ],
            shift=[_jitter(trial.number) for trial in active]
            if parameter.choices
            else (),
        )
        if name in best.config:
            panel.dots(
                [(best.config[name], value_of(best))],
                "best",
                [f"the best, {trial_title(best)}"],
                shift=[_jitter(best.number)] if parameter.choices else (),
            )
        figures.append(panel.svg(f"Value against {name}"))
    return figures


def _jitter(seed: int) -> float:
    """Return a pseudo-random shift that is the same in every report."""
    return _JITTER * (2.0 * (seed * 0.6180339887 % 1.0) - 1.0)


def importance(shares: Mapping[str, float]) -> str:
    """Draw a bar for the share of each parameter."""
    largest = max(shares.values()) or 1.0

    def draw(width: int) -> str:
        left = min(6.5 * max(len(name) for name in shares), 0.4 * width) + 12
        parts = []
        for i, (name, share) in enumerate(shares.items()):
            y = 26.0 * i + 4
            length = max((width - left - 60) * share / largest, 1.0)
            text = f"{share:.0%}" if share >= 0.005 else "<1%"
            label = shorten(name, int(left / 6.5))
            parts.append(label_text(left - 8, y + 13, label, "name", "end", title=name))
            parts.append(rectangle(left, y, length, 17, "bar"))
            parts.append(label_text(left + length + 7, y + 13, text, "tick"))
        return picture(width, 26.0 * len(shares) + 4, "Importance of parameters", parts)

    return responsive(draw)


def posterior(
    found: Mapping[str, Slice], best: TrialRecord, space: Space, scale: Scale
) -> list[str]:
    """Draw the model along each parameter: median, central 95% and the best trial."""
    ends = [
        end for each in found.values() for end in (each.values.low, each.values.high)
    ]
    # not wider than the trials
    shown = np.clip(np.concatenate(ends), scale.low, scale.high)
    low = min(float(shown.min()), value_of(best))
    high = max(float(shown.max()), value_of(best))
    room = 0.0 if scale.log else 0.06 * (high - low)
    y = Scale(low - room, high + room, scale.log)
    figures = []
    for name, part in found.items():
        panel = Panel(parameter_scale(space.parameters[name]), y, x_label=name)
        _draw_quantiles(panel, part, ordered=space.parameters[name].ordered)
        panel.dots(
            [(best.config[name], value_of(best))],
            "best",
            [f"the best, {trial_title(best)}"],
        )
        figures.append(panel.svg(f"The model along {name}"))
    return figures


def _draw_quantiles(panel: Panel, part: Slice, *, ordered: bool) -> None:
    """Draw a band and a line, or whiskers and dots for unordered options."""
    rows = list(zip(part.at, *(each.tolist() for each in part.values), strict=True))
    medians = [(at, median) for at, _, median, _ in rows]
    if ordered:
        panel.band([(at, low, high) for at, low, _, high in rows], "band")
        panel.line(medians, "line")
        return
    for at, low, _, high in rows:
        panel.bar(at, low, high, "whisker")
    panel.dots(medians, "accent", [format_value(median) for _, median in medians])


# Learning curves


def curves(
    trials: Sequence[TrialRecord],
    best: TrialRecord,
    sign: float,
    label: str = "reported value",
) -> tuple[str, int, int]:
    """Draw the reported values by step, for the best trials with at least two reports.

    Returns:
        The figure, the number of trials shown, and the number of values outside the axis.
    """
    finite = {
        trial.number: [
            (step, value) for step, value in trial.reports if np.isfinite(value)
        ]
        for trial in trials
    }
    ranked = [trial for trial in trials if len(finite[trial.number]) > 1]
    ranked = sorted(ranked, key=lambda trial: sign * value_of(trial))[:_MAX_CURVES]
    if not ranked:
        return "", 0, 0
    lines = {trial.number: _thin(finite[trial.number]) for trial in ranked}
    steps = [step for line in lines.values() for step, _ in line]
    values = [value for line in lines.values() for _, value in line]
    y = value_scale(values, sign)

    def draw(width: int) -> str:
        x = Scale(min(steps), max(steps), whole=True)
        panel = Panel(x, y, width, 300, "step", label)
        for trial in reversed(ranked):
            kind = "best-line" if trial.number == best.number else "curve"
            panel.line(lines[trial.number], kind, title=trial_title(trial))
        return panel.svg("Learning curves")

    return responsive(draw), len(ranked), sum(not y.contains(value) for value in values)


def _thin(line: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Keep at most `_MAX_STEPS` points of a curve, including the ends."""
    keep = np.unique(
        np.linspace(0, len(line) - 1, min(len(line), _MAX_STEPS)).astype(int)
    )
    return [line[i] for i in keep]


# Calibration


def calibration(
    trials: Sequence[TrialRecord],
    residuals: Float[np.ndarray, " n"],
    predicted: Quantiles,
    scale: Scale,
    noun: str = "trial",
) -> list[str]:
    """Draw leave-one-out predictions against values, and the coverage of their intervals."""
    panel = Panel(
        scale, scale, x_label="observed", y_label=f"predicted without the {noun}"
    )
    panel.line([(scale.low, scale.low), (scale.high, scale.high)], "rule")
    for trial, low, high in zip(trials, predicted.low, predicted.high, strict=True):
        panel.bar(value_of(trial), low, high, "whisker faint")
    points = [
        (value_of(trial), median)
        for trial, median in zip(trials, predicted.middle, strict=True)
    ]
    panel.dots(points, "dot", [trial_title(trial) for trial in trials])
    covered = coverage(_coverage_shares(np.abs(residuals)), f"{noun}s within, %")
    return [panel.svg("Predicted against observed values"), covered]


def _coverage_shares(sizes: Float[np.ndarray, " n"]) -> list[tuple[float, float]]:
    """Return pairs of nominal and actual coverage of central intervals, in percent."""
    from scipy.stats import norm

    shares = [
        (level, 100.0 * float((sizes <= norm.ppf(0.5 + level / 200.0)).mean()))
        for level in np.arange(0.0, 100.0, 2.0)
    ]
    return [*shares, (100.0, 100.0)]


def coverage(shares: Sequence[tuple[float, float]], label: str) -> str:
    """Draw the actual against the nominal coverage of intervals, both in percent."""
    percent = Scale(0.0, 100.0)
    panel = Panel(percent, percent, x_label="interval, %", y_label=label)
    panel.line([(0.0, 0.0), (100.0, 100.0)], "rule")
    panel.line(shares, "line")
    return panel.svg("Coverage of intervals of each size")
