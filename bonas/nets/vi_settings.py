"""Settings and hyperparameters of variational training, and their validation."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np
from jax.typing import ArrayLike

from bonas.nets.bnn_vi import VI
from bonas.nets.settings import Examples, check_batch
from bonas.nets.shapes import Shape


@jax.tree_util.register_static
@dataclass(frozen=True)
class TrainingPlan:
    """Number of updates, batch size and scoring of variational training; compiled once per plan.

    Args:
        checkpoints: Increasing numbers of updates after which to score the network; training ends
            at the last.
        batch: Rows per update; None for all of them.
        draws: Samples of the outputs per score.
        window: Scores are means over this many updates before a checkpoint. Hutchinson uses 100
            draws over 20 updates, and 50 updates in the published code.
    """

    checkpoints: tuple[int, ...] = (500, 1000, 1500, 2000, 2500, 3000, 4000, 5000)
    batch: int | None = None
    draws: int = 100
    window: int = 1

    def __post_init__(self) -> None:
        points = np.asarray(self.checkpoints)
        integers = points.ndim == 1 and points.dtype.kind == "i" and points.size > 0
        if not integers or (np.diff(points, prepend=0) <= 0).any():
            raise ValueError(
                "checkpoints must be increasing numbers of updates, the first at least 1; "
                f"got {self.checkpoints!r}"
            )
        object.__setattr__(self, "checkpoints", tuple(points.tolist()))
        for name in ("draws", "window", "batch"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1; got {value}")
        if self.window > np.diff(points, prepend=0).min():
            raise ValueError(
                f"window must be at most the smallest distance between checkpoints, from 0 on; "
                f"got {self.window} with checkpoints {self.checkpoints}"
            )


class VIHyperparameters(NamedTuple):
    """Hyperparameters of variational training that may differ between networks of one program."""

    learning_rate: ArrayLike = 1e-3  # () of Adam
    # () of the weights, or the mode of its inverse-gamma prior
    prior_variance: ArrayLike = 1.0
    noise: ArrayLike = 0.0025  # () initial noise variance: exp(−6), rounded
    # () weight of the likelihood. Hutchinson's code, which repeats the data m times, gives it the
    # weight m².
    repeats: ArrayLike = 1.0


def check_vi(
    shape: Shape, vi: VI, plan: TrainingPlan, hyper: VIHyperparameters, data: Examples
) -> None:
    """Raise a ValueError unless shape, settings, hyperparameters and data fit together.

    Values are checked only outside `jit`, where they are known.
    """
    if data.x.ndim != 2 or data.x.shape[1] != shape.inputs or data.y.shape[1:] != (1,):
        raise ValueError(
            f"expected x of shape (n, {shape.inputs}) and y of shape (n, 1); "
            f"got {data.x.shape} and {data.y.shape}"
        )
    outputs = 1 + vi.head
    if shape.outputs != outputs:
        raise ValueError(
            f"a network {'with' if vi.head else 'without'} a variance head has {outputs} outputs; "
            f"got a shape with {shape.outputs}"
        )
    if data.valid_x is None:
        raise ValueError(
            "scores need validation rows: examples(x, y, valid_x, valid_y)"
        )
    check_batch(plan.batch, len(data.x))
    for name, value in hyper._asdict().items():
        if (
            not isinstance(value, jax.core.Tracer)
            and not (np.asarray(value) > 0.0).all()
        ):
            raise ValueError(f"{name} must be positive; got {value}")
