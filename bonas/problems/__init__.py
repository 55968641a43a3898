"""What is searched: functions with known minima, data sets, networks to train, tabulated results."""

from bonas.problems import functions as functions
from bonas.problems import high as high
from bonas.problems.functions import Problem as Problem
