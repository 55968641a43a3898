"""The models of Table 1 and further ones, with the published scores."""

from dataclasses import dataclass

from bonas import gp, surrogates
from experiments.raiders import authors_table as raiders
from experiments.raiders import networks


@dataclass(frozen=True)
class Model:
    """A GP with its kernel and its filling of irrelevant columns, or another surrogate."""

    kernel: gp.Kernel | None = None
    fill: str = "zero"  # values of inactive columns, for kernels that ignore relevance
    separate: bool = False  # one model per depth
    slow: bool = False  # takes ten times as long: fitted last
    sampler: str = "slice"
    surrogate: surrogates.Surrogate | None = None
    # "Student" and "growing" were tried for the original values
    likelihood: str = "Gaussian"


# The paper states no prior; this was the default of bonas when the table was made.
FLAT = gp.priors.flat_angles
_LINE, _MATERN, _ARC = (
    gp.basis(gp.affine_features),
    gp.matern52(),
    gp.arc(raiders.active, prior=FLAT),
)
_ROUGH_AND_SMOOTH = gp.arc(raiders.active, gp.rq(), prior=FLAT)
# Columns of one kind – units, rates, norms, dropouts – in different layers.
_KINDS = tuple(tuple(range(4 + 5 * i, 9 + 5 * i)) for i in range(4))
# The best of several on the folds of seed 0, by evidence, then by error
BEST = "arc + shared arc, rational quadratic"

# Four chains are few, but a fold then takes half a minute. The noise is larger than in a search,
# one hidden layer suffices (two did not converge in time), and this many values need small steps.
# All settings were chosen on the first fold.
_NETWORK = surrogates.hmc_network(
    (50,),
    chains=4,
    samples=40,
    first_burn=120,
    initial_step_size=0.01,
    steps=20,
    weight_prior=(2.0, 8.0),
    noise_prior=(2.0, 0.4),
)

# Models are fitted in this order, most important first.
MODELS = {
    "Arc GP": Model(_ARC),
    "GP": Model(_MATERN, fill="random"),
    "sum of arcs": Model(gp.add(_ARC, _ARC), sampler="nuts"),
    "arc + shared arc": Model(gp.add(_ARC, gp.tied(_ARC, _KINDS)), sampler="nuts"),
    BEST: Model(
        gp.add(_ROUGH_AND_SMOOTH, gp.tied(_ROUGH_AND_SMOOTH, _KINDS)), sampler="nuts"
    ),
    "Separate Arc GP": Model(_ARC, separate=True),
    "Separate GP": Model(_MATERN, separate=True),
    "Linear": Model(_LINE, fill="random"),
    "Separate Linear": Model(_LINE, separate=True),
    "GP, −1 filled in": Model(_MATERN, fill="constant"),
    "box": Model(gp.box(raiders.active)),
    "wedge": Model(gp.wedge(raiders.active, prior=FLAT)),
    "masked Matérn": Model(gp.masked(raiders.active)),
    "blocks": Model(gp.blocks(raiders.active, raiders.BLOCKS)),
    "deep ensemble": Model(
        surrogate=surrogates.ensemble().adapt(networks.raiders().space)
    ),
    "network by HMC": Model(
        surrogate=_NETWORK.adapt(networks.raiders().space), slow=True
    ),
    "Arc GP, Student's t": Model(_ARC, likelihood="Student"),
    "GP, Student's t": Model(_MATERN, fill="random", likelihood="Student"),
    "Arc GP, noise that grows": Model(_ARC, likelihood="growing"),
    "GP, noise that grows": Model(_MATERN, fill="random", likelihood="growing"),
    "product of arcs": Model(
        gp.arc(raiders.active, product=True, prior=FLAT), slow=True
    ),
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
