"""What explains figures that are healthy and yet less than was hoped for, and what healthy figures
do not show."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.judge.blame.cases import Case, cases_of, exchanging, listed
from linkgauge.judge.expected.link_rates import figure
from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.remedies import FABRIC_MANAGER
from linkgauge.judge.verdict import LOW
from linkgauge.model.documents.result import CellResult
from linkgauge.model.hardware.part import Part
from linkgauge.model.operations.busbw import bandwidths
from linkgauge.model.operations.collective import Collective, bus_factor
from linkgauge.model.units import BANDWIDTH

_REDUCING = 26e9
"""Bytes/s that a link signals from NVLink 4 on, whose switches are the first to reduce."""
_GAIN = 1.25
"""How much more the links would carry from which reductions in a switch show: of five devices and
more. Of up to four, eight H100s reach the same with and without (NVIDIA/nccl issue 1455)."""
_CLEARLY = 0.8
"""Share of the copy engines' rate below which kernels are clearly slower."""


def check_in_switch(evidence: Evidence) -> Iterator[Finding]:
    """Sums that miss a limit and are as fast as rings over their links, where switches could reduce
    them."""
    for case in cases_of(evidence):
        cell = case.cell
        if cell.kind != "limit" or not _as_rings(cell):
            continue
        ranks = len(cell.transfers)
        switches, own = _reducing(evidence, cell), bandwidths(cell)
        gain = bus_factor("all_reduce", ranks) / (1 + 1 / ranks)
        if not switches or own is None or gain < _GAIN:
            continue
        said = f"all_reduce reaches {figure(own.bus)}, which is what rings over these links reach; "
        said += f"reductions in the switch (NVLS) could reach up to {figure(gain * own.bus)}: "
        why = f"over each link, a ring sends {gain:.3g} times the bytes; eight GPUs were seen to "
        why += "be 1.2 to 1.3 times as fast with NVLS"
        remedy = (
            "# Unset NCCL_NVLS_ENABLE=0, and an NCCL_ALGO without NVLS, in NCCL's files, too.",
            "# Run a program that uses NCCL with NCCL_DEBUG=INFO: it says whether there is NVLS.",
            FABRIC_MANAGER,
        )
        about = Part.fabric_switch(switches.pop() if len(switches) == 1 else "NVLink switches")
        found = f"{said}it seems to be off"
        yield Finding("in-switch", "warn", about, found, why, remedy, (case.name,))
        return


def _as_rings(cell: CellResult) -> bool:
    """Whether it is a sum of all that is as fast as one ring should be, and no faster than the
    links of one allow."""
    work, expected, own = cell.operation, cell.expected, cell.headline
    if not isinstance(work, Collective) or work.collective != "all_reduce" or expected is None:
        return False
    if not (own and expected.achievable and expected.theoretical):
        return False
    return expected.theoretical <= own <= expected.achievable / LOW


def _reducing(evidence: Evidence, cell: CellResult) -> set[str]:
    """The switches that join all of its ranks and can reduce; none where other ways do."""
    wiring, found = evidence.machine.wiring, set[str]()
    for one, other in exchanging(cell):
        joined = wiring.bundles(one, other)
        if not joined or not all(
            "switch" in ends and bundle.is_nvlink and bundle.each > _REDUCING
            for ends, bundle in joined.items()
        ):
            return set()
        crossed = wiring.route(one, other) or ()
        found |= {crossing.end for _, crossing in crossed} & wiring.switches
    return found


def check_kernel_reads(evidence: Evidence) -> Iterator[Finding]:
    """Kernels that read the host's memory over PCIe clearly slower than copy engines do, where both
    are as fast as is expected of them."""
    reads: dict[tuple[str, str, int], dict[str, Case]] = {}
    for case in cases_of(evidence):
        if (key := _read(case)) is not None and case.cell.verdict == "ok":
            reads.setdefault(key, {})[case.cell.transfers[0].engine.kind] = case
    slower = [
        (kernel, engine, case)
        for both in reads.values()
        if both.keys() >= {"sm", "ce"}
        for case in [both["sm"]]
        for kernel, engine in [(case.cell.headline or 0.0, both["ce"].cell.headline or 0.0)]
        if kernel < _CLEARLY * engine
    ]
    if not slower:
        return
    kernel, engine, case = min(slower, key=lambda one: one[0] / one[1])
    found = f"they read {figure(kernel)} from the host, where copy engines read {figure(engine)} "
    found += "over the same link"
    if len(slower) > 1:
        found += f" (the least of {len(slower)})"
    why = "how many reads over PCIe a device keeps in flight for kernels bounds them; the link is "
    why += "well, as the copy engines show"
    remedy = ("# Let copy engines bring what kernels read in bulk (cudaMemcpyAsync).",)
    names = tuple(one.name for _, _, one in slower)
    yield Finding("kernel-reads", "note", "kernels", found, why, remedy, names)


def _read(case: Case) -> tuple[str, str, int] | None:
    """The ends and the size of a read from the host over PCIe; None of other cells."""
    cell, unit = case.cell, case.result.unit
    if unit != BANDWIDTH.symbol or len(cell.transfers) != 1 or cell.transfers[0].both_ways:
        return None
    one = cell.transfers[0]
    if not one.source.is_host or not one.destination.is_device:
        return None
    by_pcie = any(part.kind == "PCIe link" for part in case.touched)
    key = str(one.source), str(one.destination), case.result.size
    return key if by_pcie and one.engine.owner == one.destination else None


def _of_ring(cell: CellResult) -> float:
    """The share of what a ring should reach; 1 where that is unknown."""
    known = cell.expected.achievable if cell.expected else None
    return known / cell.headline if known and cell.headline else 1.0


def check_hidden(evidence: Evidence) -> Iterator[Finding]:
    """Links that only collectives crossed, which are as they should be: of these, rings, trees and
    reductions in switches reach different rates, and what is expected is that of one ring."""
    crossed, names, shown = set[Part](), list[str](), set[Part]()
    least, lowest = 1.0, ""
    fabric = {wire.part for wire in evidence.machine.wiring.wires if wire.kind == "fabric"}
    if not fabric:
        return
    for case in cases_of(evidence):
        pairs = exchanging(case.cell)
        if not pairs:
            shown |= case.touched
        elif case.cell.verdict == "ok":
            between = (evidence.machine.wiring.between(*pair) for pair in pairs)
            crossed |= fabric & set[Part]().union(*between)
            names.append(case.name)
            share = _of_ring(case.cell)
            least, lowest = min((least, lowest), (share, case.name))
    hidden = sorted(crossed - shown, key=str)
    if not hidden:
        return
    about = hidden[0] if len(hidden) == 1 else f"{len(hidden)} links"
    found = f"only collectives crossed {listed(hidden)}: a slow one among several rings, or below "
    found += "reductions in a switch, need not show"
    if least < LOW:
        found += f" ({lowest} reaches {least:.0%} of one ring's rate)"
    why = "what is expected of a collective is what one ring reaches, and others reach more"
    remedy = ("linkgauge run device_to_device_memcpy_read_ce device_to_device_memcpy_write_ce",)
    yield Finding("hidden", "unknown", about, found, why, remedy, tuple(names))
