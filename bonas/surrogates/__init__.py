"""Surrogates: models of an objective with the methods fit, update, predict and sample."""

from bonas.surrogates.additive_gp import AdditiveState as AdditiveState
from bonas.surrogates.additive_gp import additive as additive
from bonas.surrogates.additive_gp import check_groupable as check_groupable
from bonas.surrogates.deep_ensemble import EnsembleState as EnsembleState
from bonas.surrogates.deep_ensemble import ensemble as ensemble
from bonas.surrogates.fitted_hyperparameters import hyperparameters as hyperparameters
from bonas.surrogates.gaussian_process import GaussianProcess as GaussianProcess
from bonas.surrogates.gaussian_process import GPState as GPState
from bonas.surrogates.gaussian_process import default_kernel as default_kernel
from bonas.surrogates.gaussian_process import gp as gp
from bonas.surrogates.hmc_bnn import HMCState as HMCState
from bonas.surrogates.hmc_bnn import hmc_network as hmc_network
from bonas.surrogates.large_gaussian_process import LargeGP as LargeGP
from bonas.surrogates.large_gaussian_process import large_gp as large_gp
from bonas.surrogates.last_layer_bnn import LastLayerState as LastLayerState
from bonas.surrogates.last_layer_bnn import last_layer as last_layer
from bonas.surrogates.linear_model import linear as linear
from bonas.surrogates.row_subsets import select_rows as select_rows
from bonas.surrogates.saas_gp import SAASState as SAASState
from bonas.surrogates.saas_gp import saas as saas
from bonas.surrogates.surrogate import FitInfo as FitInfo
from bonas.surrogates.surrogate import Surrogate as Surrogate
from bonas.surrogates.surrogate import replicate as replicate
from bonas.surrogates.variational_bnn import VariationalState as VariationalState
from bonas.surrogates.variational_bnn import variational_network as variational_network
