"""Convolutional networks that were really trained, with their learning curves: 1000 on CIFAR-10 and 1300 on SVHN.

MetaQNN's agent put them together layer by layer; Baker et al. 2018, "Accelerating neural architecture search using
performance prediction", published them (MIT licence). A net is written "[C(64,1,1), C(128,5,1), D(1,2), P(3,2), SM(10)]": a
convolution's filters, size and stride; dropout, the first of two; pooling's size and stride; FC, units of a fully connected
layer; GAP, global average pooling; SM, the softmax. Strides and dropout follow from the rest (`text`), which is what the
columns of the search space describe: layers, each with its kind, size and, if it is a convolution, filters; then either fully
connected layers with their units, or an average.
"""

import csv
import gzip
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bonas.problems.datasets import Source, find, locate
from bonas.spaces import Choice, Float, Int, Listed, Space
from bonas.spaces.parameters import Parameter

EPOCHS = 20
CONVOLUTION, POOLING = "convolution", "pooling"
KINDS = (CONVOLUTION, POOLING)
FILTERS, UNITS, SIZES = (64, 512), (128, 512), (1, 5)
MOST_DENSE = 2  # fully connected layers
# Baker et al. 2017 start at the highest and go to 0.4 of it whenever a network is no better than chance after an epoch: the
# rate that is recorded says something of how the training went.
RATES = (0.000026, 0.001)
CLASSES = 10
_STRIDES = {2: 2, 3: 2, 5: 3}  # of pooling, by size

_HOME = "https://raw.githubusercontent.com/MITAutoML/accelerating_nas/7a0abeb37787f51f47231c45af2796be697fe2cc/data"
_SHA256 = {
    "cifar10": "ba00613f32132d0e605b4652828d4e363e634f523b034db8a8a4cf96336f1c71",
    "svhn": "9407b8b58e1739244376a968ecf5ac1250360da67ca30834ce34eece91d53283",
}
NAMES = tuple(_SHA256)


class Layer(NamedTuple):
    """A convolution, or a pooling layer, which has no filters."""

    kind: str
    size: int
    filters: int = 0


class Network(NamedTuple):
    """What tells a network from others."""

    layers: tuple[Layer, ...]
    dense: tuple[int, ...] = ()  # units of the fully connected layers
    average: bool = False  # over each feature map, before the softmax

    @property
    def depth(self) -> int:
        """Layers, the softmax included and dropout left out, as the tables count them."""
        return len(self.layers) + len(self.dense) + self.average + 1


class Table(NamedTuple):
    """Networks and how their training went."""

    space: Listed  # of which only these networks exist
    x: np.ndarray  # (n, d) their rows
    error: np.ndarray  # (n,) 1 − validation accuracy after the last epoch
    curves: np.ndarray  # (n, epochs) validation accuracy after each epoch
    networks: tuple[Network, ...]
    depth: np.ndarray  # (n,) int: layers, the softmax included
    rate: np.ndarray  # (n,) learning rate


def load(name: str, *, rate: bool = True, download: bool = True, progress: bool = True) -> Table:
    """The networks that were trained on "cifar10" or "svhn", from the data folder or downloaded.

    rate: whether the recorded learning rate is a column of the space. Networks are different without it.
    """
    if name not in NAMES:
        raise ValueError(f"name is one of {', '.join(NAMES)}; got {name!r}")
    file = f"curves/metaqnn_{name}.csv"
    source = Source(file, _HOME, f"{_HOME}/metaqnn_{name}.csv", _SHA256[name])
    return read(find(f"{file}.gz") or locate(source, download=download, progress=progress), rate=rate)


def read(path: Path, *, rate: bool = True) -> Table:
    """The table of a CSV file with the columns net, lr and acc_1 to acc_20, gzipped or not."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = ("net", "lr", *(f"acc_{epoch}" for epoch in range(1, EPOCHS + 1)))
    missing = [column for column in columns if not rows or column not in rows[0]]
    if missing:
        raise ValueError(f"{path}: expected a CSV file with the column {missing[0]!r} and one row or more")
    try:
        numbers = np.array([[_number(i, row, column) for column in columns[1:]] for i, row in enumerate(rows)])
        return table([row["net"] for row in rows], numbers[:, 0], numbers[:, 1:], rate=rate)
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from None


def _number(i: int, row: dict[str, Any], column: str) -> float:
    try:
        return float(row[column])
    except (TypeError, ValueError):
        raise ValueError(f"row {i}: {column} is a number; got {row[column]!r}") from None


def table(nets: Sequence[str], rates: np.ndarray, curves: np.ndarray, *, rate: bool = True) -> Table:
    """The table of n nets as they are written, their learning rates (n,) and curves (n, epochs).

    Rows are counted from 0. Two networks with the same columns are refused: a search could not tell them apart.
    """
    networks = tuple(_parsed(i, net) for i, net in enumerate(nets))
    wrong = ~((curves > 0.0) & (curves < 1.0)).all(axis=1)
    if wrong.any():
        raise ValueError(f"row {wrong.argmax()}: accuracies lie between 0 and 1; got {curves[wrong.argmax()]}")
    full = space_of(max(len(network.layers) for network in networks), rate=rate)
    configs = [_config(network) | ({"rate": float(r)} if rate else {}) for network, r in zip(networks, rates, strict=True)]
    space = Listed(full, _rows(full, configs))
    depth = np.array([network.depth for network in networks])
    return Table(space, space.rows, 1.0 - curves[:, -1], curves, networks, depth, np.asarray(rates, float))


def space_of(positions: int, *, rate: bool = True) -> Space:
    """The space of networks of at most so many convolutions and pooling layers; the first is a convolution."""
    parameters: dict[str, Any] = {"layers": Int(1, positions)}
    for i in range(1, positions + 1):
        here = {"layers": (">=", i)} if i > 1 else None
        if i > 1:
            parameters[f"kind_{i}"] = Choice(*KINDS, when=here)
        parameters[f"size_{i}"] = Int(*SIZES, when=here)
        parameters[f"filters_{i}"] = Int(*FILTERS, log=True, when={f"kind_{i}": CONVOLUTION} if i > 1 else None)
    parameters["dense"] = Int(0, MOST_DENSE)
    for i in range(1, MOST_DENSE + 1):
        parameters[f"units_{i}"] = Int(*UNITS, log=True, when={"dense": (">=", i)})
    parameters["average"] = Choice(False, True, when={"dense": 0})
    if rate:
        parameters["rate"] = Float(*RATES, log=True)
    return Space(**parameters)


def parse(net: str) -> Network:
    """The network that a string describes; a ValueError where it is not written as `text` would."""
    layers, dense, average = [], [], False
    for kind, numbers in re.findall(r"([A-Z]+)\((\d+(?:,\d+)*)\)", net):
        first, *rest = (int(number) for number in numbers.split(","))
        if kind == "C" and rest:
            layers.append(Layer(CONVOLUTION, rest[0], first))
        elif kind == "P" and first in _STRIDES:
            layers.append(Layer(POOLING, first))
        elif kind == "FC":
            dense.append(first)
        average = average or kind == "GAP"
    if not layers or layers[0].kind != CONVOLUTION:
        raise ValueError(f"a net begins with a convolution; got {net!r}")
    network = Network(tuple(layers), tuple(dense), average)
    if text(network) != net:
        raise ValueError(f"cannot read {net!r}: a net of these layers is {text(network)!r}")
    return network


def text(network: Network) -> str:
    """The string of a network. Dropout follows every second layer and every fully connected one; how many there are, by
    which its rate rises to the end, includes one before the softmax that an odd layer or a fully connected one is not given."""
    half, dense = len(network.layers) // 2, len(network.dense)
    total = half if network.average else half + dense + 1 if dense else (len(network.layers) + 1) // 2
    words = []
    done = 0
    layers = [*map(_word, network.layers), *(f"FC({units})" for units in network.dense)]
    for i, word in enumerate(layers, start=1):
        words.append(word)
        if i % 2 == 0 or i > len(network.layers):
            done += 1
            words.append(f"D({done},{total})")
    words += [f"GAP({CLASSES})"] * network.average + [f"SM({CLASSES})"]
    return f"[{', '.join(words)}]"


def _word(layer: Layer) -> str:
    if layer.kind == CONVOLUTION:
        return f"C({layer.filters},{layer.size},1)"
    return f"P({layer.size},{_STRIDES[layer.size]})"


def _parsed(i: int, net: str) -> Network:
    try:
        return parse(net)
    except ValueError as problem:
        raise ValueError(f"row {i}: {problem}") from None


def _config(network: Network) -> dict[str, Any]:
    """The values of the columns that a network has, by name."""
    config: dict[str, Any] = {"layers": len(network.layers), "dense": len(network.dense)}
    for i, layer in enumerate(network.layers, start=1):
        config |= {f"kind_{i}": layer.kind} if i > 1 else {}
        config |= {f"size_{i}": layer.size} | ({f"filters_{i}": layer.filters} if layer.kind == CONVOLUTION else {})
    config |= {f"units_{i}": units for i, units in enumerate(network.dense, start=1)}
    return config | ({} if network.dense else {"average": network.average})


def _rows(space: Space, configs: list[dict[str, Any]]) -> np.ndarray:
    """`space.encode` of many configurations, column by column, which is a hundred times faster."""
    columns = []
    for name, parameter in space.parameters.items():
        numbers = np.full(len(configs), float(parameter.low))  # of one length, so that all columns share what is compiled
        for i, config in enumerate(configs):
            if name in config:
                numbers[i] = _position(i, name, parameter, config[name])
        there = np.array([name in config for config in configs])
        columns.append(np.where(there, np.asarray(parameter.unit(jnp.asarray(numbers))), 0.0))
    return np.stack(columns, axis=1)


def _position(i: int, name: str, parameter: Parameter, value) -> float:
    """The number of a value, the position of an option."""
    if isinstance(parameter, Choice):
        return parameter.names.index(value)
    if not parameter.low <= value <= parameter.high:
        raise ValueError(f"row {i}: {name} lies in [{parameter.low}, {parameter.high}]; got {value!r}")
    return value


def synthetic(key: Array, n: int, *, positions: int = 4) -> Table:
    """A table of the same form from a formula, for trying things out: errors fall with depth, filters and a little pooling,
    and curves rise to them."""
    space = space_of(positions)
    sample_key, noise_key = jax.random.split(key)
    drawn = dict.fromkeys(_network(space.decode(row)) for row in space.sample(sample_key, 2 * n))  # each once, in order
    networks = list(drawn)[:n]
    noise = np.asarray(jax.random.normal(noise_key, (len(networks), EPOCHS)))
    filters = np.array([np.mean([np.log2(max(layer.filters, 64) / 64) for layer in one.layers]) for one in networks])
    pools = np.array([sum(layer.kind == POOLING for layer in one.layers) for one in networks])
    depth = np.array([one.depth for one in networks])
    last = 0.9 - 0.5 * np.exp(-0.2 * depth - 0.2 * filters) - 0.05 * np.abs(pools - 1)
    curves = last[:, None] * (1.0 - 0.5 * np.exp(-np.arange(EPOCHS) / 5.0))[None, :] + 0.003 * noise
    return table([text(one) for one in networks], np.full(len(networks), RATES[1]), curves)


def _network(config: dict[str, Any]) -> Network:
    """A network with these columns, its sizes moved to those that exist."""
    layers = []
    for i in range(1, config["layers"] + 1):
        kind, size = config.get(f"kind_{i}", CONVOLUTION), config[f"size_{i}"]
        if kind == POOLING:
            layers.append(Layer(kind, min(_STRIDES, key=lambda other: abs(other - size))))
        else:
            layers.append(Layer(kind, size, config[f"filters_{i}"]))
    return Network(
        tuple(layers), tuple(config[f"units_{i}"] for i in range(1, config["dense"] + 1)), config.get("average", False)
    )
