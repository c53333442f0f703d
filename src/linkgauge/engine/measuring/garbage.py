"""Python's garbage collector while a run measures."""

from __future__ import annotations

import gc

_NEW_OBJECTS = 50_000


def collect_seldom() -> None:
    """Objects loaded so far stay, and results are kept: scanning them as often as by default takes
    time and frees nothing. Once is enough: what a process that measures again has left of earlier
    runs is to be freed."""
    if gc.get_threshold()[0] == _NEW_OBJECTS:
        return
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
