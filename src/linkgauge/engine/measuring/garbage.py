"""Controls Python's garbage collector while a run measures."""

from __future__ import annotations

import gc

_NEW_OBJECTS = 50_000


def collect_seldom() -> None:
    """Makes the collector run seldom, because it takes time and frees nothing. Only the first call
    has an effect."""
    if gc.get_threshold()[0] == _NEW_OBJECTS:
        return
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
