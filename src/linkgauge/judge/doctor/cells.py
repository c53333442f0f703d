"""Checks cells that failed or were refused, and finds the part that failed cells share."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from linkgauge.judge.blame.cases import Case, cases_of, named
from linkgauge.judge.blame.causes import Blame
from linkgauge.judge.blame.explain import causes
from linkgauge.judge.blame.xids import broken
from linkgauge.judge.findings import Check, Evidence, Finding
from linkgauge.judge.remedies import DEVICE_LOST, IOMMU_PT, LESS_MEMORY, RESET, kernel_log
from linkgauge.judge.vendor import Matter, tools
from linkgauge.model.cell_id import table_id
from linkgauge.model.documents.result import CellResult
from linkgauge.model.errors import OutcomeKind
from linkgauge.model.grouped import grouped
from linkgauge.model.notes import STAGED
from linkgauge.model.units import count_of


def _outcome(
    check: str, kind: OutcomeKind, found: str, why: str, *remedy: str, first: Matter | None = None
) -> Check[Evidence]:
    def shared(evidence: Evidence) -> Iterator[Finding]:
        cases = cases_of(evidence)
        bad = [case for case in cases if case.cell.kind == kind]
        if not bad:
            return
        # What ended a cell in a later phase shows that it was well until then.
        good = [case for case in cases if case.cell.kind != kind
                and (case.cell.phase or case.cell.status in ("pass", "fail"))]  # fmt: skip
        if kind == "wrong-bytes" and _by_iommu(evidence, bad):
            yield _of_iommu(bad)
            return
        together = _together(bad, cases)
        bad = [case for case in bad if table_id(case.result) not in together]
        # A device that is lost stays lost: what it did before counts for nothing.
        seen = broken(evidence)
        # What a tool says of a whole output, or of a test without figures, names no part.
        wide = [c for c in bad if evidence.tool and (not good or c.cell.summary is None)]
        rest = [case for case in bad if case not in wide]
        blamed, rest = causes(rest, good, stays=kind == "lost", seen=seen)
        rest = [*rest, *wide]
        steps = (*(tools(evidence, first) if first else ()), *remedy)
        for blame, own in blamed:
            one = f"{count_of(len(own))} {found}"
            named_one = _of_memory(blame) if kind in _OF_MEMORIES else blame
            yield named_one.finding(check, "fail", one, why, steps, own)
        if rest:
            alone = f"{count_of(len(rest))} {found}"
            yield Finding(check, "fail", rest[0].name, alone, why, steps, named(rest))
        parts = {blame.part for blame, _ in blamed}
        for group in together.values():
            if all(case.touched.isdisjoint(parts) for case in group):
                one = f"{count_of(len(group))} that share no part {found}"
                doubt = "one of them may have ended all: measure them alone to see which"
                name = group[0].result.benchmark
                yield Finding(check, "fail", name, one, doubt, steps, named(group))

    return shared


_OF_MEMORIES: tuple[OutcomeKind, ...] = ("lost", "memory")
"""Kinds of failures that a device or a node causes, never a link."""


def _of_memory(blame: Blame) -> Blame:
    every = (blame.part, *blame.others)
    memories = [part for part in every if part.kind in ("device", "node")]
    return Blame(memories[0]) if len(memories) == 1 else blame


def _together(bad: Sequence[Case], cases: Sequence[Case]) -> dict[Hashable, list[Case]]:
    others = {table_id(case.result) for case in cases if case.cell.kind != bad[0].cell.kind}
    groups = grouped((table_id(case.result), case) for case in bad if case.cell.round is not None)
    return {
        table: group for table, group in groups.items()
        if table not in others and not frozenset.intersection(*(case.touched for case in group))
    }  # fmt: skip


def _by_iommu(evidence: Evidence, bad: Sequence[Case]) -> bool:
    """Whether copies failed because an IOMMU translates, which CUDA does not support."""
    host = evidence.machine.known.host
    return host.iommu == "translating" and host.hypervisor is None and all(
        any(part.kind == "PCIe link" for part in case.touched)
        and all(one.source.is_device and one.destination.is_device for one in case.cell.transfers)
        for case in bad
    )  # fmt: skip


def _of_iommu(bad: Sequence[Case]) -> Finding:
    found = f"{count_of(len(bad))} between devices, and no others, copied wrong bytes while it "
    found += "translates addresses"
    why = "copies between devices over PCIe are not supported behind an IOMMU that translates"
    remedy = (IOMMU_PT, kernel_log("iommu", "dmar", "amd-vi"))
    return Finding("wrong-bytes", "fail", "IOMMU", found, why, remedy, named(bad))


check_wrong_bytes = _outcome(
    "wrong-bytes", "wrong-bytes", "copied wrong bytes",
    "programs get wrong data and see no error",
    kernel_log("xid", "aer", "edac", "mce"),
    "# Measure these benchmarks again. If it recurs, take the part out of service.",
)  # fmt: skip
check_hangs = _outcome(
    "hang", "timeout", "did not end in time",
    "a transfer that never ends blocks every program that waits for it",
    kernel_log("xid", "hung", "timeout"), RESET,
)  # fmt: skip
check_crashes = _outcome(
    "crash", "crash", "ended the measuring process",
    "a driver or a library failed, or the kernel ran out of memory and sent SIGKILL",
    kernel_log("segfault", "oom", "xid"), "coredumpctl list",
)  # fmt: skip
check_lost = _outcome(
    "lost", "lost", "found the device lost", "nothing reaches the device until it is reset",
    *DEVICE_LOST,
)  # fmt: skip
check_memory = _outcome(
    "out-of-memory", "memory", "got no memory, although enough seemed to be free",
    "another process uses the memory, or a limit applies", *LESS_MEMORY, "ulimit -a", first="users",
)  # fmt: skip


_PEERS = "linkgauge doctor  # look for acs and iommu; on a virtual machine, run it on the host too"


def _unmeasured(
    check: str, kind: OutcomeKind, evidence: Evidence, why: str, *remedy: str
) -> Iterator[Finding]:
    found = ((cell.reason or "", str(cell)) for cell in evidence.cells() if cell.kind == kind)
    for reason, cells in grouped(found).items():
        yield Finding(check, "fail", cells[0], reason, why, remedy, tuple(cells))


def check_peers(evidence: Evidence) -> Iterator[Finding]:
    """Reports refused peer access: as a note if no fabric exists and no device reaches another."""
    why = "copies between the devices go through host memory, or not at all"
    remedy = (*tools(evidence, "peers"), _PEERS)
    refused = [*_unmeasured("peer-access", "peer", evidence, why, *remedy)]
    joined = any(wire.kind == "fabric" for wire in evidence.machine.wiring.wires)
    if refused and not joined and not any(map(_reaches_peer, evidence.cells())):
        cells = tuple(cell for one in refused for cell in one.cells)
        found = "no device reaches another's memory, as with products that do not offer it"
        refused = [Finding("peer-access", "note", "devices", found, why, remedy, cells)]
    yield from refused


def _reaches_peer(cell: CellResult) -> bool:
    devices = {str(end.place) for one in cell.transfers for end in one.memories if end.is_device}
    return cell.status == "pass" and len(devices) > 1 and STAGED not in cell.notes


def check_imex(evidence: Evidence) -> Iterator[Finding]:
    yield from _unmeasured(
        "imex", "imex", evidence,
        "fabric handles reach the memory of other nodes and need an IMEX channel",
        "systemctl status nvidia-imex; ls /dev/nvidia-caps-imex-channels",
        "# Load the module nvidia with NVreg_CreateImexChannel0=1.",
    )  # fmt: skip
