"""How the person at the terminal calls linkgauge."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

NAME = "linkgauge"


def program() -> str:
    """Its name where a shell finds it, else the path that was typed: `.venv/bin/linkgauge`."""
    typed = sys.argv[0]
    return NAME if Path(typed).name != NAME or shutil.which(NAME) else typed
