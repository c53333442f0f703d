"""Finds copies that are slow only because of the copy engines that carry them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.vendor import tools
from linkgauge.judge.verdict import HIGH
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Part

from .cases import named
from .limits import SLOW
from .table import Row, reach


def bounded_by_engine(
    rows: Sequence[Row], evidence: Evidence
) -> tuple[Sequence[Row], tuple[Finding, ...]]:
    """Finds copies that only their copy engine slows. Returns the other rows, and a finding on
    these copies. All such copies are equally low, while kernels over the same parts are as
    expected. Without kernels, the copies must be as slow as one of several parallel links."""
    low = [row for row in rows if row.low]
    if not low:
        return rows, ()
    kernels = [row for row in rows if _engines(row) == {"sm"}]
    low_too = {_ends(row) for row in kernels if row.low}
    well = {row.parts for row in kernels if row.case.cell.is_as_expected and not row.low}
    if not kernels:
        well = {row.parts for row in low if _fits_one_link(row, evidence)}
    equivalent = grouped((row.peers, row) for row in low if _engines(row) == {"ce"}).values()
    found = [
        row for some in equivalent for row in some
        if all(one.relative > math.log(SLOW) and one.parts in well and _ends(one) not in low_too
               for one in some)
    ]  # fmt: skip
    one_way = {row.parts for row in found if _one_way(row) == row.parts}
    slow = {row: None for row in found if _one_way(row) in one_way}
    if not slow:
        return rows, ()
    finding = _by_engine(list(slow), evidence, is_reported=bool(kernels))
    return [row for row in rows if row not in slow], (finding,)


def _ends(row: Row) -> frozenset[str]:
    return frozenset(str(memory.place) for memory in row.case.cell.transfers[0].memories)


def _fits_one_link(row: Row, evidence: Evidence) -> bool:
    wiring, transfers = evidence.machine.wiring, row.case.cell.transfers
    bundles = [each for one in transfers for each in wiring.bundles(*one.way).values()]
    rate = row.case.figure / len(transfers)
    return bool(bundles) and all(b.count > 1 and rate <= HIGH * b.each for b in bundles)


def _one_way(row: Row) -> frozenset[Part]:
    return frozenset(part for part in row.parts if not part.both_ways)


def _engines(row: Row) -> set[str]:
    return {transfer.engine.kind for transfer in row.case.cell.transfers}


def _by_engine(slow: Sequence[Row], evidence: Evidence, *, is_reported: bool) -> Finding:
    found = f"{reach('by them', slow)}; kernels over the same parts are as fast as they should be"
    why = (
        "a copy engine may drive one of several links, or less of a memory than kernels do: the "
        "links and the memory are well"
    )
    remedy = tools(evidence, "state")
    if not is_reported:
        found = f"{reach('by them', slow)}, no more than one of several parallel links "
        found += "carries; kernels were not measured, so the links may be slow or not"
        why = "a copy engine may drive one of several links; kernels drive all of them"
        remedy = ("linkgauge run --prefix device_to_device_memcpy_", *remedy)
    cells = named(row.case for row in slow)
    return Finding("slow", "warn", "copy engines", found, why, remedy, cells)
