"""NVIDIA's profilers: Nsight Systems (`nsys`) and Nsight Compute (`ncu`), their command lines and
their files. Each worker process has a profiler of its own, so that what befalls one costs one
report."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from linkgauge.model.errors import InputError
from linkgauge.model.settings import Profiler

_NAMES: Mapping[Profiler, str] = {"nsys": "Nsight Systems", "ncu": "Nsight Compute"}
LOG = ".log"
"""Beside a report: what the profiler and its worker print."""
WAITING = ("gate", "bounce", "answer", "load")
"""Kernels that wait for the host or for one another, or that the host waits for: replayed alone,
they would not end, or say twice what they say once."""
ASIDE = ("link", "fill", "compare", "count_wrong", "draw", "fold", "nothing")
"""Kernels that prepare or check what is measured, or that do nothing."""


def find(profiler: Profiler) -> str:
    """The path of its program. Raises InputError with the remedy if it is not installed."""
    path = shutil.which(profiler)
    if path is None:
        name = _NAMES[profiler]
        raise InputError(
            f"--{profiler}: {profiler} is not on the PATH: install NVIDIA {name} "
            "(CUDA toolkits bring it), or add its folder to the PATH"
        )
    return path


def command_of(profiler: Profiler, program: str, report: Path) -> tuple[str, ...]:
    """What comes before a command to profile it; `report` is the path of the file to write, without
    its suffix."""
    path = str(report).replace("%", "%%")  # both expand %h, %p and the like
    if profiler == "nsys":
        # Not --trace-fork-before-exec: NVIDIA warns of deadlocks, and a worker is no such child.
        return program, "profile", "--trace=cuda,nvtx,osrt", f"--output={path}"
    # The names are whole ones: a user's kernel may begin like one of these.
    left_out = f"regex:^(?!({'|'.join((*WAITING, *ASIDE))})$).*$"
    options = ("--target-processes", "all", "--nvtx", "--kernel-name", left_out)
    return program, *options, "--export", path


class Report(NamedTuple):
    """The files of one worker's profiler: the report is `path` with a suffix of the profiler's."""

    path: Path

    @property
    def log(self) -> Path:
        return self.path.with_name(self.path.name + LOG)

    @property
    def is_there(self) -> bool:
        return any(file != self.log for file in self.path.parent.glob(f"{self.path.name}.*"))

    def last_words(self) -> str:
        """The last line that the profiler printed."""
        try:
            lines = self.log.read_text(errors="replace").split("\n")
        except OSError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


class Reports:
    """The reports of a run's workers in its folder: NAME-1, NAME-2 …"""

    def __init__(self, profiler: Profiler, folder: Path) -> None:
        self.profiler = profiler
        self.program = find(profiler)
        self._folder = folder
        self._begun: list[Report] = []
        found = (re.match(r"\d+", name.removeprefix(f"{profiler}-")) for name in self.files())
        self._last = max((int(number[0]) for number in found if number), default=0)

    def begin(self) -> Report:
        """One more."""
        self._last += 1
        self._begun.append(Report(self._folder / f"{self.profiler}-{self._last}"))
        return self._begun[-1]

    def missing(self) -> list[str]:
        """A line for each report that was begun and is not there."""
        return [
            f"{self.profiler} left no report: {one.last_words() or 'no output'} ({one.log})"
            for one in self._begun
            if not one.is_there
        ]

    def files(self) -> tuple[str, ...]:
        """The names of all files that the profiler has left in the folder."""
        return tuple(sorted(file.name for file in self._folder.glob(f"{self.profiler}-*")))
