"""Keeps the figures of all runs in a database. Every run asks whether that is turned off, so this
file loads no other."""

from __future__ import annotations

import os

VARIABLE = "LINKGAUGE_HISTORY"
NOWHERE = "none"


def is_off() -> bool:
    """Whether the history is turned off."""
    return os.environ.get(VARIABLE, "").strip().lower() == NOWHERE
