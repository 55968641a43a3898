"""Collect garbage among new objects only, while a large program is traced.

Tracing an ask makes some hundred thousand objects, for which Python examines all objects of the
process several times. The packages that bonas imports have made many that are never garbage.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def only_new_objects() -> Iterator[None]:
    """Exclude the objects that exist now from garbage collection; usable as a decorator.

    If the caller has already called `gc.freeze`, nothing changes.
    """
    is_frozen = gc.get_freeze_count() > 0
    if not is_frozen:
        gc.freeze()
    try:
        yield
    finally:
        if not is_frozen:
            gc.unfreeze()
