"""Checks of cells that were not measured or whose bytes were wrong: which part they share."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.judge.cases import cases_of, named
from linkgauge.judge.causes import BEGAN, causes
from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.logged import broken
from linkgauge.judge.remedies import DEVICE_LOST, LESS_MEMORY, RESET, kernel_log
from linkgauge.judge.vendor import tools
from linkgauge.model.errors import OutcomeKind
from linkgauge.model.units import count_of

_BREAKS = 2.0
"""What it costs to say of a part that it was well at first, and ends what touches it since."""


def _found(
    check: str, evidence: Evidence, kind: OutcomeKind, found: str, why: str, *remedy: str
) -> Iterator[Finding]:
    """The part that cells with this kind of outcome share and passed cells do not."""
    cases = cases_of(evidence)
    bad = [case for case in cases if case.cell.kind == kind]
    if not bad:
        return
    good = [case for case in cases if case.cell.status == "pass"]
    began = BEGAN if kind == "wrong-bytes" else _BREAKS
    # A device that is lost stays lost: what it did before counts for nothing.
    seen = broken(evidence)
    blamed, rest = causes(bad, good, stays=kind == "lost", began=began, seen=seen)
    for cause in blamed:
        one = f"{count_of(len(cause.cases))} {found}{cause.blame.doubt}"
        yield Finding(check, "fail", cause.blame.part, one, why, remedy, named(cause.cases))
    if rest:
        alone = f"{count_of(len(rest))} {found}"
        yield Finding(check, "fail", rest[0].name, alone, why, remedy, named(rest))


def check_wrong_bytes(evidence: Evidence) -> Iterator[Finding]:
    yield from _found(
        "wrong-bytes", evidence, "wrong-bytes", "copied wrong bytes",
        "programs compute wrong results and see no error",
        kernel_log("xid", "aer", "edac", "mce"),
        "# Measure these benchmarks again. If it recurs, take the part out of service.",
    )  # fmt: skip


def check_hangs(evidence: Evidence) -> Iterator[Finding]:
    yield from _found(
        "hang", evidence, "timeout", "never came back",
        "a transfer that never ends blocks every program that waits for it",
        kernel_log("xid", "hung", "timeout"), RESET,
    )  # fmt: skip


def check_crashes(evidence: Evidence) -> Iterator[Finding]:
    yield from _found(
        "crash", evidence, "crash", "ended the process that measured them",
        "a driver or a library failed, or the kernel ran out of memory and sent SIGKILL",
        kernel_log("segfault", "oom", "xid"), "coredumpctl list",
    )  # fmt: skip


def check_lost(evidence: Evidence) -> Iterator[Finding]:
    yield from _found(
        "lost", evidence, "lost", "found the device lost",
        "nothing reaches the device until it is reset", *DEVICE_LOST,
    )  # fmt: skip


def check_memory(evidence: Evidence) -> Iterator[Finding]:
    yield from _found(
        "out-of-memory", evidence, "memory", "got no memory, although enough seemed to be free",
        "another process uses the memory, or a limit applies",
        *tools(evidence, "users"), *LESS_MEMORY, "ulimit -a",
    )  # fmt: skip
