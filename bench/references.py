"""Compiles the loops in C that linkgauge is compared with."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path


def compiled(source: Path, flags: Sequence[str], folder: Path) -> ctypes.CDLL:
    """The library that gcc makes of `source` in this folder. Raises RuntimeError if it cannot."""
    compiler = shutil.which("gcc")
    if compiler is None:
        raise RuntimeError("gcc is not installed: it compiles what is compared with")
    library = folder / f"{source.stem}.so"
    command = [compiler, *flags, str(source), "-o", str(library)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        raise RuntimeError(f"gcc could not compile {source.name}: {built.stderr.strip()}")
    return ctypes.CDLL(str(library))
