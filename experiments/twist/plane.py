"""Evaluate and draw a network's classification of the plane."""

import numpy as np
from matplotlib.axes import Axes

from bonas import nets

CLASSES = ("#B2182B", "#2166AC")  # red and blue, the ends of the shading
STRONG = 0.5  # classification is uncertain if the outputs differ by less
_SIDE = np.linspace(0.0, 1.0, 151)


def outputs(shape: nets.Shape, architecture: nets.Architecture, params) -> np.ndarray:
    """Return blue minus red output (151, 151) over the unit square; 1 is certainly blue."""
    x = np.stack(np.meshgrid(_SIDE, _SIDE), axis=-1).reshape(-1, 2).astype(np.float32)
    red, blue = np.asarray(nets.apply(shape, params, x, architecture)).T
    return (blue - red).reshape(len(_SIDE), len(_SIDE))


def draw(axis: Axes, plane: np.ndarray, points: dict[str, tuple]) -> None:
    """Shade the plane, outline the uncertain part, and draw points {label: (marker, x, y)}."""
    image = axis.imshow(
        plane,
        origin="lower",
        extent=(0, 1, 0, 1),
        cmap="RdBu",
        vmin=-1,
        vmax=1,
        alpha=0.55,
    )
    if np.ptp(plane) > 0.0:
        axis.contour(
            _SIDE,
            _SIDE,
            plane,
            [-STRONG, STRONG],
            colors="0.35",
            linewidths=0.8,
            linestyles="--",
        )
    for label, (marker, x, y) in points.items():
        for color, there in (
            *zip(CLASSES, np.asarray(y).T > 0.5, strict=True),
            ("black", np.zeros(len(y), bool)),
        ):
            look = (
                {"facecolors": "none", "edgecolors": color}
                if marker == "o"
                else {"color": color}
            )
            # one legend entry for both classes
            name = label if color == "black" else None
            axis.scatter(
                *np.asarray(x)[there].T,
                marker=marker,
                s=32,
                linewidths=1.5,
                clip_on=False,
                zorder=3,
                label=name,
                **look,
            )
    axis.set(
        xlabel="$x_1$",
        ylabel="$x_2$",
        xlim=(0, 1),
        ylim=(0, 1),
        xticks=[0, 0.5, 1],
        yticks=[0, 0.5, 1],
    )
    axis.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.14),
        ncols=2,
        frameon=False,
        handletextpad=0.2,
    )
    bar = axis.figure.colorbar(
        image, ax=axis, shrink=0.85, ticks=[-1, -STRONG, 0, STRONG, 1]
    )
    bar.set_label("blue output − red output")
