"""Bayesian networks sampled by Hamiltonian Monte Carlo as surrogates (Agrawal, Section 5)."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, PRNGKeyArray

from bonas.data import Dataset, empty
from bonas.half_capacity import call_on_half
from bonas.infer import HAMILTONIAN_METHODS as TRAJECTORIES
from bonas.infer import Chain, Info, all_finite, choose
from bonas.nets import BNN, bnn_hmc
from bonas.nets.bnn_hmc import OUTPUT_LAYER, Draws
from bonas.spaces import Space
from bonas.static_settings import check_all_static
from bonas.surrogates.drawn_networks import DrawnNetworks, zeros_of
from bonas.surrogates.metropolis_network import sample_metropolis
from bonas.surrogates.network_inputs import check_single_output, features, width
from bonas.surrogates.network_posterior import (
    IntegratedOutput,
    Predictive,
    SampledNetworks,
    mean_noise,
)
from bonas.surrogates.surrogate import FitInfo
from bonas.traced_settings import Setting, as_setting, setting_value

METHODS = (*TRAJECTORIES, "metropolis")
# The noise variance of a new chain, in variances of the values.
_FIRST_NOISE = 0.1


class HMCState(NamedTuple):
    """State of `hmc_network`: networks drawn from the posterior, and the chains to continue."""

    chains: Chain  # (chains, ...)
    draws: Draws  # (s, ...)
    learned: Any  # result of `Predictive.learn`
    fitted: Array  # () bool: false before the first fit


@dataclass(frozen=True)
class HMCNetwork(DrawnNetworks):
    """Surrogate that samples Bayesian networks by HMC; see `hmc_network`."""

    widths: tuple[int, ...]
    output: str
    chains: int
    samples: int
    burn: int
    first_burn: int
    initial_step_size: Setting
    method: str
    precisions: str
    steps: int
    target: Setting
    thin: int
    depth: int
    activation: str
    index: float | tuple[float, ...]
    shared: bool
    scaled: bool
    whitened: bool
    weight_prior: tuple[float, float]
    noise_prior: tuple[float, float]
    floor: Setting
    dtype: str | None
    space: Space | None = None

    def init(self, capacity: int, d: int, p: int = 1) -> HMCState:
        check_single_output(p)
        key = jax.random.key(0)  # only shapes are used

        def make() -> tuple[Chain, Draws, Any]:
            data = empty(capacity, d, 1)
            dtype = self._dtype(data.x)
            draws = bnn_hmc.prior(key, self._bnn(d), self.samples, dtype=dtype)
            learned = self._predictive(d).learn(draws, self._data(data))
            return self._init_chains(key, d, dtype), draws, learned

        chains, draws, learned = zeros_of(make)
        return HMCState(chains, draws, learned, jnp.asarray(False))

    def fit(
        self, key: PRNGKeyArray, data: Dataset, state: HMCState
    ) -> tuple[HMCState, FitInfo]:
        d = data.x.shape[1]
        init_key, run_key = jax.random.split(key)
        new = self._init_chains(init_key, d, self._dtype(data.x))
        start = choose(state.fitted, state.chains, new)
        draws, chain, info = call_on_half(self._run, data, run_key, start, state.fitted)
        if self.method == "hmc":
            # Burn-in changes the step size by only 2% per trajectory.
            factor = jnp.exp(info.accept.mean(axis=1) - setting_value(self.target))
            step_size = (chain.step_size * factor).astype(chain.step_size.dtype)
            chain = chain._replace(step_size=step_size)
        draws = bnn_hmc.merge_chains(draws)
        learned = self._predictive(d).learn(draws, self._data(data))
        density = info.log_density.mean().astype(data.y.dtype)
        finite = all_finite((draws, chain, learned, density))
        integrated = self.output == "integrated"
        jitter = learned.jitter.max() if integrated else jnp.zeros_like(density)
        found = HMCState(chain, draws, learned, jnp.asarray(True))
        converged = finite & ~info.diverging.any()
        report = FitInfo(density, converged, finite, jitter)
        return choose(finite | ~state.fitted, found, state), report

    def adapt(self, space: Space) -> "HMCNetwork":
        return replace(self, space=space)

    def _noise(self, draws: Draws) -> Float[Array, ""]:
        return mean_noise(draws)

    def _bnn(self, d: int) -> BNN:
        return BNN(
            width(self.space, d),
            widths=self.widths,
            activation=self.activation,
            index=self.index,
            shared=self.shared,
            scaled=self.scaled,
            whitened=self.whitened,
            weight_prior=self.weight_prior,
            noise_prior=self.noise_prior,
        )

    def _predictive(self, d: int) -> Predictive:
        bnn = self._bnn(d)
        return (
            SampledNetworks(setting_value(self.floor), bnn)
            if self.output == "sampled"
            else IntegratedOutput(bnn)
        )

    def _dtype(self, like: Array) -> Any:
        return like.dtype if self.dtype is None else jnp.dtype(self.dtype)

    def _inputs(self, x: Array) -> Array:
        """Return inputs in [−1, 1]."""
        return (2.0 * features(self.space, x) - 1.0).astype(self._dtype(x))

    def _init_chains(self, key: PRNGKeyArray, d: int, dtype: Any) -> Chain:
        """Draw networks from the prior, with a suitable noise precision.

        Hidden layers from the prior fit poorly, so the initial noise is large. If the output layer
        is sampled, or the noise fixed, the initial noise is the mean of the prior.
        """
        bnn = self._bnn(d)
        chain = bnn_hmc.init_chains(key, bnn, self.chains, dtype=dtype)
        shape, rate = bnn.noise_prior
        from_prior = self.output == "sampled" or self.precisions == "fixed"
        precision = shape / rate if from_prior else 1.0 / _FIRST_NOISE
        noise = jnp.full_like(chain.gibbs_values.noise, precision)
        step_size = jnp.full_like(
            chain.step_size, setting_value(self.initial_step_size)
        )
        return Chain(
            chain.position, chain.gibbs_values._replace(noise=noise), step_size
        )

    def _run(
        self, data: Dataset, key: PRNGKeyArray, start: Chain, fitted: Bool[Array, ""]
    ) -> tuple[Draws, Chain, Info]:
        """Run the chains from `start`."""
        bnn = self._bnn(data.x.shape[1])
        each = self.samples // self.chains
        data = self._data(data)
        data = data._replace(y=data.y.astype(self._dtype(data.y)))
        if self.method == "metropolis":
            return sample_metropolis(
                key,
                bnn,
                data,
                start,
                resumed=fitted,
                samples=each,
                burn=self.burn,
                first_burn=self.first_burn,
                thin=self.steps * self.thin,
                output=self.output,
            )
        burn: Any = jnp.where(fitted, self.burn, self.first_burn)
        return bnn_hmc.sample(
            key,
            bnn,
            data,
            start,
            samples=each,
            burn=self.first_burn if self.method == "nuts" else burn,
            gibbs_delay=jnp.where(fitted, 0, 2 * self.first_burn // 3),
            method=self.method,
            output=self.output,
            precisions=self.precisions,
            steps=self.steps,
            target=setting_value(self.target),
            thin=self.thin,
            depth=self.depth,
        )


def hmc_network(
    widths: tuple[int, ...] = (50, 50),
    *,
    output: str = "integrated",
    chains: int = 5,
    samples: int = 40,
    burn: int = 2,
    first_burn: int = 100,
    initial_step_size: ArrayLike = 0.05,
    method: str = "hmc",
    precisions: str = "joint",
    steps: int = 40,
    target: ArrayLike = 0.8,
    thin: int = 1,
    depth: int = 6,
    activation: str = "tanh",
    index: float | tuple[float, ...] = 2.0,
    shared: bool = False,
    scaled: bool = True,
    whitened: bool = True,
    weight_prior: tuple[float, float] = (2.0, 20.0),
    noise_prior: tuple[float, float] = (0.5, 1e-4),
    floor: ArrayLike = 1e-3,
    dtype: str | None = None,
) -> HMCNetwork:
    """Model the objective by a Bayesian network sampled by HMC (Agrawal, Section 5).

    The prediction is the mean and standard deviation of the sampled networks (Agrawal, eqs. 5.8 and
    5.9). A search adapts the model to its space: a Choice becomes one input per option, and a
    conditional parameter has another input that is 1 where it is active. Inputs are scaled to
    [−1, 1]. Values assumed at pending points condition each network's output layer or, if output
    layers are sampled, the moments of the networks.

    The default widths, priors and chain lengths were chosen by the log density of values along
    searches of Branin, Ackley and Levy in two dimensions, and by the regret of searches of Branin,
    Levy and Hartmann 3. In these searches `bayes(output="tails")` was better than plain values,
    because the inferred noise explains small differences among huge values.

    Args:
        widths: Widths of the hidden layers.
        output: "integrated": chains sample the hidden layers, and the output layer, which is normal
            given those, is integrated out. "sampled": chains sample all weights, as in Agrawal. The
            posterior is the same, but "integrated" mixes better.
        chains: The number of chains, started from draws of the prior.
        samples: The total number of networks over all chains, a multiple of `chains`.
        burn: The number of trajectories that a chain discards when a later fit continues it.
        first_burn: The number of trajectories that a chain discards at the first fit.
        initial_step_size: The leapfrog step size of a new chain. The default is for tens of values;
            hundreds need a smaller one, because burn-in changes it by only 2% per trajectory and
            accepts none until it is small enough.
        method: "hmc" with trajectories of `steps` leapfrog steps; "nuts" with at most 2^depth,
            which discards `first_burn` at every fit; or "metropolis", a baseline with `steps` steps
            of a random walk per trajectory, for joint precisions.
        precisions: How the precisions of weights and noise are sampled: "joint" with the weights,
            "gibbs" between trajectories, or "fixed"; see `nets.bnn_hmc.sample`.
        steps: The number of leapfrog steps per trajectory.
        target: The target acceptance rate.
        thin: The number of trajectories per network that is kept.
        depth: The maximum tree depth of "nuts".
        activation: The activation function, such as "tanh"; see `nets.BNN`.
        index: The index of the stable prior of weights and biases, one for all layers or one per
            layer: 2 is normal, 1 is Cauchy.
        shared: Whether all weights share one precision, instead of two per layer.
        scaled: Whether the prior scale of weights decreases with the width of the layer before.
        whitened: Whether weights are sampled in units of their prior scale.
        weight_prior: (shape, rate) of the Gamma prior of the precisions of weights.
        noise_prior: (shape, rate) of the Gamma prior of the noise precision.
        floor: With output="sampled", a standard deviation that is combined with the spread of the
            networks (the variances add), in units of the standardized values, because the spread of
            a finite number of networks is inexact.
        dtype: The precision of the networks, such as "float32". Default: the precision of the data.
    """
    check_all_static(widths=widths, chains=chains, samples=samples, burn=burn)
    check_all_static(first_burn=first_burn, steps=steps, thin=thin, depth=depth)
    check_all_static(method=method, output=output, precisions=precisions, index=index)
    check_all_static(weight_prior=weight_prior, noise_prior=noise_prior)
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
    if min(samples, chains, first_burn) < 1 or burn < 0:
        raise ValueError(
            "samples, chains and first_burn must be at least 1, and burn must be at least 0; "
            f"got {samples}, {chains}, {first_burn} and {burn}"
        )
    if samples % chains:
        raise ValueError(
            f"samples must be a multiple of chains, {chains}; got {samples}"
        )
    spread = as_setting("floor", floor)
    first_size = as_setting("initial_step_size", initial_step_size)
    if any(isinstance(each, float) and not each > 0.0 for each in (spread, first_size)):
        raise ValueError(
            "floor and initial_step_size must be above 0; "
            f"got {floor} and {initial_step_size}"
        )
    if output not in OUTPUT_LAYER:
        raise ValueError(
            f"output must be one of {', '.join(OUTPUT_LAYER)}; got {output!r}"
        )
    if method == "metropolis" and precisions != "joint":
        raise ValueError(
            f"precisions must be 'joint' for method='metropolis'; got {precisions!r}"
        )
    return HMCNetwork(
        widths=tuple(widths),
        output=output,
        chains=chains,
        samples=samples,
        burn=burn,
        first_burn=first_burn,
        initial_step_size=first_size,
        method=method,
        precisions=precisions,
        steps=steps,
        target=as_setting("target", target),
        thin=thin,
        depth=depth,
        activation=activation,
        index=index,
        shared=shared,
        scaled=scaled,
        whitened=whitened,
        weight_prior=weight_prior,
        noise_prior=noise_prior,
        floor=spread,
        dtype=dtype,
    )
