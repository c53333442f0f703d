"""The environment variable and words that name the history. This module loads fast, because every
run asks whether there is a history."""

from __future__ import annotations

import os

VARIABLE = "LINKGAUGE_HISTORY"
NOWHERE = "none"


def is_off() -> bool:
    """Whether the history is turned off."""
    return os.environ.get(VARIABLE, "").strip().lower() == NOWHERE
