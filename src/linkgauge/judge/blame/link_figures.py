"""Finds the figures that show each link's rate, and the most severe finding on each part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from operator import attrgetter

import msgspec

from linkgauge.judge.findings import Finding
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.part import Part
from linkgauge.model.hardware.topology import Joint, Topology, TopologyPlace
from linkgauge.model.transfer import Report, Transfer
from linkgauge.model.units import BANDWIDTH


class Best(msgspec.Struct, frozen=True):
    result: Result
    cell: CellResult

    @property
    def figure(self) -> float:
        return self.cell.headline or 0.0


class LinkFigures(msgspec.Struct, frozen=True):
    one_way: Best | None = None
    both: Best | None = None


def link_figures(
    machine: Machine, topology: Topology, results: Sequence[Result]
) -> dict[Joint, LinkFigures]:
    """Returns the best cells of each link. All bytes of such a cell cross the link, and no other
    link on the path may carry less."""
    crossed = cache(partial(_crossed, machine, topology))
    shown = grouped(
        ((joint, len(directions)), Best(result, cell))
        for result in results if result.unit == BANDWIDTH.symbol
        for cell in result.cells
        for ways in [_ways(cell, crossed)]
        for joint, directions in ways.items() if all(map(joint.carries_no_more, ways))
    )  # fmt: skip
    best = {of: max(some, key=attrgetter("figure")) for of, some in shown.items()}
    return {joint: LinkFigures(best.get((joint, 1)), best.get((joint, 2))) for joint, _ in best}


def _ways(
    cell: CellResult, crossed: Callable[[Transfer], dict[Joint, set[bool]]]
) -> dict[Joint, set[bool]]:
    if not cell.headline or cell.status != "pass" or cell.report is Report.HIDDEN:
        return {}
    if len(cell.transfers) == 1:
        (only,) = cell.transfers
        if only.both_ways and cell.report.is_first:
            return {}
        return {j: way for j, way in crossed(only).items() if len(way) == 1 + only.both_ways}
    if len(cell.transfers) != 2 or cell.report not in (Report.SUM, Report.TOTAL, Report.SPAN):
        return {}
    one, other = map(crossed, cell.transfers)
    return {j: way | other[j] for j, way in one.items() if len(way ^ other.get(j, way)) == 2}


def _crossed(machine: Machine, topology: Topology, transfer: Transfer) -> dict[Joint, set[bool]]:
    """Returns the links that all bytes cross, with directions (True: from `a` to `b`)."""
    parts: dict[tuple[Joint, bool], float] = {}
    for begin, end, _, part in transfer.legs():
        for wire, crossing in machine.wiring.route(str(begin), str(end)) or ():
            if (joint := topology.joined.get(wire.name)) is not None:
                is_a = topology.inside.get(crossing.begin, crossing.begin) == joint.a
                parts[joint, is_a] = parts.get((joint, is_a), 0.0) + crossing.share * part
            elif wire.kind != "bridge":
                return {}
    whole: dict[Joint, set[bool]] = {}
    for (joint, is_a), part in parts.items():
        if round(part * (1 + transfer.both_ways), 3) >= 1:  # shares add up but for rounding
            whole.setdefault(joint, set()).add(is_a)
    return whole


def blames(findings: Iterable[Finding]) -> dict[str, Finding]:
    """Returns the most severe finding on each part, by the part's name without an address."""
    found: dict[str, Finding] = {}
    for finding in sorted(findings, key=lambda one: one.severity != "fail"):
        if finding.is_grave:
            found.setdefault(_name(finding.about), finding)
    return found


def _name(about: Part | str) -> str:
    return about.ends[0] if isinstance(about, Part) and about.kind == "device" else str(about)


def blamed(
    topology: Topology, by_name: Mapping[str, Finding], machine: Machine
) -> dict[Joint | TopologyPlace, Finding]:
    names: dict[str, Joint | TopologyPlace] = {**topology.places, **topology.joined}
    joined = [(wire.part, joint) for joint in topology.joints for wire in joint.wires]
    names |= {part.crossed_both_ways.name: joint for part, joint in joined}
    for address, memory in machine.named.items():
        if memory in topology.places:
            names.setdefault(address, topology.places[memory])
    found: dict[Joint | TopologyPlace, Finding] = {}
    for name, finding in by_name.items():
        if name in names:
            found.setdefault(names[name], finding)
    return found
