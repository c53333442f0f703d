"""The environment variable and the words that name the history. Every run asks whether there is a
history, so this module must load fast."""

from __future__ import annotations

import os

VARIABLE = "LINKGAUGE_HISTORY"
NOWHERE = "none"


def is_off() -> bool:
    """Whether the history is turned off."""
    return os.environ.get(VARIABLE, "").strip().lower() == NOWHERE
