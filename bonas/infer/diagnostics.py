"""Have the chains mixed? R-hat, effective sample sizes, and the way to ArviZ. On the host, in NumPy."""

import jax
import numpy as np
import numpyro.diagnostics

from bonas.infer.target import Info, Tree


def r_hat(chains: Tree) -> Tree:
    """Split R-hat of each parameter, for leaves (chains, samples, ...): below 1.01 when the chains have mixed."""
    return jax.tree.map(lambda leaf: numpyro.diagnostics.split_gelman_rubin(_at_least(leaf, 4)), chains)


def effective_sample_size(chains: Tree) -> Tree:
    """How many independent draws each parameter's draws are worth, for leaves (chains, samples, ...)."""
    return jax.tree.map(lambda leaf: numpyro.diagnostics.effective_sample_size(_at_least(leaf, 4)), chains)


def _at_least(leaf, fewest: int) -> np.ndarray:
    leaf = np.asarray(leaf)
    if leaf.ndim < 2 or leaf.shape[1] < fewest:
        raise ValueError(f"expected leaves of shape (chains, samples, ...) with at least {fewest} samples; got {leaf.shape}")
    return leaf


def summary(chains: Tree, info: Info | None = None) -> str:
    """A table of mean, standard deviation, effective sample size and R-hat of each parameter, and the divergences."""
    lines = [f"{'parameter':24s} {'mean':>10s} {'std':>10s} {'ess':>8s} {'r_hat':>7s}"]
    for name, draws in _named(chains).items():
        flat = draws.reshape(*draws.shape[:2], -1)
        ess, hat = effective_sample_size(flat), r_hat(flat)
        for i in range(flat.shape[2]):
            label = name if flat.shape[2] == 1 else f"{name}[{i}]"
            column = flat[:, :, i]
            lines.append(f"{label:24s} {column.mean():10.4g} {column.std():10.4g} {ess[i]:8.0f} {hat[i]:7.3f}")
    if info is not None:
        lines.append(f"divergences: {int(np.sum(info.diverging))} of {np.size(info.diverging)}")
    return "\n".join(lines)


def to_arviz(chains: Tree, info: Info | None = None):
    """The chains, leaves (chains, samples, ...), as ArviZ's InferenceData. Needs `pip install bonas[arviz]`."""
    try:
        import arviz
    except ImportError as problem:
        raise ImportError("to_arviz needs ArviZ: pip install 'bonas[arviz]'") from problem
    stats = None
    if info is not None:
        stats = {"lp": np.asarray(info.log_density), "diverging": np.asarray(info.diverging)}
        stats["acceptance_rate"] = np.asarray(info.accept)
    return arviz.from_dict(posterior=_named(chains), sample_stats=stats)


def _named(chains: Tree) -> dict[str, np.ndarray]:
    """Leaves by their path, joined by dots."""
    leaves = jax.tree_util.tree_leaves_with_path(chains)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") or "z" for path, _ in leaves]  # a bare array has no path
    return {name: np.asarray(leaf) for name, (_, leaf) in zip(names, leaves, strict=True)}
