"""Gaussian processes: kernels, means, exact regression and the posterior of hyperparameters."""

from bonas.gp import additive_kernels as additive_kernels
from bonas.gp import priors as priors
from bonas.gp.additive_kernels import additive as additive
from bonas.gp.additive_kernels import predict_parts as predict_parts
from bonas.gp.additive_kernels import regroup as regroup
from bonas.gp.composite_kernels import add as add
from bonas.gp.composite_kernels import multiply as multiply
from bonas.gp.composite_kernels import on_columns as on_columns
from bonas.gp.conditional_kernel_variants import box as box
from bonas.gp.conditional_kernel_variants import wedge as wedge
from bonas.gp.conditional_kernels import arc as arc
from bonas.gp.constant_means import constant as constant
from bonas.gp.constant_means import learned_constant as learned_constant
from bonas.gp.constant_means import wilton as wilton
from bonas.gp.default_kernels import blend as blend
from bonas.gp.default_kernels import matern52 as matern52
from bonas.gp.default_kernels import matern52_profile as matern52_profile
from bonas.gp.exact import Posterior as Posterior
from bonas.gp.exact import Prediction as Prediction
from bonas.gp.exact import condition as condition
from bonas.gp.exact import log_evidence as log_evidence
from bonas.gp.exact import predict as predict
from bonas.gp.hyperparameters import Noise as Noise
from bonas.gp.hyperparameters import condition_all as condition_all
from bonas.gp.hyperparameters import hyperposterior as hyperposterior
from bonas.gp.hyperparameters import hyperprior as hyperprior
from bonas.gp.joint_predictions import covariance as covariance
from bonas.gp.joint_predictions import joint as joint
from bonas.gp.joint_predictions import sample as sample
from bonas.gp.kernel import Kernel as Kernel
from bonas.gp.kernel import Params as Params
from bonas.gp.kernel import gram as gram
from bonas.gp.linear_kernels import affine_features as affine_features
from bonas.gp.linear_kernels import basis as basis
from bonas.gp.linear_kernels import linear as linear
from bonas.gp.linear_kernels import linear_features as linear_features
from bonas.gp.linear_kernels import quadratic_features as quadratic_features
from bonas.gp.linear_kernels import spherical_linear as spherical_linear
from bonas.gp.masked_kernels import blocks as blocks
from bonas.gp.masked_kernels import masked as masked
from bonas.gp.mean import Mean as Mean
from bonas.gp.mean import zero as zero
from bonas.gp.one_hot_columns import indicator_of as indicator_of
from bonas.gp.one_hot_columns import one_hot as one_hot
from bonas.gp.one_hot_columns import with_categories as with_categories
from bonas.gp.saas_kernel import (
    inverse_squared_lengthscales as inverse_squared_lengthscales,
)
from bonas.gp.saas_kernel import saas as saas
from bonas.gp.stationary_kernels import matern12 as matern12
from bonas.gp.stationary_kernels import matern32 as matern32
from bonas.gp.stationary_kernels import rq as rq
from bonas.gp.stationary_kernels import se as se
from bonas.gp.stationary_kernels import se_profile as se_profile
from bonas.gp.tied_parameters import Groups as Groups
from bonas.gp.tied_parameters import tied as tied
