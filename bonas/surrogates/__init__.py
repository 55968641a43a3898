"""Models of an objective behind one interface: fit, update, predict, sample. Searches know nothing else about them."""

from bonas.surrogates.additive import AdditiveState as AdditiveState
from bonas.surrogates.additive import additive as additive
from bonas.surrogates.bayesian import HMCState as HMCState
from bonas.surrogates.bayesian import hmc_network as hmc_network
from bonas.surrogates.gaussian import GPState as GPState
from bonas.surrogates.gaussian import default_kernel as default_kernel
from bonas.surrogates.gaussian import gp as gp
from bonas.surrogates.interface import FitInfo as FitInfo
from bonas.surrogates.interface import Surrogate as Surrogate
from bonas.surrogates.last_layer import LastLayerState as LastLayerState
from bonas.surrogates.last_layer import last_layer as last_layer
from bonas.surrogates.networks import EnsembleState as EnsembleState
from bonas.surrogates.networks import ensemble as ensemble
from bonas.surrogates.saas import SAASState as SAASState
from bonas.surrogates.saas import saas as saas
