"""Every public kernel with every public acquisition: a search that beats random search."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import acquire, gp, surrogates
from bonas.problems import functions
from bonas.search import random

PROBLEM = functions.branin  # smooth, with three minima
KEYS = jax.random.split(jax.random.key(0), 20)
STEPS = 30
KERNELS = {
    "se": gp.se(),
    "matern12": gp.matern12(),
    "matern32": gp.matern32(),
    "matern52": gp.matern52(),
    "rq": gp.rq(),
    "blend": gp.blend(),
    "add": gp.add(gp.se(), gp.linear()),
    "arc": gp.arc(PROBLEM.space),
}
ACQUISITIONS = {
    "ei": bonas.ei,
    "log_ei": bonas.log_ei,
    "pi": acquire.closed(bonas.pi, xi=0.01),
    "log_pi": acquire.closed(bonas.log_pi, xi=0.01),
    "lcb": bonas.lcb,
    "greedy": bonas.greedy,
    "scheduled_lcb": acquire.scheduled_lcb(),
    "penalised": acquire.penalised(bonas.log_ei, jnp.sum, weight=0.1),
    "per_second": acquire.per_second(),
    "feasible": acquire.feasible(),
    "top_two": acquire.top_two(),
    "hedge": acquire.hedge(),
    "entropy": acquire.entropy(),
    "batch_ei": acquire.batch_ei(),
    "thompson": acquire.thompson(),
    "under_sampled": acquire.under_sampled(draws=10, repaired=True),
}


def regrets(search):
    return np.asarray(bonas.run_many(search, PROBLEM.objective, KEYS, STEPS).best[:, -1]) - PROBLEM.optimum


@pytest.fixture(scope="module")
def by_chance():
    return regrets(random(PROBLEM.space))


def test_every_public_acquisition_is_here():
    """Whatever of bonas.acquire a search takes as its acquisition; what remains are parts and settings."""
    parts = {"Acquisition", "Outlook", "closed", "kappa_schedule", "log_h", "log_ndtr", "q_ei", "Maximiser", "Pick"}
    parts |= {"enumerated", "refined", "uniform", "believer", "constant_liar", "dreamer"}
    modules = {"acquisition", "analytic", "batch", "maximise", "portfolio"}
    assert {name for name in dir(acquire) if not name.startswith("_")} - parts - modules == set(ACQUISITIONS)


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", ACQUISITIONS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_it_beats_random_search(kernel, acquisition, by_chance):
    """After 30 evaluations of a smooth function, in the median over 20 seeds."""
    search = bonas.bayes(
        PROBLEM.space,
        surrogate=surrogates.gp(KERNELS[kernel]),
        acquisition=ACQUISITIONS[acquisition],
        maximiser=acquire.uniform(PROBLEM.space, candidates=400),  # compiles faster than one that climbs
        output="plain",
    )
    assert np.median(regrets(search)) < np.median(by_chance)
