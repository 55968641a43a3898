"""The models of Table 1 and beyond, and what was published of them."""

from dataclasses import dataclass

from bonas import gp, surrogates
from bonas.problems import networks, raiders


@dataclass(frozen=True)
class Model:
    """A GP, by its kernel, and what it is told of irrelevant parameters; or another surrogate, as it is by default."""

    kernel: gp.Kernel | None = None
    fill: str = "zero"  # what stands in inactive columns, for kernels that do not know better
    separate: bool = False  # one model a depth
    slow: bool = False  # ten times the others: fitted last
    sampler: str = "slice"
    surrogate: surrogates.Surrogate | None = None
    likelihood: str = "Gaussian"  # "Student" and "growing" were tried for the original values


FLAT = gp.priors.flat_angles  # the paper names no prior; this was the default of bonas when the table was made
_LINE, _MATERN, _ARC = gp.basis(gp.affine), gp.matern52(), gp.arc(raiders.active, prior=FLAT)
_ROUGH_AND_SMOOTH = gp.arc(raiders.active, gp.rq(), prior=FLAT)
# Columns of one kind – units, rates, norms, dropouts – in different layers.
_KINDS = tuple(tuple(range(4 + 5 * i, 9 + 5 * i)) for i in range(4))
BEST = "arc + shared arc, rational quadratic"  # of several that were tried on the folds of seed 0: by evidence, then by error

# Four chains are few, but a fold takes half a minute with them. More noise is expected than a search meets, one hidden layer
# is enough (two did not get far in the time), and so many values need small steps. All of this was chosen on the first fold.
_NETWORK = surrogates.hmc_network(
    (50,), chains=4, samples=40, first=120, first_step=0.01, steps=20, weight_prior=(2.0, 8.0), noise_prior=(2.0, 0.4)
)

# In the order of importance, in which they are fitted.
MODELS = {
    "Arc GP": Model(_ARC),
    "GP": Model(_MATERN, fill="random"),
    "sum of arcs": Model(gp.add(_ARC, _ARC), sampler="nuts"),
    "arc + shared arc": Model(gp.add(_ARC, gp.shared(_ARC, _KINDS)), sampler="nuts"),
    BEST: Model(gp.add(_ROUGH_AND_SMOOTH, gp.shared(_ROUGH_AND_SMOOTH, _KINDS)), sampler="nuts"),
    "Separate Arc GP": Model(_ARC, separate=True),
    "Separate GP": Model(_MATERN, separate=True),
    "Linear": Model(_LINE, fill="random"),
    "Separate Linear": Model(_LINE, separate=True),
    "GP, −1 filled in": Model(_MATERN, fill="constant"),
    "box": Model(gp.box(raiders.active)),
    "wedge": Model(gp.wedge(raiders.active, prior=FLAT)),
    "masked Matérn": Model(gp.masked(raiders.active)),
    "blocks": Model(gp.blocks(raiders.active, raiders.BLOCKS)),
    "deep ensemble": Model(surrogate=surrogates.ensemble().adapt(networks.raiders().space)),
    "network by HMC": Model(surrogate=_NETWORK.adapt(networks.raiders().space), slow=True),
    "Arc GP, Student's t": Model(_ARC, likelihood="Student"),
    "GP, Student's t": Model(_MATERN, fill="random", likelihood="Student"),
    "Arc GP, noise that grows": Model(_ARC, likelihood="growing"),
    "GP, noise that grows": Model(_MATERN, fill="random", likelihood="growing"),
    "product of arcs": Model(gp.arc(raiders.active, product=True, prior=FLAT), slow=True),
}

# Swersky et al. 2014, Table 1: mean and error of the original values and of their logarithms.
PUBLISHED = {
    "Separate Linear": {"original": [0.812, 0.045], "log": [0.737, 0.049]},
    "Separate GP": {"original": [0.546, 0.038], "log": [0.446, 0.041]},
    "Separate Arc GP": {"original": [0.535, 0.030], "log": [0.440, 0.031]},
    "Linear": {"original": [0.876, 0.043], "log": [0.834, 0.047]},
    "GP": {"original": [0.481, 0.031], "log": [0.401, 0.028]},
    "Arc GP": {"original": [0.421, 0.033], "log": [0.335, 0.028]},
}
