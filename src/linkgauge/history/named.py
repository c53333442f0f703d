"""What names the history. It loads fast: every run asks whether there is one."""

from __future__ import annotations

import os

VARIABLE = "LINKGAUGE_HISTORY"
NOWHERE = "none"


def is_off() -> bool:
    """Whether runs go to no history."""
    return os.environ.get(VARIABLE, "").strip().lower() == NOWHERE
