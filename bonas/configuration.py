"""Global settings: precision, threads and the compilation cache.

No other part of bonas changes global settings.
"""

import os
import sys
import warnings
from pathlib import Path
from typing import Any

from bonas.xla_options import compile_faster, use_one_thread

# BLAS libraries read these when a process starts: they are set for child processes.
_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
# Packages whose frames are not the caller's.
_INTERNAL = ("bonas", "jax", "contextlib")
# Programs that compile in less than this many seconds are not cached.
_MIN_COMPILE_SECONDS = 0.05

# Whether `configure` was called, or the warning about its absence was shown.
_is_configured = False


def configure(
    *,
    x64: bool = True,
    threads: int | None = 1,
    cache: bool | str | os.PathLike[str] = True,
) -> None:
    """Configure the precision, the number of threads and the compilation cache of JAX.

    By default, set float64, one BLAS thread and a persistent compilation cache. Call it before JAX
    computes anything; XLA then also compiles for CPUs in about half the time. A later call that
    changes the precision discards all compiled programs. A second call with the same arguments has
    no effect.

    Args:
        x64: Whether to use float64, which Gaussian processes need for accuracy. Pass False for
            accelerators without float64; the jitter added to covariance matrices is then larger,
            because rounding errors are.
        threads: Number of BLAS threads; None keeps the present number. With more than one, small
            Cholesky factorizations are up to 200 times slower if other processes share the cores.
            With one, XLA of jaxlib 0.10 gets one thread too unless NPROC is set: with a few threads
            it can deadlock on batches of matrices of about 200 rows.
        cache: Folder in which compiled programs are stored. True uses the environment variable
            JAX_COMPILATION_CACHE_DIR if it is set, else `bonas/xla` in the user's cache folder.
            False disables the cache.
    """
    is_count = (
        isinstance(threads, int) and not isinstance(threads, bool) and threads >= 1
    )
    if threads is not None and not is_count:
        raise ValueError(
            f"threads must be a whole number of at least 1, or None; got {threads!r}"
        )
    import jax
    import jax.numpy as jnp

    global _is_configured
    _is_configured = True
    if (jnp.result_type(float) == jnp.float64) != x64:
        jax.clear_caches()
    jax.config.update("jax_enable_x64", x64)
    compile_faster()
    if threads is not None:
        _limit_threads(threads)
    folder = None if cache is False else _cache_folder(cache)
    try:
        # JAX creates folders in a cloud bucket itself
        if folder and "://" not in folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        warnings.warn(f"bonas uses no compilation cache: {problem}", stacklevel=2)
        folder = None
    _set_cache(folder)


def warn_about_single_precision() -> None:
    """Warn once per process if a search runs in float32 on a CPU without `bonas.configure`."""
    import jax

    global _is_configured
    if _is_configured or jax.default_backend() != "cpu":
        return
    _is_configured = True
    warnings.warn(
        "this search runs in float32, which is too coarse for Gaussian processes: call "
        "bonas.configure() first for float64, or bonas.configure(x64=False) to keep float32",
        stacklevel=caller_level(),
    )


def precision_error(what: str) -> str:
    """Return the error message for a result that was computed in another precision.

    Args:
        what: The first words of the message, such as "the state was computed".
    """
    import jax.numpy as jnp

    x64 = jnp.result_type(float) == jnp.float64
    old, new = ("float32", "float64") if x64 else ("float64", "float32")
    return (
        f"{what} in {old}, but this process computes in {new}: "
        f"call bonas.configure({'x64=False' if x64 else ''}) to continue in {old}, or "
        f"bonas.configure({'' if x64 else 'x64=False'}) before you start to use {new}"
    )


def caller_level() -> int:
    """Return the stack level of the first caller outside bonas and JAX, for `warnings.warn`."""
    level = 1
    frame: Any = sys._getframe(1)
    while (
        frame is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] in _INTERNAL
    ):
        level += 1
        frame = frame.f_back
    return level


def _set_cache(folder: str | None) -> None:
    import jax
    from jax.experimental.compilation_cache.compilation_cache import reset_cache

    jax.config.update("jax_compilation_cache_dir", folder)
    reset_cache()  # JAX does not notice a new folder otherwise
    if folder:
        jax.config.update(
            "jax_persistent_cache_min_compile_time_secs", _MIN_COMPILE_SECONDS
        )


def _limit_threads(threads: int) -> None:
    import scipy.linalg  # noqa: F401  loads the BLAS that JAX uses on a CPU, so that it is limited
    from threadpoolctl import threadpool_limits

    for variable in _THREAD_VARIABLES:
        os.environ[variable] = str(threads)
    if threads == 1:
        use_one_thread()
    threadpool_limits(limits=threads, user_api="blas")


def _cache_folder(cache: bool | str | os.PathLike[str]) -> str:
    if not isinstance(cache, bool):
        return os.path.expanduser(cache)
    return os.environ.get("JAX_COMPILATION_CACHE_DIR") or str(user_cache() / "xla")


def user_cache() -> Path:
    """Return the cache folder of bonas, a subfolder of the user's cache folder."""
    if sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA", Path.home()))
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "bonas"
