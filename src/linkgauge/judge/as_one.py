"""Runs of several ranks, judged as if one process had measured them: what the hardware should do
does not depend on that."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from linkgauge.model.machine import Device, Machine
from linkgauge.model.notation import parse_memory
from linkgauge.model.result import CellResult, Result, Run


def as_one(run: Run) -> Run:
    """The run without ranks, where all of them are on one machine and each has a device of its own;
    any other as it is."""
    devices = run.machine.all_devices
    names = {str(parse_memory(device.memory).unranked) for device in devices}
    hosts = {rank.host for rank in run.machine.ranks}
    if len(hosts) != 1 or len(names) < len(devices):
        return run
    results = tuple(map(_result, run.results))
    return replace(run, machine=_machine(run.machine), results=results)


def with_ranks(judged: Sequence[Result], measured: Sequence[Result]) -> tuple[Result, ...]:
    """The judged results, with the transfers that were measured."""
    return tuple(
        replace(
            result,
            cells=tuple(
                replace(cell, transfers=own.transfers)
                for cell, own in zip(result.cells, before.cells, strict=True)
            ),
        )
        for result, before in zip(judged, measured, strict=True)
    )


def _machine(machine: Machine) -> Machine:
    def alone(device: Device) -> Device:
        return replace(device, memory=str(parse_memory(device.memory).unranked))

    devices = {name: tuple(map(alone, found)) for name, found in machine.devices.items()}
    return replace(machine, devices=devices, ranks=(), crowd=None)


def _result(result: Result) -> Result:
    return replace(result, cells=tuple(map(_cell, result.cells)))


def _cell(cell: CellResult) -> CellResult:
    alone = (transfer.placed(lambda memory: memory.unranked) for transfer in cell.transfers)
    return replace(cell, transfers=tuple(alone))
