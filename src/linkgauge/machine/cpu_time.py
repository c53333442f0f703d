"""Reads CPU times since boot. Stolen time is time in which the hypervisor runs something else."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from .tree import ROOT, Root, number

_IDLE, _STEAL, _COLUMNS = (3, 4), 7, 8
"""The idle and steal columns of a line in /proc/stat, and the number of columns that count. These
are user, nice, system, idle, iowait, irq, softirq and steal. The guest columns after them are
already part of the user time."""
_OF_PROCESS = 1, 11, 12, 13, 14
"""Positions in /proc/PID/stat after the process's name: parent, user time, system time, and both
times of children that have ended."""


class CpuTime(NamedTuple):
    """CPU seconds since boot, summed over all CPUs."""

    busy: float
    stolen: float


class ProcessTime(NamedTuple):
    """One process: name, parent's id, CPU seconds, and CPU seconds of its ended children."""

    name: str
    parent: int
    seconds: float
    ended: float


def _ticks(root: Root) -> list[int]:
    words = re.search(r"(?m)^cpu +(.*)$", root.text("proc/stat") or "")
    ticks = _numbers(words[1].split()[:_COLUMNS]) if words else []
    return ticks if len(ticks) == _COLUMNS and min(ticks) >= 0 else []


def cpu_time(root: Root = ROOT) -> CpuTime | None:
    ticks = _ticks(root)
    if not ticks:
        return None
    busy = sum(ticks) - sum(ticks[at] for at in (*_IDLE, _STEAL))
    return CpuTime(busy / _tick(), ticks[_STEAL] / _tick())


def ticks_and_steal(root: Root) -> tuple[float | None, float | None]:
    """Returns the clock ticks of all CPUs since boot, and the share of them that was stolen."""
    ticks = _ticks(root)
    return (float(sum(ticks)), ticks[_STEAL] / sum(ticks)) if sum(ticks) else (None, None)


def process_time(pid: int, root: Root = ROOT) -> ProcessTime | None:
    """Returns a process's CPU time, or None if the process does not exist or is hidden."""
    text = root.text(f"proc/{pid}/stat") or ""
    name, found, rest = text.partition(" (")[2].rpartition(") ")
    fields = rest.split()
    if not found or len(fields) <= max(_OF_PROCESS):
        return None
    wanted = _numbers(fields[at] for at in _OF_PROCESS)
    if len(wanted) < len(_OF_PROCESS):
        return None
    parent, *ticks = wanted
    return ProcessTime(name, parent, sum(ticks[:2]) / _tick(), sum(ticks[2:]) / _tick())


def _numbers(words: Iterable[str]) -> list[int]:
    return [found for found in map(number, words) if found is not None]


def family_time(pid: int, root: Root = ROOT) -> float:
    """Returns the CPU seconds of a process, its children, and ended children of all of them."""
    own = process_time(pid, root)
    children = (process_time(child, root) for child in _children(pid, root))
    return sum(one.seconds + one.ended for one in (own, *children) if one is not None)


def _children(pid: int, root: Root) -> list[int]:
    found: list[int] = []
    for thread in root.names(f"proc/{pid}/task"):
        text = root.text(f"proc/{pid}/task/{thread}/children") or ""
        found += _numbers(text.split())
    return found


def process_times() -> dict[int, ProcessTime]:
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208
    except OSError:
        return {}
    found = ((pid, process_time(pid)) for pid in pids)
    return {pid: one for pid, one in found if one is not None}


def _tick() -> int:
    return os.sysconf("SC_CLK_TCK")


# Time in which a hypervisor ran something else on a CPU that had work to do (/proc/stat).

_LINE = re.compile(r"^cpu([0-9]{1,6}) (.*)$", re.MULTILINE)


def steal_seconds(root: Root, cpus: Collection[int]) -> float | None:
    """Returns the seconds stolen from these CPUs since boot, in steps of mostly 10 ms. Returns None
    if the kernel does not report one of the CPUs."""
    found: dict[int, int] = {}
    for line in _LINE.finditer(root.text("proc/stat") or ""):
        stolen = number("".join(line[2].split()[_STEAL : _STEAL + 1]))
        if int(line[1]) in cpus and stolen is not None:
            found[int(line[1])] = stolen
    if not found or len(found) < len(set(cpus)):
        return None
    return sum(found.values()) / os.sysconf("SC_CLK_TCK")
