"""Finds a simulated machine's figures that depend on assumed facts, such as a PCIe link's speed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linkgauge.model.documents.result import CellResult, Expected
from linkgauge.model.hardware.gaps import AssumedFact, Assumption
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.names import spans

_ACROSS: tuple[AssumedFact, ...] = ("link between nodes",)


def rests_on(cell: CellResult, expected: Expected, machine: Machine) -> Expected | None:
    """Returns an expectation whose reason names the assumed facts on which a cell's figure depends.
    Returns None if the figure depends on no assumed fact."""
    if machine.simulated is None or not machine.known.assumed or cell.status != "pass":
        return None
    if expected.achievable is not None and not expected.measured:  # known facts suffice
        return None
    found = _relevant(cell, machine)
    return Expected(because=f"assumed: {shown(found)}") if found else None


def shown(assumed: Iterable[Assumption]) -> str:
    """Formats assumed facts: `PCIe link of sim:0-3 (Gen 4 x16)`."""
    return "; ".join(f"{one.fact} of {spans(one.parts)} ({one.value})" for one in assumed)


def _relevant(cell: CellResult, machine: Machine) -> Sequence[Assumption]:
    nodes = {cpu: node.index for node in machine.host.nodes for cpu in node.cpus}
    places = {
        f"host:{nodes.get(place.index or 0, 0)}" if place.space == "cpu" else str(place)
        for transfer in cell.transfers
        for place in (*(one.place for one in transfer.named), transfer.engine.owner)
    }
    hosts = {place for place in places if place.startswith("host:")}
    devices = places - hosts
    known = machine.by_memory
    near = {f"host:{known[one].near}" for one in devices if one in known}
    choices: list[tuple[set[str], tuple[AssumedFact, ...]]]
    if cell.report.is_latency:
        choices = [(places, ("latency",))]
    elif not devices:
        choices = [(hosts, ("memory rate", "link between nodes", "CPUs"))]
    elif hosts:
        across = hosts | near if len(hosts | near) > 1 else set()
        choices = [(devices, ("PCIe link", "link")), (across, _ACROSS), (hosts, ("memory rate",))]
    elif len(devices) == 1:
        choices = [(devices, ("memory rate",))]
    else:
        across = near if len(near) > 1 else set()
        choices = [(devices, ("link",)), (devices, ("PCIe link",)), (across, _ACROSS)]
    for parts, facts in choices:
        found = [one for one in machine.known.assumed if one.fact in facts and parts & {*one.parts}]
        if found:
            return found
    return ()
