"""How unknown parameters become known: one call shape for all, method(key, log_density, start) -> (samples, Info).

Call them inside `jax.jit` with the data as an argument, and they are compiled once; a plain call compiles every time.
"""

from bonas.infer.diagnostics import effective_sample_size as effective_sample_size
from bonas.infer.diagnostics import r_hat as r_hat
from bonas.infer.diagnostics import summary as summary
from bonas.infer.diagnostics import to_arviz as to_arviz
from bonas.infer.hamiltonian import hmc as hmc
from bonas.infer.hamiltonian import nuts as nuts
from bonas.infer.metropolis import metropolis as metropolis
from bonas.infer.metropolis import metropolis_hastings as metropolis_hastings
from bonas.infer.optimise import maximise as maximise
from bonas.infer.slice import slice_sample as slice_sample
from bonas.infer.target import Info as Info
from bonas.infer.target import Target as Target
from bonas.infer.target import target as target
