"""Files of finished runs: arrays and JSON in one npz file, without pickle."""

import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bonas.search.capacities import match_state, paths_of
from bonas.search.search import AskInfo, Search, ask_info

# Increase this when files change such that older versions of bonas cannot read them.
FORMAT = 1
_HEADER = "bonas"

Arrays = dict[str, np.ndarray]
PathLike = str | os.PathLike[str]


def write_run(
    path: PathLike, kind: str, header: dict[str, Any], arrays: dict[str, Any]
) -> None:
    """Write a run atomically, replacing any existing file.

    Args:
        path: The file. Its name is kept as it is.
        kind: What is written: "History" or "Result".
        header: Values that JSON can hold.
        arrays: Arrays by name.
    """
    written = json.dumps({"format": FORMAT, "kind": kind, **header})
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            plain: Any = {name: _to_numpy(array) for name, array in arrays.items()}
            plain[_HEADER] = np.array(written)
            np.savez_compressed(file, **plain)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def read_run(path: PathLike, kind: str) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays that `write_run` wrote.

    Raises:
        ValueError: if the file is not of this kind, is damaged, or is of a newer version.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(str(arrays.pop(_HEADER)))
        written, found = int(header["format"]), str(header["kind"])
    except FileNotFoundError:
        raise
    except (
        AttributeError,  # an npy file
        EOFError,
        KeyError,
        NotImplementedError,  # an unknown compression
        OSError,
        OverflowError,
        RecursionError,
        TypeError,
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
    ) as problem:
        raise ValueError(f"{path} is not a saved run, or it is damaged") from problem
    if written > FORMAT:
        raise ValueError(
            f"{path} was saved by a newer version of bonas (format {written}; this version reads "
            f"up to {FORMAT}): update bonas"
        )
    if found != kind:
        raise ValueError(f"{path} is a saved {found}: use bonas.search.{found}.load")
    return header, arrays


def state_arrays(state: Any) -> tuple[list[str], dict[str, Any]]:
    """Return the paths of the leaves of a state, and the leaves by numbered names."""
    leaves = jax.tree.leaves(state)
    return paths_of(state), {f"state.{i}": leaf for i, leaf in enumerate(leaves)}


def restore_state(
    search: Search, paths: list[str], arrays: Arrays, *, runs: tuple[int, ...] = ()
) -> Any:
    """Return a saved state of a search, with leading axes `runs`."""
    leaves = [restore_array(arrays[f"state.{i}"]) for i in range(len(paths))]
    state, _ = match_state(search, paths, leaves, runs=runs)
    return state


def restore_array(array: np.ndarray) -> Any:
    """Return a JAX array; raise a ValueError if its precision would be lost."""
    restored = jnp.asarray(array)
    if restored.dtype != array.dtype:
        raise ValueError(
            f"the run was saved in {array.dtype}, and JAX is set to {restored.dtype}: call "
            "bonas.configure() before loading"
        )
    return restored


def restore_info(arrays: Arrays) -> AskInfo:
    """Return the reports of a run; fields that an older version did not have take their default."""
    found = {
        name.removeprefix("info."): restore_array(array)
        for name, array in arrays.items()
        if name.startswith("info.")
    }
    shape = found["acquisition"].shape
    default = ask_info(found["acquisition"])._asdict()
    missing = {name: jnp.broadcast_to(value, shape) for name, value in default.items()}
    return AskInfo(**{**missing, **found})


def _to_numpy(array: Any) -> np.ndarray:
    is_key = jnp.issubdtype(jnp.result_type(array), jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(array) if is_key else array)
