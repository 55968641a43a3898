"""Convert configurations of networks to architectures and descriptions."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bonas import nets

Config = Mapping[str, Any]


def hidden_widths(config: Config) -> list[int]:
    """Return the widths of the hidden layers of a configuration of any family."""
    if "width" in config:
        return [config["width"]] * config["depth"]
    return [config[f"width_{i}"] for i in range(1, config["depth"] + 1)]


def activation_name(config: Config) -> str:
    """Return the activation of the hidden layers; ReLU if the configuration has none."""
    return config.get("activation", "relu")


def describe_network(config: Config) -> str:
    """Describe the network of a configuration in words, from its depth and widths on."""
    *others, last = map(str, hidden_widths(config))
    widths = f"{', '.join(others)} and {last}" if others else last
    plural = "layer" if config["depth"] == 1 else "layers"
    layers = (
        f"{config['depth']} hidden {plural} of {widths} {activation_name(config)} units"
    )
    if "members" in config:
        density = f"{config['density']:.0%}"
        return f"{config['members']} networks of {layers}, each with {density} of its weights"
    shown = ("learning_rate", "weight_decay", "dropout", "prior_variance")
    numbers = [
        f"{name.replace('_', ' ')} {config[name]:.2g}"
        for name in shown
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
