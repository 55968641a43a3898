"""The command-line interface: `bonas search`, `resume`, `predict` and `report`."""

from bonas.cli.arguments import main as main
