"""Time in which a hypervisor ran something else on a CPU that had work to do (/proc/stat)."""

from __future__ import annotations

import os
import re
from collections.abc import Collection

from .tree import Root, number, read_text

_LINE = re.compile(r"^cpu([0-9]{1,6}) (.*)$", re.MULTILINE)
_STEAL = 7
"""The column of a CPU's line: user, nice, system, idle, iowait, irq, softirq, steal."""


def steal_seconds(root: Root, cpus: Collection[int]) -> float | None:
    """Seconds since the machine's start, the sum over these CPUs, each in steps of a clock tick
    (mostly 10 ms); None if the kernel does not report all of them."""
    found: dict[int, int] = {}
    for line in _LINE.finditer(read_text(root, "proc/stat") or ""):
        stolen = number("".join(line[2].split()[_STEAL : _STEAL + 1]))
        if int(line[1]) in cpus and stolen is not None:
            found[int(line[1])] = stolen
    if not found or len(found) < len(set(cpus)):
        return None
    return sum(found.values()) / os.sysconf("SC_CLK_TCK")
