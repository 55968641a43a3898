"""The one place that changes global settings: precision, threads and the compilation cache."""

import os
import sys
import warnings
from pathlib import Path

# Read by BLAS libraries when a process starts: set here for the children of this one.
_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
# Compilations shorter than this (seconds) are not worth a file.
_WORTH_CACHING = 0.3
# Without XLA's newer emitters for CPUs programs on small arrays, such as a Gaussian process's, run as fast and compile in
# half the time; passes over thousands of numbers take four times as long. Only for releases in which this was measured: XLA
# ends a process that gives it a flag it does not know.
_EMITTERS = "xla_cpu_use_fusion_emitters"
_MEASURED = ("0.10.",)
# How many threads XLA has for a CPU, read when it starts. In these releases a batch of factorisations waits, on a thread of
# this pool, for parts of it that are queued there: as many batches at once as there are threads wait for ever. One never waits.
_POOL = "NPROC"
_WAITS_FOR_ITSELF = ("0.10.",)


def configure(*, x64: bool = True, threads: int | None = 1, cache: bool | str | os.PathLike = True) -> None:
    """Set float64, one BLAS thread and a persistent compilation cache. Calling it again changes nothing.

    Called before JAX has computed anything, it also has XLA compile for CPUs in about half the time.

    x64: float64 is where Gaussian processes live; False for accelerators without it (jitter then scales with float32).
    threads: how many threads BLAS may use; None leaves them alone. More than one makes small Cholesky factorisations up to
        two hundred times slower when other processes share the cores. With one, XLA of jaxlib 0.10 has one thread, too, unless
        NPROC says otherwise: with a few it can wait for itself, for ever, once batches of matrices have some 200 rows.
    cache: where compiled programs are kept between runs. True means `bonas/xla` in the user's cache folder, unless
        JAX_COMPILATION_CACHE_DIR already names a place; False means no cache; a path means that folder.
    """
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise ValueError(f"threads must be a whole number of at least 1, or None to leave BLAS alone; got {threads!r}")
    import jax

    jax.config.update("jax_enable_x64", x64)
    _compile_faster()
    if threads is not None:
        _limit_threads(threads)
    folder = None if cache is False else _cache_folder(cache)
    try:
        if folder and "://" not in folder:  # a bucket is JAX's own affair
            Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        warnings.warn(f"bonas keeps no compilation cache: {problem}", stacklevel=2)
        folder = None
    _keep_cache(folder)


def _keep_cache(folder: str | None) -> None:
    """Keep compiled programs in the folder, or nowhere; JAX notices a change only when its cache is reset."""
    import jax
    from jax.experimental.compilation_cache.compilation_cache import reset_cache

    jax.config.update("jax_compilation_cache_dir", folder)
    reset_cache()
    if folder:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _WORTH_CACHING)


def _compile_faster() -> None:
    import jaxlib

    flags = os.environ.get("XLA_FLAGS", "")
    if jaxlib.__version__.startswith(_MEASURED) and _EMITTERS not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --{_EMITTERS}=false".strip()


def for_long_arrays() -> dict[str, bool]:
    """What `jax.jit(compiler_options=)` takes for programs on arrays of thousands of numbers, such as training a network."""
    import jaxlib

    return {_EMITTERS: True} if jaxlib.__version__.startswith(_MEASURED) else {}


def _limit_threads(threads: int) -> None:
    import jaxlib
    import scipy.linalg  # noqa: F401  the BLAS that JAX calls on a CPU: it must be loaded to be limited
    from threadpoolctl import threadpool_limits

    for variable in _THREAD_VARIABLES:
        os.environ[variable] = str(threads)
    if threads == 1 and jaxlib.__version__.startswith(_WAITS_FOR_ITSELF):
        os.environ.setdefault(_POOL, "1")
    threadpool_limits(limits=threads, user_api="blas")


def _cache_folder(cache: bool | str | os.PathLike) -> str:
    if not isinstance(cache, bool):
        return os.path.expanduser(cache)
    if os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return os.environ["JAX_COMPILATION_CACHE_DIR"]
    return str(user_cache() / "xla")


def user_cache() -> Path:
    """The folder for what bonas keeps between runs, where this system has such folders."""
    if sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA", Path.home()))
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "bonas"
