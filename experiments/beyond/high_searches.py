"""The searches in many dimensions and their assumptions; add an entry to METHODS for a new one."""

from collections.abc import Callable
from dataclasses import dataclass

import bonas
from bonas import gp, surrogates
from bonas.search import Search
from bonas.search import random as random_search
from bonas.search import sobol as sobol_search
from experiments import common
from experiments.beyond.high_problems import (
    AXES,
    GROUPS,
    LINE,
    NONE,
    PLANE,
    SMOOTH,
    Case,
)

CHANCE, EVEN = "random", "Sobol"
SAAS, NETWORK = "SAAS by NUTS", "network by HMC"


@dataclass(frozen=True)
class Method:
    """A search and its assumption."""

    search: Callable[[Case, object], Search]
    needs: str = NONE
    # given the groups, so it runs only on problems that have them
    needs_groups: bool = False
    slow: bool = False  # runs on fewer seeds
    # Fields of Config that a run depends on, besides `evaluations` and `initial`
    uses: tuple[str, ...] = ()


def _gp(make_kernel, **settings) -> Callable[[Case, object], Search]:
    """Return log EI with a GP on plain values; these methods differ only in kernel and priors."""

    def search(case: Case, config) -> Search:
        return _bayes(
            case, config, surrogates.gp(make_kernel(), steps=config.steps, **settings)
        )

    return search


def _bayes(case: Case, config, surrogate) -> Search:
    return bonas.bayes(
        case.problem.space, surrogate=surrogate, initial=config.initial, output="plain"
    )


def _rembo(kernel: str) -> Callable[[Case, object], Search]:
    def search(case: Case, config) -> Search:
        each = -(-config.initial // config.embeddings)
        settings = {
            "dim": case.directions,
            "embeddings": config.embeddings,
            "kernel": kernel,
            "initial": each,
        }
        return bonas.rembo(case.problem.space, output="plain", **settings)

    return search


def _sum(case: Case, config, groups="learned") -> Search:
    return bonas.add_gp_ucb(
        case.problem.space,
        groups=groups,
        every=config.every,
        initial=config.initial,
        output="plain",
    )


def _saas(case: Case, config) -> Search:
    settings = {
        "every": config.every,
        "samples": config.saas_samples,
        "burn": config.saas_burn,
        "depth": config.saas_depth,
    }
    return _bayes(case, config, surrogates.saas(thin=config.saas_thin, **settings))


def _network(case: Case, config) -> Search:
    settings = {
        "chains": config.chains,
        "samples": config.draws,
        "burn": config.burn,
        "first_burn": config.first,
    }
    return _bayes(
        case,
        config,
        surrogates.hmc_network(
            config.widths, steps=config.leapfrogs, dtype="float32", **settings
        ),
    )


def _turbo(case: Case, config) -> Search:
    return bonas.turbo(
        case.problem.space, initial=config.initial, candidates=config.candidates
    )


def _random(case: Case, config) -> Search:
    """Return random search from the initial points of `bonas.bayes` for the same key."""
    return common.plan_from_sobol(random_search(case.problem.space), config.initial)


FIT = ("steps",)
METHODS = {
    CHANCE: Method(_random),
    EVEN: Method(lambda case, config: sobol_search(case.problem.space)),
    "Matérn": Method(_gp(gp.matern52), SMOOTH, uses=FIT),
    "Matérn, short scales": Method(
        _gp(lambda: gp.matern52(gp.priors.spearmint)), SMOOTH, uses=FIT
    ),
    "Matérn, long scales": Method(
        _gp(
            lambda: gp.matern52(gp.priors.dimension_scaled),
            noise=gp.priors.dimension_scaled_noise,
        ),
        SMOOTH,
        uses=FIT,
    ),
    "linear": Method(_gp(gp.linear), LINE, uses=FIT),
    "linear on a sphere": Method(_gp(gp.spherical_linear), LINE, uses=FIT),
    "REMBO, low": Method(_rembo("low"), PLANE, uses=("embeddings",)),
    "REMBO, high": Method(_rembo("high"), PLANE, uses=("embeddings",)),
    "TuRBO-1": Method(_turbo, SMOOTH, uses=("candidates",)),
    "Add-GP-UCB": Method(_sum, GROUPS, slow=True, uses=("every",)),
    "Add-GP-UCB, given groups": Method(
        lambda case, config: _sum(case, config, case.groups),
        GROUPS,
        needs_groups=True,
        slow=True,
        uses=("every",),
    ),
    NETWORK: Method(
        _network,
        NONE,
        slow=True,
        uses=("widths", "chains", "draws", "burn", "first", "leapfrogs"),
    ),
    SAAS: Method(
        _saas,
        AXES,
        slow=True,
        uses=("every", "saas_samples", "saas_thin", "saas_burn", "saas_depth"),
    ),
}
