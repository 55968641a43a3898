"""Every public kernel with every public acquisition: a search that beats random search."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import acquire, gp, surrogates
from bonas.acquire.acquisition import as_acquisition, pick
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


NAMES = tuple(ACQUISITIONS)


def any_of(acquisitions):
    """The acquisition whose position its memory begins with: all of them in one program, which compiles one fit and not 16."""
    members = [as_acquisition(each) for each in acquisitions]

    def init(capacity, d):
        return jnp.asarray(0), tuple(member.init(capacity, d) for member in members)

    def choose(key, outlook, memory):
        which, kept = memory

        def branch(i):
            chosen, later = pick(members[i], key, outlook, kept[i])
            return chosen, (*kept[:i], later, *kept[i + 1 :])

        chosen, kept = jax.lax.switch(which, [partial(branch, i) for i in range(len(members))])
        return chosen, (which, kept)

    return acquire.Acquisition(pick=choose, init=init)


@pytest.fixture(scope="module")
def by_chance():
    found = bonas.run_many(random(PROBLEM.space), PROBLEM.objective, KEYS, STEPS)
    return np.asarray(found.best[:, -1]) - PROBLEM.optimum


@pytest.fixture(scope="module", params=KERNELS)
def by_acquisition(request):
    """Regrets (20,) of every acquisition with one kernel."""
    search = bonas.bayes(
        PROBLEM.space,
        surrogate=surrogates.gp(KERNELS[request.param]),
        acquisition=any_of(ACQUISITIONS.values()),
        maximiser=acquire.uniform(PROBLEM.space, candidates=400),  # compiles faster than one that climbs
        output="plain",
    )

    def one(key, which):
        def init(key, capacity):
            first = search.init(key, capacity)
            return first._replace(memory=(which, first.memory[1]))

        return bonas.run(replace(search, init=init), PROBLEM.objective, key, STEPS).best[-1]

    keys, each = jnp.tile(KEYS, len(NAMES)), jnp.repeat(jnp.arange(len(NAMES)), len(KEYS))
    found = jax.jit(lambda keys, each: jax.lax.map(lambda pair: one(*pair), (keys, each)))(keys, each)
    return dict(zip(NAMES, np.asarray(found).reshape(len(NAMES), -1) - PROBLEM.optimum, strict=True))


def test_every_public_acquisition_is_here():
    """Whatever of bonas.acquire a search takes as its acquisition; what remains are parts and settings."""
    parts = {"Acquisition", "Outlook", "closed", "kappa_schedule", "log_h", "log_ndtr", "q_ei", "Maximiser", "Pick"}
    parts |= {"enumerated", "refined", "uniform", "believer", "constant_liar", "dreamer"}
    modules = {"acquisition", "analytic", "batch", "maximise", "portfolio"}
    assert {name for name in dir(acquire) if not name.startswith("_")} - parts - modules == set(ACQUISITIONS)


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", ACQUISITIONS)
def test_it_beats_random_search(acquisition, by_acquisition, by_chance):
    """After 30 evaluations of a smooth function, in the median over 20 seeds."""
    assert np.median(by_acquisition[acquisition]) < np.median(by_chance)
