"""Controls Python's garbage collector while a run measures."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 50_000


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Makes the collector run seldom during a block, because it takes time and frees nothing.
    Has no effect if the collector already runs as seldom."""
    before = gc.get_threshold()
    if before[0] >= _NEW_OBJECTS:
        yield
        return
    gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
