"""Checks whether other programs or the hypervisor used the CPUs while cells were measured."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from linkgauge.judge.blame.cases import Case, cases_of, named
from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.judge.remedies import BUSIEST
from linkgauge.model.counters import Load
from linkgauge.model.documents.result import CellResult
from linkgauge.model.hardware.host_details import stolen
from linkgauge.model.hardware.part import MACHINE
from linkgauge.model.settings import Settings
from linkgauge.model.stats.summary import relative_error
from linkgauge.model.units import count_of, percent

BUSY = 0.1
"""The share of all CPUs' time from which other programs disturb; at least `_LEAST` CPUs."""
_LEAST = 0.25
"""The least number of CPUs. An idle machine's services take less than a tenth of a CPU."""
_OFTEN = 0.1
"""The least share of cells that are disturbed: a passing job affects fewer."""
MUCH_STEAL = 0.02
_TAKEN = 0.2
"""The share of all CPUs' time from which others explain low figures of the host's memory. In
recorded runs they took 0.22 or more where they slowed such figures below 0.75, and 0.11 at most
where they did not (docs/recordings.md)."""
_MOST_NAMED = 3


def check_busy(evidence: Evidence) -> Iterator[Finding]:
    busy = _cases_taken(evidence, lambda load: load.others)
    if not busy:
        return
    loaded = sum(case.cell.load is not None for case in cases_of(evidence))
    if len(busy) < _OFTEN * loaded:
        return
    loads = [case.cell.load for case in busy if case.cell.load]
    share = sum(load.others for load in loads) / sum(load.seconds for load in loads)
    programs = _programs(loads)
    names = f" ({', '.join(f'{name} {pid}' for name, pid in programs)})" if programs else ""
    used = f"other programs{names} used {share / evidence.machine.host.cpus:.0%} of the CPUs"
    were = "was" if len(busy) == 1 else "were"
    uncertain = _uncertain(busy, evidence.settings)
    missed = uncertain or "no figure missed its precision"
    found = f"{used} while {count_of(len(busy))} {were} measured; {missed}"
    why = "they take CPUs, memory bandwidth and cache from what is measured"
    pids = ",".join(str(pid) for _, pid in programs if pid > 1)  # nobody stops the first
    remedy = ("# Stop them and run again:", f"ps -fp {pids}" if pids else BUSIEST)
    severity: Severity = "warn" if uncertain else "note"
    yield Finding("busy", severity, MACHINE, found, why, remedy, named(busy))


def is_host_taken(case: Case, cpus: int) -> bool:
    """Whether a cell used host memory while other programs kept many of `cpus` CPUs busy."""
    load = case.cell.load
    crosses = any(memory.is_host for one in case.cell.transfers for memory in one.memories)
    return crosses and load is not None and load.others >= _TAKEN * cpus * load.seconds > 0


def _uncertain(cases: Sequence[Case], settings: Settings | None) -> str:
    if settings is None:
        return ""
    errors = [error for one in cases if (error := shortfall(one.cell, settings)) is not None]
    if not errors:
        return ""
    is_one = len(errors) == 1
    known = [error for error in errors if error < math.inf]
    by = [f"{'' if is_one else 'up to '}±{percent(max(known))}"] if known else []
    if unknown := len(errors) - len(known):
        by.append(f"{'it has' if is_one else f'{unknown} have'} no interval")
    whose = "its figure" if len(cases) == 1 else f"{len(errors)} of these figures"
    return f"{whose} {'is' if is_one else 'are'} uncertain ({', '.join(by)})"


def _cases_taken(evidence: Evidence, of: Callable[[Load], float]) -> list[Case]:
    least = max(_LEAST, BUSY * evidence.machine.host.cpus)
    return [
        case
        for case in cases_of(evidence)
        if (load := case.cell.load) and load.seconds > 0 and of(load) >= least * load.seconds
    ]


def _programs(loads: list[Load]) -> list[tuple[str, int]]:
    used: defaultdict[tuple[str, int], float] = defaultdict(float)
    for load in loads:
        if load.process is not None and load.pid is not None:
            used[load.process, load.pid] += load.others
    return sorted(used, key=lambda program: -used[program])[:_MOST_NAMED]


def check_steal(evidence: Evidence) -> Iterator[Finding]:
    """Reports CPU time taken by the hypervisor: during the run if known, or else since boot."""
    host = evidence.machine.known.host
    during = stolen(host, evidence.after.host) if evidence.after else None
    steal, when = (host.steal, "since boot") if during is None else (during, "during the run")
    if steal is not None and steal > MUCH_STEAL:
        severity: Severity = "warn" if steal >= BUSY else "note"
        found = f"the hypervisor took {steal:.0%} of the CPUs' time {when}"
        why = "threads stand still during that time, which shows in latencies and the slowest 1%"
        remedy = "# On the host, pin each virtual CPU (<vcpupin>) to a CPU of its own."
        cells = named(_cases_taken(evidence, lambda load: load.stolen))
        yield Finding("steal", severity, MACHINE, found, why, (remedy,), cells)


_CUT_SHORT = ("max-time", "noise", "budget")
"""Why sampling stopped, if not because the figure was precise or the number of samples was set."""


def shortfall(cell: CellResult, settings: Settings) -> float | None:
    """Returns the relative error of a cell that missed the requested precision, or infinity if its
    figure has no confidence interval. Returns None if the cell is precise enough."""
    asked = settings.of(cell).precision
    if settings.soak is not None or not asked or cell.stopped not in _CUT_SHORT:
        return None
    error = relative_error(cell.summary)
    if error is None:
        return math.inf
    return error if error > asked else None
