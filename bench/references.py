"""Compiles the loops in C that linkgauge is compared with."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from linkgauge.model.documents.result import Placement
from linkgauge.model.memory import Memory


def compiled(source: Path, flags: Sequence[str], folder: Path) -> ctypes.CDLL:
    """The library that gcc makes of `source` in this folder. Raises RuntimeError if it cannot."""
    return _compiled(shutil.which("gcc"), "gcc", source, flags, folder)


def compiled_by_nvcc(source: Path, folder: Path) -> ctypes.CDLL:
    """The same by nvcc, for this machine's GPU."""
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    flags = "-O3", "-arch=native", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-lcuda"
    return _compiled(nvcc, "nvcc", source, flags, folder)


def _compiled(
    compiler: str | None, name: str, source: Path, flags: Sequence[str], folder: Path
) -> ctypes.CDLL:
    if compiler is None:
        raise RuntimeError(f"{name} is not installed: it compiles what is compared with")
    library = folder / f"{source.stem}.so"
    command = [compiler, *flags, str(source), "-o", str(library)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        raise RuntimeError(f"{name} could not compile {source.name}: {built.stderr.strip()}")
    return ctypes.CDLL(str(library))


class Block(msgspec.Struct, frozen=True):
    """Memory of a reference's own, in the form that a backend sees."""

    memory: Memory
    address: int
    size: int
    warnings: tuple[str, ...] = ()

    def placement(self) -> Placement:
        return Placement(str(self.memory), self.size)

    def free(self) -> None:
        """The reference frees it, or it goes with the process."""
