"""Computes what several hosts should reach together."""

from __future__ import annotations

from collections.abc import Collection

from linkgauge.judge.expected.across import across, carried_by
from linkgauge.judge.expected.healthy import Healthy
from linkgauge.model.documents.scaling import BusbwBound
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.operations.collective import Collective
from linkgauge.model.transfer import Cell

FIRST_HOST = "node0"
"""The host of a described cluster whose own figures stand for those of all."""


def is_shown(cell: Cell, away: Collection[str]) -> bool:
    """Whether a cell uses the first host alone, or is one copy between it and a place in `away`."""
    owners = {str(each.engine.owner) for each in cell.transfers}
    places = owners.union(*({str(m.place) for m in each.memories} for each in cell.transfers))
    others = places & set(away)
    return not others or (len(cell.transfers) == 1 and len(places) == 2 and owners.isdisjoint(away))


def over_hosts(
    machine: Machine, own: BusbwBound, work: Collective, hosts: int, each: int
) -> BusbwBound | None:
    """Returns the bound over several hosts, or None for some collectives. `own` is for one host."""
    carried = carried_by(machine, len({device.node for device in machine.all_devices}))
    if carried is None:
        return BusbwBound(because="unknown: what the adapters of each host carry")
    limits = across(own, work, hosts, each, carried)
    return None if limits is None else limits.bound


def machine_of(row: Healthy) -> str:
    if row.hosts == 1:
        return row.machine
    return f"{row.hosts} x {row.machine} + {row.adapters}"
