"""Checks of cells that were not measured, or whose bytes were wrong: which part they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkgauge.judge.cases import Case, cases_of, named, struck
from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.vendor import tools

_LOST = ("device lost", "device_lost", "fallen off the bus", "gpu is lost")
_NO_MEMORY = ("out of memory", "out_of_memory", "cannot allocate")
_ENDED = "was ended by"


def _reason(case: Case) -> str:
    return (case.cell.reason or "").lower()


def _is_lost(case: Case) -> bool:
    return case.cell.status == "error" and any(word in _reason(case) for word in _LOST)


def _is_short(case: Case) -> bool:
    return case.cell.status == "error" and any(word in _reason(case) for word in _NO_MEMORY)


def _is_ended(case: Case) -> bool:
    return case.cell.status == "error" and _ENDED in _reason(case)


def _is_wrong(case: Case) -> bool:
    return case.cell.status == "fail" and case.cell.verified is False


def _found(
    check: str, bad: Sequence[Case], good: Sequence[Case], found: str, why: str, *remedy: str
) -> Iterator[Finding]:
    if not bad:
        return
    culprit = struck(bad, good)
    yield Finding(
        check=check,
        severity="fail",
        subject=culprit.part if culprit else bad[0].name,
        found=f"{_cells(len(bad))} {found}{culprit.doubt if culprit else ''}",
        why=why,
        remedy=remedy,
        cells=named(bad),
    )


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"


def _measured(cases: Sequence[Case]) -> list[Case]:
    return [case for case in cases if case.cell.status == "pass"]


def check_wrong_bytes(evidence: Evidence) -> Iterator[Finding]:
    cases = cases_of(evidence)
    bad = [case for case in cases if _is_wrong(case)]
    yield from _found(
        "wrong-bytes", bad, _measured(cases), "copied wrong bytes",
        "what is computed there is wrong, without an error",
        "linkgauge run with these benchmarks once more; sudo dmesg | grep -iE 'xid|aer|edac|mce'; "
        "if it recurs, take the part out of service",
    )  # fmt: skip


def check_hangs(evidence: Evidence) -> Iterator[Finding]:
    cases = cases_of(evidence)
    bad = [case for case in cases if case.cell.status == "timeout"]
    yield from _found(
        "hang", bad, _measured(cases), "never came back",
        "a transfer that does not end blocks whoever waits for it",
        "sudo dmesg | grep -iE 'xid|hung|timeout'; reset the device",
    )  # fmt: skip


def check_crashes(evidence: Evidence) -> Iterator[Finding]:
    cases = cases_of(evidence)
    bad = [case for case in cases if _is_ended(case)]
    yield from _found(
        "crash", bad, _measured(cases), "ended the process that measured them",
        "a driver or a library fails there: SIGKILL may also be the kernel's, out of memory",
        "sudo dmesg | grep -iE 'segfault|oom|xid'; coredumpctl list",
    )  # fmt: skip


def check_lost(evidence: Evidence) -> Iterator[Finding]:
    """A device that is lost stays lost: what it did before counts for nothing."""
    cases = cases_of(evidence)
    bad = [case for case in cases if _is_lost(case)]
    first = min((case.number for case in bad), default=0)
    good = [case for case in _measured(cases) if case.number > first]
    yield from _found(
        "lost", bad, good, "found the device lost",
        "nothing reaches the device until it is reset",
        "sudo dmesg | grep -iE 'xid|fallen off'; reset the device or power the machine off and on; "
        "if it recurs, look at its power supply and its seat",
    )  # fmt: skip


def check_memory(evidence: Evidence) -> Iterator[Finding]:
    cases = cases_of(evidence)
    bad = [case for case in cases if _is_short(case)]
    yield from _found(
        "out-of-memory", bad, _measured(cases), "got no memory, although there looked to be enough",
        "another process takes it, or a limit does",
        *tools(evidence, "users"),
        "cat /sys/fs/cgroup/memory.max; ulimit -a; measure with a smaller --size",
    )  # fmt: skip


CHECKS = (check_wrong_bytes, check_hangs, check_crashes, check_lost, check_memory)
