"""Every public kernel and every public acquisition: a search that beats random search."""

import inspect
from dataclasses import dataclass, fields
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bonas
from bonas import acquire, gp, surrogates
from bonas.problems import functions
from bonas.search import random
from bonas.search.bayesian import Bayes

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
    "pi": acquire.closed_form_acquisition(bonas.pi, xi=0.01),
    "log_pi": acquire.closed_form_acquisition(bonas.log_pi, xi=0.01),
    "lcb": bonas.lcb,
    "greedy": bonas.greedy,
    "scheduled_lcb": acquire.scheduled_lcb(),
    "penalize": acquire.penalize(bonas.log_ei, jnp.sum, weight=0.1),
    "per_second": acquire.per_second(),
    "feasible": acquire.feasible(),
    "top_two": acquire.top_two(),
    "hedge": acquire.hedge(),
    "max_value_entropy": acquire.max_value_entropy(),
    "batch_ei": acquire.batch_ei(),
    "joint_ei": acquire.joint_ei(1),
    "noisy_ei": acquire.noisy_ei(),
    "knowledge_gradient": acquire.knowledge_gradient(),
    "thompson": acquire.thompson(),
    "under_sampled": acquire.under_sampled(draws=10, corrected=True),
}


NAMES = tuple(ACQUISITIONS)
# The default kernels with every acquisition, and the others with the default one: acquisitions
# see a kernel through predictions only, and a program of all acquisitions compiles slowly.
NAMES_BY_KERNEL = {
    kernel: NAMES if kernel in ("blend", "arc") else ("log_ei",) for kernel in KERNELS
}


@dataclass(frozen=True)
class AnyOf(acquire.Acquisition):
    """The acquisition at the position in its memory: one program compiles one fit, not 16."""

    members: tuple[acquire.Acquisition, ...]

    def init(self, capacity, d):
        return jnp.asarray(0), tuple(
            member.init(capacity, d) for member in self.members
        )

    def select(self, key, context, memory):
        which, kept = memory

        def branch(i):
            chosen, later = self.members[i].select(key, context, kept[i])
            return chosen, (*kept[:i], later, *kept[i + 1 :])

        branches = [partial(branch, i) for i in range(len(self.members))]
        chosen, kept = jax.lax.switch(which, branches)
        return chosen, (which, kept)


def any_of(acquisitions):
    return AnyOf(tuple(acquire.as_acquisition(each) for each in acquisitions))


@pytest.fixture(scope="module")
def by_chance():
    found = bonas.run_many(random(PROBLEM.space), PROBLEM.objective, KEYS, STEPS)
    return np.asarray(found.best[:, -1]) - PROBLEM.optimum


@pytest.fixture(scope="module")
def by_acquisition(request):
    """Regrets (20,) of acquisitions with one kernel."""
    names = NAMES_BY_KERNEL[request.param]
    search = bonas.bayes(
        PROBLEM.space,
        surrogate=surrogates.gp(KERNELS[request.param]),
        acquisition=any_of(ACQUISITIONS[name] for name in names),
        maximizer=acquire.random_candidates(
            PROBLEM.space, candidates=400
        ),  # compiles faster than one that climbs
        output="plain",
    )

    def one(key, which):
        class Chosen(Bayes):
            def init(self, key, capacity):
                first = super().init(key, capacity)
                return first._replace(memory=(which, first.memory[1]))

        chosen = Chosen(
            **{field.name: getattr(search, field.name) for field in fields(search)}
        )
        return bonas.run(chosen, PROBLEM.objective, key, STEPS).best[-1]

    keys, each = (
        jnp.tile(KEYS, len(names)),
        jnp.repeat(jnp.arange(len(names)), len(KEYS)),
    )
    found = jax.jit(
        lambda keys, each: jax.lax.map(lambda pair: one(*pair), (keys, each))
    )(keys, each)
    return dict(
        zip(
            names,
            np.asarray(found).reshape(len(names), -1) - PROBLEM.optimum,
            strict=True,
        )
    )


def test_every_public_acquisition_is_here():
    """All acquisitions of bonas.acquire are tested; other exports are parts and settings."""
    parts = {"Acquisition", "Context", "Maximizer", "Score", "Selection", "ClosedForm"}
    parts |= {"JointEI"}
    parts |= {
        "PendingStrategy",
        "adapt_acquisition",
        "as_acquisition",
        "choose",
        "closed_form_acquisition",
        "kappa_schedule",
    }
    parts |= {
        "log_h",
        "log_ndtr",
        "log_q_ei",
        "q_ei",
        "random_shift",
        "sobol",
        "enumeration",
        "gradient_ascent",
        "random_candidates",
    }
    parts |= {
        "assume_values",
        "believer",
        "check_hashable",
        "check_pending",
        "constant_liar",
        "posterior_sample",
    }
    public = {
        name
        for name, thing in vars(acquire).items()
        if not name.startswith("_") and not inspect.ismodule(thing)
    }
    assert public - parts == set(ACQUISITIONS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by_acquisition", "acquisition"),
    [(kernel, name) for kernel, names in NAMES_BY_KERNEL.items() for name in names],
    indirect=["by_acquisition"],
)
def test_it_beats_random_search(acquisition, by_acquisition, by_chance):
    """After 30 evaluations of a smooth function, in the median over 20 seeds."""
    assert np.median(by_acquisition[acquisition]) < np.median(by_chance)
