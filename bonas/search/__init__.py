"""Searches: init, ask, tell; and whole runs of them."""

from bonas.search.additive import add_gp_ucb as add_gp_ucb
from bonas.search.baselines import evolution as evolution
from bonas.search.baselines import grid as grid
from bonas.search.baselines import random as random
from bonas.search.baselines import sobol as sobol
from bonas.search.bayes import bayes as bayes
from bonas.search.embedded import rembo as rembo
from bonas.search.minimise import Result as Result
from bonas.search.minimise import minimise as minimise
from bonas.search.run import run as run
from bonas.search.run import run_many as run_many
from bonas.search.trust import turbo as turbo
from bonas.search.types import FALLBACKS as FALLBACKS
from bonas.search.types import AskInfo as AskInfo
from bonas.search.types import History as History
from bonas.search.types import Search as Search
from bonas.search.types import Trial as Trial
