"""Searches: init, ask, tell; and whole runs of them."""

from bonas.search.additive import add_gp_ucb as add_gp_ucb
from bonas.search.baselines import evolution as evolution
from bonas.search.baselines import grid as grid
from bonas.search.baselines import random as random
from bonas.search.baselines import sobol as sobol
from bonas.search.bayes import bayes as bayes
from bonas.search.curves import curves as curves
from bonas.search.embedded import rembo as rembo
from bonas.search.minimise import Result as Result
from bonas.search.minimise import minimise as minimise
from bonas.search.run import run as run
from bonas.search.run import run_many as run_many
from bonas.search.run_curves import CurveHistory as CurveHistory
from bonas.search.run_curves import run_curves as run_curves
from bonas.search.run_curves import run_curves_many as run_curves_many
from bonas.search.rungs import hyperband as hyperband
from bonas.search.rungs import successive_halving as successive_halving
from bonas.search.rungs import top_k as top_k
from bonas.search.rungs import whole as whole
from bonas.search.trust import turbo as turbo
from bonas.search.types import FALLBACKS as FALLBACKS
from bonas.search.types import AskInfo as AskInfo
from bonas.search.types import History as History
from bonas.search.types import Search as Search
from bonas.search.types import Trial as Trial
from bonas.search.types import ask_info as ask_info
