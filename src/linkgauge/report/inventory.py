"""Lists for people and programs: the memories of a machine, the benchmarks there are."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from linkgauge.model.machine import Machine
from linkgauge.model.units import approximate_size

from .files import json_document
from .terminal import make_console, simulated


def _size(size: int | None) -> str:
    return "unknown" if size is None else approximate_size(size)


def print_machine(machine: Machine, *, as_json: bool) -> None:
    """A row for each memory: host nodes, then devices; below, why a backend has none."""
    if as_json:
        sys.stdout.write(json_document(machine))
        return
    host = machine.host
    console = make_console()
    if machine.simulated is not None:
        console.print(simulated().append(f" {machine.simulated}"))
    console.print(f"{host.cpu_model or 'unknown processor'}, {host.cpus} CPUs, {host.architecture}")
    console.print(f"{host.system}, kernel {host.kernel}\n")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("memory", "model", "size", "notes"):
        table.add_column(heading, justify="right" if heading == "size" else "left")
    for node in host.nodes:
        cpus = f"{len(node.cpus)} CPUs, {_size(node.memory_available)} available"
        table.add_row(f"host:{node.index}", "DRAM", _size(node.memory_total), cpus)
    for devices in machine.devices.values():
        for device in devices:
            notes = [device.driver, *device.notes]
            if device.shares_host_memory:
                notes.append("shares the host's memory")
            table.add_row(
                Text(device.memory),
                Text(device.model),
                _size(device.memory_bytes),
                Text(", ".join(note for note in notes if note)),
            )
    console.print(table)
    for backend, reason in machine.unavailable.items():
        console.print(Text.assemble((f"{backend}: none", "yellow"), f": {reason}"))


def print_benchmarks(benchmarks: Sequence[tuple[str, str]], *, as_json: bool) -> None:
    """Name and title of each."""
    if as_json:
        listed = [{"name": name, "title": title} for name, title in benchmarks]
        sys.stdout.write(json_document(listed))
        return
    console = make_console()
    width = max(len(name) for name, _ in benchmarks)
    for name, title in benchmarks:
        console.print(Text.assemble((f"{name:<{width}}", "bold"), f"  {title}"))
