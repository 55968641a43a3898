"""Train the variational networks of benchmarks.curves in a hand-written PyTorch loop; one thread.

    python torch_vi.py job.json

The model equals the one in bonas: mean-field normal weights, local reparameterization, one
inverse-gamma prior per layer with its density in the bound, learned noise, Adam, float32. Prints
one line of JSON.
"""

import itertools
import json
import math
import sys
from importlib.metadata import version
from pathlib import Path

import torch
from contenders import Clock, tell

SHAPE = 4.4798  # shape of the inverse-gamma prior, whose mode is 1


class Layer(torch.nn.Module):
    def __init__(self, incoming: int, units: int):
        super().__init__()
        self.mean = torch.nn.Parameter(
            torch.nn.init.trunc_normal_(
                torch.empty(incoming, units), 0.0, 0.1, -0.2, 0.2
            )
        )
        self.log_std = torch.nn.Parameter(torch.full((incoming, units), -5.5))
        self.bias_mean = torch.nn.Parameter(
            torch.nn.init.trunc_normal_(torch.empty(units), 0.0, 0.1, -0.2, 0.2)
        )
        self.bias_log_std = torch.nn.Parameter(torch.full((units,), -5.5))

    def forward(self, h, draws: int):
        center = h @ self.mean + self.bias_mean
        spread = (h * h) @ torch.exp(2 * self.log_std) + torch.exp(
            2 * self.bias_log_std
        )
        return center + torch.sqrt(spread + 1e-12) * torch.randn(
            draws, *center.shape[-2:]
        )

    def divergence(self):
        beta = 1.0 + SHAPE
        squares = sum((torch.exp(2 * s) + m**2).sum() for m, s in self.pairs())
        count = sum(m.numel() for m, _ in self.pairs())
        variance = (squares + 2 * beta) / (count + 2 * SHAPE + 2)
        logs = sum(s.sum() for _, s in self.pairs())
        away = 0.5 * (squares / variance - count + count * torch.log(variance)) - logs
        density = (
            SHAPE * math.log(beta)
            - math.lgamma(SHAPE)
            - (SHAPE + 1) * torch.log(variance)
            - beta / variance
        )
        return away - density

    def pairs(self):
        return (self.mean, self.log_std), (self.bias_mean, self.bias_log_std)


def train(job: dict, x, y, updates: int) -> float:
    """Return the bound per row at the last update."""
    widths = [x.shape[1], *job["widths"], 1]
    layers = torch.nn.ModuleList(Layer(a, b) for a, b in itertools.pairwise(widths))
    log_noise = torch.nn.Parameter(torch.tensor(-6.0))
    optimizer = torch.optim.Adam(
        [*layers.parameters(), log_noise], lr=job["learning_rate"]
    )
    n, batch, order = len(x), job["batch"] or len(x), None
    turns = -(-n // batch)
    bound = torch.zeros(())
    for step in range(updates):
        rows, values = x, y
        if turns > 1:
            if step % turns == 0:
                order = torch.randperm(n)
            some = order[step % turns * batch : (step % turns + 1) * batch]
            rows, values = x[some], y[some]
        h = rows[None]
        for layer in layers[:-1]:
            h = torch.relu(layer(h, job["draws"]))
        outputs = layers[-1](h, job["draws"])[..., 0]
        fit = (
            -0.5
            * (
                math.log(2 * math.pi)
                + log_noise
                + (values - outputs) ** 2 * torch.exp(-log_noise)
            ).mean()
        )
        bound = fit - sum(layer.divergence() for layer in layers) / n
        optimizer.zero_grad()
        (-bound).backward()
        optimizer.step()
    return float(bound.detach())


def main() -> None:
    torch.set_num_threads(1)
    job = json.loads(Path(sys.argv[1]).read_text())
    torch.manual_seed(job["seed"])
    x, y = (torch.tensor(job[name], dtype=torch.float32) for name in ("x", "y"))
    train(job, x, y, 5)
    clock = Clock()
    bounds = [train(job, x, y, job["updates"]) for _ in range(job["networks"])]
    tell(
        {
            **clock.read(job["networks"] * job["updates"]),
            "bound": sum(bounds) / len(bounds),
            "torch": version("torch"),
        }
    )


if __name__ == "__main__":
    main()
