"""Makes the benchmarks of plug-ins harmless."""

from __future__ import annotations

from msgspec.structs import replace

from linkgauge.hooks import Hook, Unfit, brief, expect
from linkgauge.model.hardware.machine import Device, Node
from linkgauge.model.transfer import Cell

from .table import DeviceSet, Row, Sweep


def _sample(rank: str = "") -> DeviceSet:
    """Returns devices on which any row can be laid out."""
    names = (f"sim:{index}{rank and f'{rank}{index}'}" for index in range(4))
    devices = tuple(Device(name, "a device", 1 << 40, 1 << 40) for name in names)
    return DeviceSet("sim", (Node(0, (0,)), Node(1, (1,))), devices)


def check(row: Row | Sweep) -> None:
    """Raises an exception if the name of a plug-in's benchmark is none, or if its cells cannot be
    laid out."""
    if not row.name.isidentifier():
        raise Unfit(f"{brief(row.name)} is no name of a benchmark")
    if isinstance(row, Row):
        row.lay_out(_sample("@" if row.across_ranks else ""))
    elif not callable(row.cells):
        raise Unfit(f"{brief(row.cells)} is no function")


def guarded(row: Row | Sweep, hook: Hook) -> Row | Sweep:
    """Returns a plug-in's benchmark as one that never raises. If it fails to make cells, it has
    none."""
    if hook.is_ours or isinstance(row, Row):
        return row
    makes, size, left_out = row.cells, row.size, row.left_out
    return replace(
        row,
        cells=lambda on: iter(hook.items(lambda: makes(on), Cell)),
        size=(lambda on: hook.tried(lambda: expect(size(on), int), 0)) if callable(size) else size,
        left_out=left_out and (lambda on: hook.tried(lambda: expect(left_out(on), str), "")),
        reason=row.reason or f"{hook} made no cells",
    )
