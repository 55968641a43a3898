"""Convergence diagnostics in NumPy: R-hat, effective sample sizes, and export to ArviZ."""

from typing import Any

import jax
import numpy as np
import numpyro.diagnostics

from bonas.infer.posterior import Info, Tree

# Samples per chain that NumPyro's estimates need.
_MIN_SAMPLES = 4


def r_hat(chains: Tree) -> Tree:
    """Return the split R-hat of each parameter.

    A value below 1.01 indicates that the chains have mixed.

    Args:
        chains: Pytree with leaves (chains, samples, ...), of at least four samples.
    """
    return jax.tree.map(
        lambda leaf: numpyro.diagnostics.split_gelman_rubin(_check_chains(leaf)), chains
    )


def effective_sample_size(chains: Tree) -> Tree:
    """Return the effective sample size of each parameter, over all chains.

    Args:
        chains: Pytree with leaves (chains, samples, ...), of at least four samples.
    """
    return jax.tree.map(
        lambda leaf: numpyro.diagnostics.effective_sample_size(_check_chains(leaf)),
        chains,
    )


def _check_chains(leaf: Any) -> np.ndarray:
    array = np.asarray(leaf)
    if array.ndim < 2 or array.shape[1] < _MIN_SAMPLES:
        raise ValueError(
            "expected leaves of shape (chains, samples, ...) with at least "
            f"{_MIN_SAMPLES} samples; got {array.shape}"
        )
    return array


def summary(chains: Tree, info: Info | None = None) -> str:
    """Return a text table of means, standard deviations, effective sample sizes and R-hat.

    Args:
        chains: Pytree with leaves (chains, samples, ...), of at least four samples.
        info: Statistics of the run, from which the number of divergences is added.
    """
    lines = [f"{'parameter':24s} {'mean':>10s} {'std':>10s} {'ess':>8s} {'r_hat':>7s}"]
    for name, draws in _named(chains).items():
        flat = draws.reshape(*draws.shape[:2], -1)
        ess = effective_sample_size(flat)
        hat = r_hat(flat)
        for i in range(flat.shape[2]):
            label = name if flat.shape[2] == 1 else f"{name}[{i}]"
            column = flat[:, :, i]
            moments = f"{column.mean():10.4g} {column.std():10.4g}"
            lines.append(f"{label:24s} {moments} {ess[i]:8.0f} {hat[i]:7.3f}")
    if info is not None:
        lines.append(
            f"divergences: {int(np.sum(info.diverging))} of {np.size(info.diverging)}"
        )
    return "\n".join(lines)


def to_arviz(chains: Tree, info: Info | None = None) -> Any:
    """Convert chains to the InferenceData of ArviZ, which must be installed.

    The command is `pip install 'bonas[arviz]'`.

    Args:
        chains: Pytree with leaves (chains, samples, ...).
        info: Statistics of the run with leaves (chains, samples), which become `sample_stats`.
    """
    try:
        import arviz
    except ImportError as problem:
        raise ImportError(
            "to_arviz needs ArviZ: pip install 'bonas[arviz]'"
        ) from problem
    stats = None
    if info is not None:
        stats = {
            "lp": np.asarray(info.log_density),
            "diverging": np.asarray(info.diverging),
            "acceptance_rate": np.asarray(info.accept),
        }
    return arviz.from_dict(posterior=_named(chains), sample_stats=stats)


def _named(chains: Tree) -> dict[str, np.ndarray]:
    """Map names to leaves: the path joined by dots, or "z" for an array without a path."""
    return {
        jax.tree_util.keystr(path, simple=True, separator=".") or "z": np.asarray(leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(chains)
    }
