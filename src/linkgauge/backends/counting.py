"""Converts the native core's counters to plain values. If CPU events were not counted, the reason
is added."""

from __future__ import annotations

import errno
from functools import cache

from linkgauge import _native
from linkgauge.machine.environment import hypervisor
from linkgauge.machine.tree import ROOT, Root
from linkgauge.model.counters import Counters

_PARANOID = "proc/sys/kernel/perf_event_paranoid"
_USER_MODE = 2
"""The highest value of perf_event_paranoid that lets users count events of their own threads."""


def counters_of(counts: _native.Counts) -> Counters:
    """Converts the counts of a team of native threads to Counters."""
    return Counters(
        seconds=counts.seconds,
        page_faults=counts.page_faults,
        context_switches=counts.context_switches,
        involuntary=counts.involuntary,
        migrations=counts.migrations,
        cycles=counts.cycles,
        instructions=counts.instructions,
        cache_misses=counts.cache_misses,
        tlb_misses=counts.tlb_misses,
        refused=_refused_here(counts.refused) if counts.refused else None,
    )


@cache
def _refused_here(code: int) -> str:
    return refused(code, ROOT)


def refused(code: int, root: Root) -> str:
    """Explains why CPU cycles cannot be counted. `code` is the error number of perf_event_open."""
    level = root.text(_PARANOID)
    if code in (errno.EACCES, errno.EPERM):
        if level is not None and level.removeprefix("-").isdecimal() and int(level) > _USER_MODE:
            return f"kernel.perf_event_paranoid is {level}: set it to {_USER_MODE} (sysctl)"
        return "perf_event_open is not allowed: a container needs CAP_PERFMON or a seccomp profile"
    if code == errno.ENOSYS or level is None:
        return "the kernel or a seccomp profile has no perf_event_open"
    if code == errno.EMFILE:
        return "too few open files for every thread: raise the limit (ulimit -n)"
    if code in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        beneath = hypervisor(root)[0]
        guest = f"{beneath} gives this guest no performance counters (PMU)"
        return guest if beneath else "the kernel supports no performance counters (PMU) of this CPU"
    return f"perf_event_open: {errno.errorcode.get(code, code)}"
