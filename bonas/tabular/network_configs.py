"""Configurations of any network family: their layers, in numbers and in words."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bonas import nets
from bonas.tabular.saved_model import ACTIVATIONS

Config = Mapping[str, Any]
# Hyperparameters that `describe_network` reports if a configuration has them.
DESCRIBED = ("learning_rate", "weight_decay", "dropout", "prior_variance")


def hidden_widths(config: Config) -> list[int]:
    """Return the widths of the hidden layers of a configuration of any family."""
    if "width" in config:
        return [config["width"]] * config["depth"]
    return [config[f"width_{i}"] for i in range(1, config["depth"] + 1)]


def activation_name(config: Config) -> str:
    """Return the activation of the hidden layers; ReLU if the configuration has none.

    Raises:
        ValueError: If networks with this activation cannot be saved.
    """
    name = config.get("activation", "relu")
    if name not in ACTIVATIONS:
        raise ValueError(
            f"activation must be one of {', '.join(ACTIVATIONS)}, because a search saves its "
            f"networks as plain MLPs; got {name!r}"
        )
    return name


def describe_network(config: Config) -> str:
    """Describe the network of a configuration: its layers, and its members or hyperparameters."""
    *others, last = map(str, hidden_widths(config))
    widths = f"{', '.join(others)} and {last}" if others else last
    plural = "layer" if config["depth"] == 1 else "layers"
    layers = (
        f"{config['depth']} hidden {plural} of {widths} {activation_name(config)} units"
    )
    if "members" in config:
        networks = f"{config['members']} networks of {layers}"
        if "density" not in config:
            return networks
        return f"{networks}, each with {config['density']:.0%} of its weights"
    numbers = [
        f"{name.replace('_', ' ')} {config[name]:.2g}"
        for name in DESCRIBED
        if name in config
    ]
    return ", ".join([layers, *numbers])


def config_architecture(shape: nets.Shape, config: Config) -> nets.Architecture:
    """Create the architecture on the host, because `nets.architecture` compiles once per depth."""
    widths = np.zeros(shape.depth, np.int32)
    widths[: config["depth"]] = hidden_widths(config)
    activation = np.int32(shape.activations.index(activation_name(config)))
    density = np.float32(config["density"]) if "density" in config else None
    return nets.Architecture(widths, activation, density)  # type: ignore[arg-type]
