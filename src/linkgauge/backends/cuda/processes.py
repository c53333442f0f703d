"""Which processes on a device do not belong to this program."""

from __future__ import annotations

import os
from collections.abc import Iterable

from linkgauge.machine.tree import ROOT, Root, read_text

_PROGRAM_ARGUMENTS = 4
"""Two processes with this many equal arguments run the same program: `python -P -c PROGRAM`."""


def others(pids: Iterable[int], root: Root = ROOT) -> tuple[int, ...] | None:
    """Those that are neither this process nor another worker of the same controller, ascending.
    None if one is not visible in /proc: its owner cannot be determined."""
    found = sorted(set(pids))
    if any(read_text(root, f"proc/{pid}/stat") is None for pid in found):
        return None
    return tuple(pid for pid in found if not _is_ours(pid, root))


def _is_ours(pid: int, root: Root) -> bool:
    if pid == os.getpid():
        return True
    own = _program(os.getpid(), root)
    return _parent(pid, root) == os.getppid() and bool(own) and _program(pid, root) == own


def _program(pid: int, root: Root) -> list[str]:
    arguments = (read_text(root, f"proc/{pid}/cmdline") or "").split("\0")
    return arguments[:_PROGRAM_ARGUMENTS]


def _parent(pid: int, root: Root) -> int | None:
    """The parent's id. The process name, in brackets, may contain anything."""
    fields = (read_text(root, f"proc/{pid}/stat") or "").rpartition(")")[2].split()
    return int(fields[1]) if len(fields) > 1 and fields[1].isdecimal() else None
