"""Tells whether the history is turned off. Every run needs this answer, so the module must load
fast."""

from __future__ import annotations

import os

VARIABLE = "LINKGAUGE_HISTORY"
NOWHERE = "none"


def is_off() -> bool:
    return os.environ.get(VARIABLE, "").strip().lower() == NOWHERE
