"""Convolutional networks with their recorded learning curves: 1000 on CIFAR-10, 1300 on SVHN.

MetaQNN's agent designed them layer by layer. Baker et al. 2018, "Accelerating neural architecture
search using performance prediction", published them (MIT license). A network is written
"[C(64,1,1), C(128,5,1), D(1,2), P(3,2), SM(10)]": C has the filters, size and stride of a
convolution, D the number of a dropout layer and their total, P the size and stride of pooling, FC
the units of a fully connected layer; GAP is global average pooling and SM the softmax. Strides and
dropout follow from the rest (`text`). The parameters of the search space are therefore the number
of layers, the kind, size and filters of each layer, and either the units of the fully connected
layers or global average pooling.
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
from jaxtyping import PRNGKeyArray

from bonas.problems.datasets import Source, find, locate
from bonas.spaces import Choice, Float, Int, Parameter, Space, TableSpace

EPOCHS = 20
CONVOLUTION = "convolution"
POOLING = "pooling"
KINDS = (CONVOLUTION, POOLING)
# Ranges of filters, units of fully connected layers, and sizes of filters and pooling.
FILTERS = (64, 512)
UNITS = (128, 512)
SIZES = (1, 5)
# Largest number of fully connected layers.
MAX_DENSE = 2
# Baker et al. 2017 start at the highest rate and multiply it by 0.4 whenever a network is not
# better than chance after an epoch, so the recorded rate is informative about the training.
RATES = (0.000026, 0.001)
CLASSES = 10
# Stride of pooling by its size.
_STRIDES = {2: 2, 3: 2, 5: 3}

_COMMIT = "7a0abeb37787f51f47231c45af2796be697fe2cc"
_HOME = f"https://raw.githubusercontent.com/MITAutoML/accelerating_nas/{_COMMIT}/data"
_SHA256 = {
    "cifar10": "ba00613f32132d0e605b4652828d4e363e634f523b034db8a8a4cf96336f1c71",
    "svhn": "9407b8b58e1739244376a968ecf5ac1250360da67ca30834ce34eece91d53283",
}
NAMES = tuple(_SHA256)


class Layer(NamedTuple):
    """A convolution, or a pooling layer without filters."""

    kind: str
    size: int
    filters: int = 0


class Network(NamedTuple):
    """A convolutional architecture."""

    layers: tuple[Layer, ...]
    dense: tuple[int, ...] = ()  # units of the fully connected layers
    average: bool = False  # global average pooling before the softmax

    @property
    def depth(self) -> int:
        """Number of layers, including the softmax and excluding dropout."""
        return len(self.layers) + len(self.dense) + self.average + 1


class Table(NamedTuple):
    """Networks and their learning curves."""

    space: TableSpace  # contains only these networks
    x: np.ndarray  # (n, d) rows of the unit cube
    error: np.ndarray  # (n,) 1 − validation accuracy after the last epoch
    curves: np.ndarray  # (n, epochs) validation accuracy after each epoch
    networks: tuple[Network, ...]
    depth: np.ndarray  # (n,) int: layers, with the softmax
    rate: np.ndarray  # (n,) learning rate


def load(
    name: str, *, rate: bool = True, download: bool = True, progress: bool = True
) -> Table:
    """Load the networks trained on CIFAR-10 or SVHN, with their learning curves.

    Args:
        name: "cifar10" or "svhn".
        rate: Whether the recorded learning rate is a parameter; networks also differ without it.
        download: Whether to download the file if it is missing.
        progress: Whether to show a progress bar while downloading.
    """
    if name not in NAMES:
        raise ValueError(f"name must be one of {', '.join(NAMES)}; got {name!r}")
    file = f"curves/metaqnn_{name}.csv"
    source = Source(file, _HOME, f"{_HOME}/metaqnn_{name}.csv", _SHA256[name])
    path = find(f"{file}.gz") or locate(source, download=download, progress=progress)
    return read(path, rate=rate)


def read(path: Path, *, rate: bool = True) -> Table:
    """Read a CSV file with the columns net, lr and acc_1 to acc_20, gzipped or not."""
    open_text = gzip.open if path.suffix == ".gz" else open
    with open_text(path, "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = ("net", "lr", *(f"acc_{epoch}" for epoch in range(1, EPOCHS + 1)))
    missing = [column for column in columns if not rows or column not in rows[0]]
    if missing:
        raise ValueError(
            f"{path}: expected a CSV file with the column {missing[0]!r} and at least one row"
        )
    try:
        numbers = np.array(
            [
                [_number(i, row, column) for column in columns[1:]]
                for i, row in enumerate(rows)
            ]
        )
        return table(
            [row["net"] for row in rows], numbers[:, 0], numbers[:, 1:], rate=rate
        )
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from None


def _number(i: int, row: dict[str, Any], column: str) -> float:
    try:
        return float(row[column])
    except (TypeError, ValueError):
        raise ValueError(
            f"row {i}: {column} must be a number; got {row[column]!r}"
        ) from None


def table(
    nets: Sequence[str], rates: np.ndarray, curves: np.ndarray, *, rate: bool = True
) -> Table:
    """Make a table from networks in text form, their learning rates (n,) and curves (n, epochs).

    Two networks at the same point are rejected, because a search could not distinguish them. Error
    messages count rows from 0.
    """
    networks = tuple(_parse_row(i, net) for i, net in enumerate(nets))
    wrong = ~((curves > 0.0) & (curves < 1.0)).all(axis=1)
    if wrong.any():
        raise ValueError(
            f"row {wrong.argmax()}: accuracies must be between 0 and 1; "
            f"got {curves[wrong.argmax()]}"
        )
    full = space_of(max(len(network.layers) for network in networks), rate=rate)
    configs = [
        _config(network) | ({"rate": float(r)} if rate else {})
        for network, r in zip(networks, rates, strict=True)
    ]
    space = TableSpace(full, _rows(full, configs))
    depth = np.array([network.depth for network in networks])
    return Table(
        space,
        space.rows,
        1.0 - curves[:, -1],
        curves,
        networks,
        depth,
        np.asarray(rates, float),
    )


def space_of(positions: int, *, rate: bool = True) -> Space:
    """Return the space of networks with at most `positions` convolutions and pooling layers.

    The first layer is a convolution.
    """
    parameters: dict[str, Any] = {"layers": Int(1, positions)}
    for i in range(1, positions + 1):
        exists = {"layers": (">=", i)} if i > 1 else None
        is_convolution = {f"kind_{i}": CONVOLUTION} if i > 1 else None
        if i > 1:
            parameters[f"kind_{i}"] = Choice(*KINDS, when=exists)
        parameters[f"size_{i}"] = Int(*SIZES, when=exists)
        parameters[f"filters_{i}"] = Int(*FILTERS, log=True, when=is_convolution)
    parameters["dense"] = Int(0, MAX_DENSE)
    for i in range(1, MAX_DENSE + 1):
        parameters[f"units_{i}"] = Int(*UNITS, log=True, when={"dense": (">=", i)})
    parameters["average"] = Choice(False, True, when={"dense": 0})
    if rate:
        parameters["rate"] = Float(*RATES, log=True)
    return Space(**parameters)


def parse(net: str) -> Network:
    """Parse the text form of a network.

    Raises:
        ValueError: If `text` would write the parsed network differently.
    """
    layers: list[Layer] = []
    dense: list[int] = []
    average = False
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
        raise ValueError(f"a network must start with a convolution; got {net!r}")
    network = Network(tuple(layers), tuple(dense), average)
    if text(network) != net:
        raise ValueError(
            f"cannot parse {net!r}: expected {text(network)!r} for these layers"
        )
    return network


def text(network: Network) -> str:
    """Return the text form of a network.

    Dropout follows every second layer and every fully connected layer. Its rate rises to the end.
    The total number counts one before the softmax even if the text omits it, after an odd layer or
    a fully connected one.
    """
    half = len(network.layers) // 2
    if network.average:
        total = half
    elif network.dense:
        total = half + len(network.dense) + 1
    else:
        total = (len(network.layers) + 1) // 2
    words = []
    done = 0
    layers = [
        *map(_layer_text, network.layers),
        *(f"FC({units})" for units in network.dense),
    ]
    for i, word in enumerate(layers, start=1):
        words.append(word)
        if i % 2 == 0 or i > len(network.layers):
            done += 1
            words.append(f"D({done},{total})")
    words += [f"GAP({CLASSES})"] * network.average + [f"SM({CLASSES})"]
    return f"[{', '.join(words)}]"


def _layer_text(layer: Layer) -> str:
    if layer.kind == CONVOLUTION:
        return f"C({layer.filters},{layer.size},1)"
    return f"P({layer.size},{_STRIDES[layer.size]})"


def _parse_row(i: int, net: str) -> Network:
    try:
        return parse(net)
    except ValueError as problem:
        raise ValueError(f"row {i}: {problem}") from None


def _config(network: Network) -> dict[str, Any]:
    """Return the values of the active parameters of a network."""
    config: dict[str, Any] = {
        "layers": len(network.layers),
        "dense": len(network.dense),
    }
    for i, layer in enumerate(network.layers, start=1):
        if i > 1:
            config[f"kind_{i}"] = layer.kind
        config[f"size_{i}"] = layer.size
        if layer.kind == CONVOLUTION:
            config[f"filters_{i}"] = layer.filters
    config |= {f"units_{i}": units for i, units in enumerate(network.dense, start=1)}
    if not network.dense:
        config["average"] = network.average
    return config


def _rows(space: Space, configs: list[dict[str, Any]]) -> np.ndarray:
    """Encode configurations column by column, a hundred times faster than `space.encode`."""
    columns = []
    for name, parameter in space.parameters.items():
        # All columns have one length, so that they share compiled programs.
        numbers = np.full(len(configs), float(parameter.low))
        for i, config in enumerate(configs):
            if name in config:
                numbers[i] = _position(i, name, parameter, config[name])
        active = np.array([name in config for config in configs])
        columns.append(
            np.where(active, np.asarray(parameter.unit(jnp.asarray(numbers))), 0.0)
        )
    return np.stack(columns, axis=1)


def _position(i: int, name: str, parameter: Parameter, value: Any) -> float:
    """Return a number unchanged, and an option as its position."""
    if parameter.choices:
        return parameter.choices.index(value)
    if not parameter.low <= value <= parameter.high:
        raise ValueError(
            f"row {i}: {name} must be in [{parameter.low}, {parameter.high}]; got {value!r}"
        )
    return value


def synthetic(key: PRNGKeyArray, n: int, *, positions: int = 4) -> Table:
    """Make a table of up to n random networks whose curves follow a formula, for tests.

    Errors fall with depth, filters and a little pooling; accuracies rise to their final values.
    """
    space = space_of(positions)
    sample_key, noise_key = jax.random.split(key)
    drawn = (_network(space.decode(row)) for row in space.sample(sample_key, 2 * n))
    networks = list(dict.fromkeys(drawn))[:n]
    noise = np.asarray(jax.random.normal(noise_key, (len(networks), EPOCHS)))
    log_filters = [
        [np.log2(max(layer.filters, 64) / 64) for layer in network.layers]
        for network in networks
    ]
    filters = np.array([np.mean(row) for row in log_filters])
    kinds = [[layer.kind for layer in network.layers] for network in networks]
    pools = np.array([row.count(POOLING) for row in kinds])
    depth = np.array([network.depth for network in networks])
    last = 0.9 - 0.5 * np.exp(-0.2 * depth - 0.2 * filters) - 0.05 * np.abs(pools - 1)
    rise = 1.0 - 0.5 * np.exp(-np.arange(EPOCHS) / 5.0)
    curves = last[:, None] * rise[None, :] + 0.003 * noise
    texts = [text(network) for network in networks]
    return table(texts, np.full(len(networks), RATES[1]), curves)


def _network(config: dict[str, Any]) -> Network:
    """Return the network of a configuration, with the pooling sizes rounded to allowed ones."""
    layers = []
    for i in range(1, config["layers"] + 1):
        kind = config.get(f"kind_{i}", CONVOLUTION)
        size = config[f"size_{i}"]
        if kind == POOLING:
            layers.append(
                Layer(kind, min(_STRIDES, key=lambda other: abs(other - size)))
            )
        else:
            layers.append(Layer(kind, size, config[f"filters_{i}"]))
    dense = tuple(config[f"units_{i}"] for i in range(1, config["dense"] + 1))
    return Network(tuple(layers), dense, config.get("average", False))
