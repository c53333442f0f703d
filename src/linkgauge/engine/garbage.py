"""Python's garbage collector while a run measures."""

from __future__ import annotations

import gc

_NEW_OBJECTS = 50_000


def collect_seldom() -> None:
    """What is loaded by now stays, and what a run finds is kept: looking through it as often as
    usual takes time and frees nothing."""
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
