"""What the documents print, in words: the only numbers of the results page that do not come out of a file of ours."""

PUBLISHED = {
    "twist_training.py": (
        "The small network classifies the majority of points rightly, and its cost is far from smooth; of the large one "
        "the training cost falls past 800 epochs while the validation cost rises. One run each."
    ),
    "twist_posteriors.py": (
        "The second basis is a much more appropriate fit; with the smaller length scale the standard deviation grows much "
        "faster away from samples. Figures alone."
    ),
    "twist_stages.py": (
        "The interval of the optimum is unexplored at first, most new points fall into it, and the standard deviation "
        "shrinks quickly near samples. Figures alone."
    ),
    "twist_search.py": (
        "The search always favours larger architectures; the learning rate has an optimum inside its interval, with a "
        "noticeable drop below and above. No errors are stated."
    ),
    "agrawal_gp.py": (
        "The GP is competitive on Forrester, does not always succeed on Rosenbrock, and finds the minima of McCormick and "
        "of the six-hump camel. Figures alone."
    ),
    "agrawal_posterior.py": (
        "Chains move between modes, single draws pass near the data and differ away from it, and the average follows the "
        "true function reasonably well, with an uncertainty that is low near data and high away. Figures alone."
    ),
    "raiders_search.py": (
        "The arc reaches good networks faster or finds better ones, 1.19% of test errors on the whole of MNIST; the blind "
        "search favours small networks, and the arc spreads over deeper ones."
    ),
    "raiders_tables.py": (
        "The arc finds good networks faster than a GP to which irrelevant parameters are random numbers; that GP prefers "
        "small networks."
    ),
    "raiders_missing.py": "The kernel learns that missing means low. No numbers are stated.",
    "high_dimensional.py": "Both ways are reviewed, and neither is tried.",
    "make_bnn_table.py": "The axes of figures 5.7 to 5.14 bracket the best mean log likelihood of each set.",
    "hutchinson_effects.py": (
        "Likelihood against width has a maximum on some sets and a plateau on others; a prior that is too narrow is "
        "harmful; the first noise hardly matters; data repeated make networks over-fit. Figures alone."
    ),
    "hutchinson_pruning.py": (
        "Divergences form two groups; all units are used up to a break point, after which fewer are; scores are flat or "
        "fall in the end; most units that are used are in the first layer. Figures alone."
    ),
    "hutchinson_deterministic.py": "Left to future work.",
    "hutchinson_gpar_fits.py": (
        "Tables 5.1 to 5.4 are no targets: they hold another density, and two of them are copies of the others."
    ),
    "hutchinson_search.py": (
        "GPAR beats random search on 6 of 8 sets, and is better than final-performance BO on 2, equal on 3 and worse on 3."
    ),
}
