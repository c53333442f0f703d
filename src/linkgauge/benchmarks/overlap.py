"""How much of a copy's time a kernel that computes hides: what software gains that copies while it
computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from linkgauge.model.memory import NULL, host
from linkgauge.model.notation import parse_memory
from linkgauge.model.transfer import Cell, Engine, Report, Transfer
from linkgauge.model.units import HIDDEN

from .gpu import OnDevices
from .table import DeviceSet

_WAYS: Mapping[str, str] = {"H2D": "to", "D2H": "from", "both": "to from"}
"""The copies of each row, as seen from the device."""


def _cells(fabric: DeviceSet) -> Iterator[Cell]:
    for row, ways in _WAYS.items():
        for device in fabric.devices:
            memory, near = parse_memory(device.memory), host(device.near)
            kernel = Transfer(NULL, NULL, Engine(memory, "sm"))
            copies = {
                "to": Transfer(near, memory, Engine(memory, "ce")),
                "from": Transfer(memory, near, Engine(memory, "ce")),
            }
            transfers = kernel, *(copies[way] for way in ways.split())
            yield Cell(row, memory.label, transfers, Report.HIDDEN, operation="overlap")


OVERLAP: tuple[OnDevices, ...] = (
    OnDevices(
        "copy_compute_overlap",
        "memcpy CE beside a kernel that computes, path(row) of device(column)",
        _cells,
        HIDDEN,
        reason="needs a device",
        profiles=("full",),
    ),
)
