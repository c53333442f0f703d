"""Explains figures that are lower than hoped for, or bimodal, although nothing is broken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from linkgauge.judge.blame.cases import Case, cases_of, exchanging, listed, named
from linkgauge.judge.expected.dram import Ceilings
from linkgauge.judge.expected.link_rates import figure
from linkgauge.judge.expected.routes import Paths
from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.judge.remedies import FABRIC_MANAGER
from linkgauge.judge.verdict import LOW
from linkgauge.model.documents.result import CellResult
from linkgauge.model.grouped import tabled
from linkgauge.model.hardware.part import Part
from linkgauge.model.operations.busbw import bandwidths
from linkgauge.model.operations.collective import Collective, bus_factor
from linkgauge.model.units import BANDWIDTH, unit_of

if TYPE_CHECKING:
    from linkgauge.judge.expected.exchange_rates import ExchangeRates


def check_modes(evidence: Evidence) -> Iterator[Finding]:
    why = "samples fall into two groups: their average is a value that never occurs"
    for case in cases_of(evidence):
        if case.cell.modes:
            remedy = (f"linkgauge run {case.result.benchmark} --samples 60",)
            name = case.name
            yield Finding("modes", "note", name, _found(case), why, remedy, (name,))


def _found(case: Case) -> str:
    larger, smaller = case.cell.modes
    unit = unit_of(case.result.unit)
    values = [f"{mode.median / unit.scale:.4g}" for mode in (larger, smaller)]
    share = round(100 * larger.gates / (larger.gates + smaller.gates))
    return f"{values[0]} {unit.shown} in {share}% of samples, {values[1]} in {100 - share}%"


_GAIN = 1.1
"""The least ratio of the expected rates of reductions in a switch and of rings from which slow sums
are reported: with up to four, eight H100s reach the same with and without (NVIDIA/nccl issue
1455)."""
_CLEARLY = 0.8
_CONCURRENT = 0.6
"""The share of its rate alone below which a read is clearly slower beside a write: 0.40 to 0.48 is
seen with A100 and RTX 4090 on AMD's hosts (docs/expect.md), 0.9 and more elsewhere."""


def check_in_switch(evidence: Evidence) -> Iterator[Finding]:
    sums = [
        case
        for case in cases_of(evidence)
        if isinstance(case.cell.operation, Collective)
        and case.cell.operation.collective == "all_reduce"
    ]
    if not sums:
        return
    from linkgauge.judge.expected.exchange_rates import SWITCHED_OFF, ExchangeRates

    rates = ExchangeRates(Paths(evidence.machine, Ceilings()), Collective("all_reduce"))
    found = [one for case in sums if (one := _as_rings(rates, case)) is not None]
    if not found:
        return
    own, reduced, case, switches = max(found, key=lambda one: one[0])
    off = SWITCHED_OFF in case.cell.notes
    said = f"all_reduce reaches {figure(own)}, as without NVLS: rings over these links reach that; "
    said += f"reductions in the switch (NVLS) should reach about {figure(reduced)}: "
    said += f"{SWITCHED_OFF.text} is set" if off else "it seems to be off"
    ranks = len(case.cell.transfers)
    gain = bus_factor("all_reduce", ranks) / (1 + 1 / ranks)
    why = f"over each link, a ring sends {gain:.3g} times the bytes; eight GPUs were seen to "
    why += "be 1.2 to 1.3 times as fast with NVLS"
    remedy = [
        "# Unset NCCL_NVLS_ENABLE=0, and an NCCL_ALGO without NVLS, in NCCL's files, too.",
        "# Run a program that uses NCCL with NCCL_DEBUG=INFO: it says whether there is NVLS.",
        FABRIC_MANAGER,
    ]
    if off and evidence.machine.is_virtual:
        why += "; linkgauge sets it in guests, whose multicast memory may strike others' GPUs"
        remedy[0] = "# Set NCCL_NVLS_ENABLE=1 where all GPUs of the board are this guest's."
    missed = any(each[2].cell.kind == "limit" for each in found)
    about = Part.fabric_switch(switches.pop() if len(switches) == 1 else "NVLink switches")
    severity: Severity = "note" if off and not missed else "warn"
    yield Finding("in-switch", severity, about, said, why, tuple(remedy), (case.name,))


def _as_rings(rates: ExchangeRates, case: Case) -> tuple[float, float, Case, set[str]] | None:
    """Returns the bandwidth of an all-reduce that does not seem to use reductions in switches, the
    expected bandwidth with them, the cell, and the switches. Returns None for other cells."""
    cell = case.cell
    own = bandwidths(cell) if cell.status == "pass" or cell.kind == "limit" else None
    if own is None or cell.not_judged is not None or cell.verdict == "low":
        return None
    devices = tuple(str(one.engine.owner) for one in cell.transfers)
    bound, known = rates.bound(devices), rates.bounds(devices)
    reduced = bound.reduced or 0.0
    if not known.figures or not bound.least or reduced < _GAIN * bound.least:
        return None
    if not known.low * reduced <= own.bus <= (bound.least + reduced) / 2:
        return None
    return own.bus, reduced, case, rates.reducing(devices)


def check_kernel_reads(evidence: Evidence) -> Iterator[Finding]:
    reads = tabled(
        (key[:3], key[3], case)
        for case in cases_of(evidence)
        if len(case.cell.transfers) == 1 and case.cell.is_as_expected and (key := _read(case))
    )
    both = (own for own in reads.values() if own.keys() >= {"sm", "ce"})
    if (slow := _slowest(((own["ce"].figure, own["sm"]) for own in both), _CLEARLY)) is None:
        return
    engine, kernel, of, names = slow
    found = f"they read {figure(kernel.figure)} from the host, where copy engines read "
    found += f"{figure(engine)} over the same link{of}"
    why = "how many reads over PCIe a device keeps in flight for kernels bounds them; the link is "
    why += "well, as the copy engines show"
    remedy = ("# Let copy engines bring what kernels read in bulk (cudaMemcpyAsync).",)
    yield Finding("kernel-reads", "note", "kernels", found, why, remedy, names)


def _read(case: Case) -> tuple[str, str, int, str] | None:
    one = case.cell.transfers[0]
    reads = one.source.is_host and one.destination == one.engine.owner and not one.both_ways
    crosses = any(part.kind == "PCIe link" for part in case.touched)
    if case.result.unit != BANDWIDTH.symbol or not (reads and crosses):
        return None
    return str(one.source), str(one.destination), case.result.size, one.engine.kind


def _slowest(
    pairs: Iterable[tuple[float, Case]], least: float
) -> tuple[float, Case, str, tuple[str, ...]] | None:
    """Finds cells below the share `least` of their usual figure. Returns the slowest cell's usual
    figure, this cell, a text on how many cells there are, and all names; None without cells."""
    slower = [(usual, case) for usual, case in pairs if case.figure < least * usual]
    if not slower:
        return None
    usual, case = min(slower, key=lambda one: one[1].figure / one[0])
    of = f" (the least of {len(slower)})" if len(slower) > 1 else ""
    return usual, case, of, named(case for _, case in slower)


def check_copy_engines(evidence: Evidence) -> Iterator[Finding]:
    shares: dict[str, dict[str, tuple[float, Case]]] = {}
    for case in cases_of(evidence):
        share = case.cell.achieved if case.cell.is_as_expected else None
        kinds = {one.engine.kind for one in case.cell.transfers}
        if share and len(kinds) == 1 and (place := _within(case.cell)):
            own, kind = shares.setdefault(place, {}), kinds.pop()
            own[kind] = max(own.get(kind, (0.0, case)), (share, case), key=lambda one: one[0])
    both = [own for own in shares.values() if own.keys() >= {"ce", "sm"}]
    slower = [own for own in both if own["ce"][0] < _CLEARLY * own["sm"][0]]
    if not slower:
        return
    engine, kernel = slower[0]["ce"][1], slower[0]["sm"][1]
    found = f"they copy {figure(engine.figure)} within {_within(engine.cell)}, "
    found += f"{slower[0]['ce'][0]:.0%} of what its memory allows, and kernels reach "
    found += f"{slower[0]['sm'][0]:.0%} ({kernel.name})"
    found += f"; so it is on {len(slower)} of {len(both)} devices" if len(both) > 1 else ""
    why = "how fast a copy engine is within a device is not published; the memory is well, as the "
    why += "kernels show"
    remedy = ("# Let kernels copy what is large within a device.",)
    names = tuple(own["ce"][1].name for own in slower)
    yield Finding("copy-engines", "note", "copy engines", found, why, remedy, names)


def _within(cell: CellResult) -> str | None:
    owner = cell.transfers[0].engine.owner.place
    ends = (end for t in cell.transfers for end in (t.engine.owner, *t.memories))
    alone = owner.is_device and all(end.place == owner for end in ends)
    return str(owner) if alone else None


def check_both_ways(evidence: Evidence) -> Iterator[Finding]:
    alone: dict[tuple[str, str, int, str], float] = {}
    beside: list[tuple[tuple[str, str, int, str], Case]] = []
    for case in cases_of(evidence):
        first, *others = case.cell.transfers
        if (key := _read(case)) is None or case.cell.status != "pass":
            continue
        if not others and case.cell.is_as_expected:
            alone[key] = case.figure
        elif case.cell.report.is_first and [o.way for o in others] == [first.way[::-1]]:
            beside.append((key, case))
    slow = _slowest(((alone.get(key, 0.0), case) for key, case in beside), _CONCURRENT)
    if slow is None:
        return
    once, case, of, names = slow
    found = f"{case.name} reads {figure(case.figure)}, and {figure(once)} alone{of}"
    why = "the root complex orders its answers behind what devices write, unless they set relaxed "
    why += "ordering; the links are well, as copies one way show"
    remedy = (
        "# In the firmware's setup, enable relaxed ordering (PCIe); ask the board's vendor.",
        "sudo lspci -vv | grep -E 'RlxdOrd'",
    )
    yield Finding("both-ways", "note", "PCIe, both ways at once", found, why, remedy, names)


def check_not_separate(evidence: Evidence) -> Iterator[Finding]:
    """Reports links that only collectives used, because collectives may not show a slow link."""
    crossed, names = set[Part](), list[str]()
    least, lowest = 1.0, ""
    fabric = {wire.part for wire in evidence.machine.wiring.wires if wire.kind == "fabric"}
    if not fabric:
        return
    several = [case for case in cases_of(evidence) if _exchange_of_several(case.cell)]
    for case in several:
        if case.cell.is_as_expected or case.cell.verdict == "perhaps low":
            between = (evidence.machine.wiring.between(*pair) for pair in exchanging(case.cell))
            crossed |= fabric & set[Part]().union(*between)
            names.append(case.name)
            share = case.cell.achieved or 1.0
            least, lowest = min((least, lowest), (share, case.name))
    others = set(cases_of(evidence)).difference(several) if crossed else ()
    crossed.difference_update(*(case.touched for case in others))
    if not (hidden := sorted(crossed, key=str)):
        return
    about = hidden[0] if len(hidden) == 1 else f"{len(hidden)} links"
    found = f"only collectives crossed {listed(hidden)}: a slow one among several rings, or below "
    found += "reductions in a switch, need not show"
    if least < LOW:
        found += f" ({lowest} reaches {least:.0%} of what is expected)"
    why = "nothing tells whether a library takes one ring, several, or the switch"
    remedy = ("linkgauge run device_to_device_memcpy_read_ce device_to_device_memcpy_write_ce",)
    yield Finding("not-separate", "unknown", about, found, why, remedy, tuple(names))


def _exchange_of_several(cell: CellResult) -> bool:
    pairs = exchanging(cell)
    return len(frozenset[str]().union(*pairs)) > 2 if pairs else False
