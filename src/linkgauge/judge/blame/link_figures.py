"""Finds the figures of a run that show each link's rate, and the finding that blames each part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import msgspec

from linkgauge.judge.findings import Finding
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.part import Part
from linkgauge.model.hardware.topology import Joint, Topology, TopologyPlace
from linkgauge.model.transfer import Report, Transfer
from linkgauge.model.units import BANDWIDTH

_WHOLE = 0.999
"""The least share of a transfer's bytes that a link must carry for its figure to count for the
link. Shares add up to 1 except for rounding."""
_MARKING = ("fail", "warn")


class Best(msgspec.Struct, frozen=True):
    """A cell with its result."""

    result: Result
    cell: CellResult

    @property
    def figure(self) -> float:
        return self.cell.headline or 0.0


class LinkFigures(msgspec.Struct, frozen=True):
    """The best cells that a link limits, one way and both ways at once. A field is None without
    such cells."""

    one_way: Best | None = None
    both: Best | None = None


def link_figures(
    machine: Machine, topology: Topology, results: Sequence[Result]
) -> dict[Joint, LinkFigures]:
    """Returns the best figures of each link that limits a cell. All bytes of the cell's only
    transfer must cross the link one way, and no other link on the path may carry less at its best.
    The figure `both` is from a transfer there and back, or from two transfers, one each way."""
    found: dict[Joint, LinkFigures] = {}

    @cache
    def crossed(transfer: Transfer) -> dict[Joint, set[bool]]:
        return _crossed(machine, topology, transfer)

    for result in results:
        for cell in result.cells if result.unit == BANDWIDTH.symbol else ():
            ways = _ways(cell, [crossed(transfer) for transfer in cell.transfers])
            for joint, directions in ways.items():
                if not all(map(joint.carries_no_more, ways)):
                    continue
                name = "one_way" if len(directions) == 1 else "both"
                known = found.get(joint, LinkFigures())
                before: Best | None = getattr(known, name)
                one = Best(result, cell)
                if before is None or before.figure < one.figure:
                    found[joint] = msgspec.structs.replace(known, **{name: one})
    return found


def _ways(cell: CellResult, each: Sequence[dict[Joint, set[bool]]]) -> dict[Joint, set[bool]]:
    """Returns the links, with directions, that a cell's only transfer crosses. If the cell has two
    transfers, returns the links that both cross. Empty if the cell's figure is not the rate of
    these transfers."""
    if not cell.headline or cell.status != "pass" or cell.report is Report.HIDDEN:
        return {}
    if len(each) == 1:
        both = cell.transfers[0].both_ways
        is_half = both and cell.report.is_first
        return {j: way for j, way in each[0].items() if len(way) == 1 + both and not is_half}
    if len(each) != 2 or cell.report not in (Report.SUM, Report.TOTAL, Report.SPAN):
        return {}
    one, other = each
    return {j: way | other[j] for j, way in one.items() if len(way ^ other.get(j, way)) == 2}


def _crossed(machine: Machine, topology: Topology, transfer: Transfer) -> dict[Joint, set[bool]]:
    """Returns the links that all bytes of a transfer cross, and whether from a to b, from b to a,
    or both. Empty if the transfer crosses links outside of the picture."""
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
        if part >= _WHOLE / (1 + transfer.both_ways):
            whole.setdefault(joint, set()).add(is_a)
    return whole


def blames(findings: Iterable[Finding]) -> dict[str, Finding]:
    """Returns the gravest finding on each part of a machine, by the part's name without a device's
    address."""
    found: dict[str, Finding] = {}
    for finding in sorted(findings, key=lambda one: one.severity != "fail"):
        if finding.severity in _MARKING:
            found.setdefault(_name(finding.about), finding)
    return found


def _name(about: Part | str) -> str:
    return about.ends[0] if isinstance(about, Part) and about.kind == "device" else str(about)


def blamed(
    topology: Topology, by_name: Mapping[str, Finding], machine: Machine
) -> dict[Joint | TopologyPlace, Finding]:
    """Returns the gravest findings by the links and places of the picture."""
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
