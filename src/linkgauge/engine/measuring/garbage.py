"""Controls Python's garbage collector while a run measures."""

from __future__ import annotations

import gc

_NEW_OBJECTS = 50_000


def collect_seldom() -> None:
    """Makes the collector run seldom, because scanning loaded objects and kept results takes time
    and frees nothing. Only the first call has an effect, so that a second run in this process can
    free the objects of the first run."""
    if gc.get_threshold()[0] == _NEW_OBJECTS:
        return
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
