"""Options of XLA for CPUs, each for the jaxlib releases that it was measured with."""

import os

# Without XLA's newer code generators for CPUs, programs on small arrays, as for a
# Gaussian process, run as fast and compile in half the time; loops over thousands of numbers take
# four times as long. XLA terminates a process that passes an unknown flag, so only measured
# releases get it.
_EMITTERS = "xla_cpu_use_fusion_emitters"
_EMITTER_RELEASES = ("0.10.",)
# Without LLVM's unrolling of loops, an ask of a Gaussian process compiles in an eighth less time
# and the training of networks in a fifth less; both run as fast.
_BACKEND = "xla_backend_extra_options"
_NO_UNROLLING = "xla_cpu_disable_loop_unrolling"
# The number of XLA's CPU threads, read when it starts. In these releases a batch of factorizations
# waits, on a thread of this pool, for parts that are queued in the same pool. With as many batches
# as threads, all of them deadlock; with one thread, nothing is queued.
_THREADS = "NPROC"
_DEADLOCK_RELEASES = ("0.10.",)


def compile_faster() -> None:
    """Set flags with which XLA compiles faster for CPUs, except those that the user has set.

    The flags are added to the environment variable XLA_FLAGS, which has an effect only before JAX
    computes anything.
    """
    if not _is_release(_EMITTER_RELEASES):
        return
    flags = os.environ.get("XLA_FLAGS", "")
    for option, value in ((_EMITTERS, "false"), (_BACKEND, _NO_UNROLLING)):
        if option not in flags:
            flags = f"{flags} --{option}={value}".strip()
    os.environ["XLA_FLAGS"] = flags


def for_long_arrays() -> dict[str, bool]:
    """Return compiler options of `jax.jit` for programs on arrays of thousands of numbers.

    Programs such as the training of a network are faster with the newer code generators.
    """
    return {_EMITTERS: True} if _is_release(_EMITTER_RELEASES) else {}


def for_narrow_networks() -> dict[str, bool | str | int]:
    """Return compiler options of `jax.jit` for training narrow networks with noise.

    On a CPU, XLA calls YNNPACK for products and sums, which is slower for the narrow matrices of a
    network. It also uses only half of a 512-bit register, although long arrays of noise and
    activations would fill it.
    """
    if not _is_release(_EMITTER_RELEASES):  # XLA rejects unknown options
        return {}
    return {
        **for_long_arrays(),
        "xla_cpu_experimental_ynn_fusion_type": "",
        "xla_cpu_prefer_vector_width": 512,
    }


def use_one_thread() -> None:
    """Limit XLA to one thread if several can deadlock in this release, unless NPROC is set."""
    if _is_release(_DEADLOCK_RELEASES):
        os.environ.setdefault(_THREADS, "1")


def _is_release(releases: tuple[str, ...]) -> bool:
    import jaxlib

    return jaxlib.__version__.startswith(releases)
