"""Inference by optimization and Markov chain Monte Carlo.

Every method has the form method(key, log_density, start) -> (samples, Info), where samples are
pytrees like `start` with a leading axis. Call it inside `jax.jit` with the data as an argument, so
that it is compiled once.
"""

from bonas.infer.diagnostics import effective_sample_size as effective_sample_size
from bonas.infer.diagnostics import r_hat as r_hat
from bonas.infer.diagnostics import summary as summary
from bonas.infer.diagnostics import to_arviz as to_arviz
from bonas.infer.hamiltonian import HAMILTONIAN_METHODS as HAMILTONIAN_METHODS
from bonas.infer.hamiltonian import Chain as Chain
from bonas.infer.hamiltonian import hmc as hmc
from bonas.infer.hamiltonian import hmc_within_gibbs as hmc_within_gibbs
from bonas.infer.hamiltonian import nuts as nuts
from bonas.infer.optimize import maximize as maximize
from bonas.infer.posterior import Info as Info
from bonas.infer.posterior import Target as Target
from bonas.infer.posterior import Tree as Tree
from bonas.infer.posterior import all_finite as all_finite
from bonas.infer.posterior import choose as choose
from bonas.infer.posterior import is_distribution as is_distribution
from bonas.infer.posterior import target as target
from bonas.infer.random_walk import metropolis as metropolis
from bonas.infer.random_walk import metropolis_hastings as metropolis_hastings
from bonas.infer.slice import slice_sample as slice_sample
