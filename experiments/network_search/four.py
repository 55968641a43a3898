"""The functions of Agrawal's figure 11 and how many random points a search of each begins with (G-E4)."""

INITIAL = (  # stated, but for the camel, where it is assumed
    ("forrester", 2),
    ("rosenbrock", 5),
    ("mccormick", 5),
    ("six_hump_camel", 5),
)
EVALUATIONS = 40  # not stated; enough for every curve to level off
KAPPA = 2.0  # of the confidence bound: not stated; the usual choice
