"""Train the networks of benchmarks.nets one by one in PyTorch; needs requirements.txt.

    python torch_nets.py job.json

Runs on one thread. The job holds the data, the networks and the training settings. Imports and a
few updates of a first network are not timed. Prints one line of JSON per trained network.
"""

import json
import sys
from pathlib import Path

import torch
from contenders import Clock, tell
from torch import nn

WARM_UP = 5  # updates of the first network before the clock starts
OPTIMIZERS = {
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
    "adadelta": lambda parameters: torch.optim.Adadelta(
        parameters, lr=1.0, rho=0.9, eps=1e-6
    ),
}


def network(inputs: int, widths: list[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Linear(inputs, width), nn.ReLU()]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, 1))


def sparse(model: nn.Module, density: float) -> list[torch.Tensor]:
    """Remove each weight and bias with probability 1 - density; return the masks."""
    masks = [
        (torch.rand_like(parameter) < density).to(parameter)
        for parameter in model.parameters()
    ]
    with torch.no_grad():
        for parameter, mask in zip(model.parameters(), masks, strict=True):
            parameter.mul_(mask)
    return masks


def train(
    job: dict, widths: list[int], x: torch.Tensor, y: torch.Tensor, updates: int
) -> nn.Module:
    """Train for `updates` steps of `batch` rows, permuted after every pass."""
    model = network(x.shape[1], widths)
    masks = sparse(model, job["density"]) if job["density"] < 1.0 else []
    optimizer, batch = (
        OPTIMIZERS[job["optimizer"]](model.parameters()),
        job["batch"] or len(x),
    )
    order = torch.arange(0)
    for _ in range(updates):
        if len(order) < batch:
            order = torch.randperm(len(x))
        rows, order = order[:batch], order[batch:]
        inputs, targets = (x, y) if batch == len(x) else (x[rows], y[rows])
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        for parameter, mask in zip(model.parameters(), masks, strict=False):
            parameter.grad.mul_(mask)
        optimizer.step()
    return model


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch.set_num_threads(1)
    torch.manual_seed(job["seed"])
    x, y, valid_x, valid_y = (
        torch.tensor(job[name], dtype=torch.float32)
        for name in ("x", "y", "valid_x", "valid_y")
    )
    train(job, job["widths"][0], x, y, WARM_UP)
    for widths in job["widths"]:
        clock = Clock()
        model = train(job, widths, x, y, job["updates"])
        spent = clock.read()
        with torch.no_grad():
            tell(
                {
                    "validation": float(
                        nn.functional.mse_loss(model(valid_x), valid_y)
                    ),
                    **spent,
                }
            )


if __name__ == "__main__":
    main()
