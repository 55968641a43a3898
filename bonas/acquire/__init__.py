"""Where to look next: scores of candidates, to be maximised."""

from bonas.acquire.analytic import ei as ei
from bonas.acquire.analytic import greedy as greedy
from bonas.acquire.analytic import kappa_schedule as kappa_schedule
from bonas.acquire.analytic import lcb as lcb
from bonas.acquire.analytic import log_ei as log_ei
from bonas.acquire.analytic import log_h as log_h
from bonas.acquire.analytic import log_ndtr as log_ndtr
from bonas.acquire.analytic import log_pi as log_pi
from bonas.acquire.analytic import pi as pi
