"""The network families of `bonas search` by name.

To add a family, subclass `Family` in a file of its own and list it in `FAMILIES`, and its name with
a few words in `FAMILIES` of cli/arguments.py. Its space needs a parameter `depth`, and `width` or
`width_1` to `width_<depth>`. These and the parameters in `network_configs.DESCRIBED` describe the
network to the user. A search saves its networks as MLPs with the activation relu or tanh.
"""

from bonas.tabular.fold_families import EnsembleFamily, MLPFamily
from bonas.tabular.network_family import Family
from bonas.tabular.splits import Size
from bonas.tabular.variational_family import VariationalFamily

# The families by name.
FAMILIES: dict[str, type[Family]] = {
    family.name: family for family in (MLPFamily, EnsembleFamily, VariationalFamily)
}


def make_family(name: str, size: Size) -> Family:
    """Create a network family by name for data of a given size."""
    if name not in FAMILIES:
        raise ValueError(f"space must be one of {', '.join(FAMILIES)}; got {name!r}")
    if FAMILIES[name].regression_only and size.task == "classification":
        others = [each for each in FAMILIES if not FAMILIES[each].regression_only]
        raise ValueError(
            f"space {name!r} supports only regression; use {' or '.join(others)}"
        )
    return FAMILIES[name](size)
