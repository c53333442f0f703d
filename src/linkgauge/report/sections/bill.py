"""The bill of materials: on what and with what the run was measured."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from linkgauge.model.inventory import Accelerator, Inventory
from linkgauge.model.result import Run
from linkgauge.model.units import approximate_size, format_size
from linkgauge.report.blocks import Block, Column, Entry, Table, cut, plain
from linkgauge.report.host_details import counts, surroundings

from . import OneRun, Section

MOST_VALUE = 2000
Fact = tuple[str, str | None]


def _blocks(one: OneRun) -> Iterator[Block]:
    for caption, facts in (
        ("Hardware", _hardware(one.run)),
        ("Firmware and drivers", _firmware(one.run)),
        ("Software", _software(one.run)),
        ("How it was measured", _settings(one.run)),
    ):
        rows = [(Entry(name), Entry(cut(value, MOST_VALUE))) for name, value in facts if value]
        if rows:
            yield Table(plain(caption), (Column("what"), Column("value")), rows)


def _inventory(run: Run) -> Inventory:
    return run.machine.known


def _hardware(run: Run) -> Iterator[Fact]:
    machine, details = run.machine, _inventory(run).host
    host = machine.host
    yield "host", host.hostname
    yield "simulated machine", machine.simulated
    yield "processor", ", ".join((host.cpu_model or "unknown", *counts(details), host.architecture))
    yield "CPUs for linkgauge", str(host.cpus)
    yield "memory", approximate_size(host.memory_total) if host.memory_total else None
    for node in host.nodes:
        size = approximate_size(node.memory_total) if node.memory_total else "unknown"
        yield f"host:{node.index}", f"{node.kind or 'memory'} {size}, {len(node.cpus)} CPUs"
    yield "system under it", ", ".join(surroundings(details))
    yield from _alike(
        (f"{device.model}, {approximate_size(device.memory_bytes)}", device.memory)
        for device in machine.all_devices
    )
    for adapter in _inventory(run).adapters:
        rate = f", {adapter.rate / 1e9:.1f} GB/s" if adapter.rate else ""
        yield adapter.name, f"{adapter.link_layer or 'network adapter'}{rate}"
    for key, value in _inventory(run).stated.items():
        yield key, f"{value} (stated)"


def _firmware(run: Run) -> Iterator[Fact]:
    found = _inventory(run).accelerators
    yield from _alike((text, one.memory) for one in found if (text := _about(one)))
    known = {one.memory for one in found}
    others = (device for device in run.machine.all_devices if device.memory not in known)
    yield from _alike((f"driver {one.driver}", one.memory) for one in others if one.driver)


def _about(one: Accelerator) -> str:
    parts = (
        ("driver", one.driver), ("library", one.library), ("firmware", one.firmware),
        ("board", one.board), ("form factor", one.form_factor),
        ("PCIe", one.link.max_speed and f"{one.link.max_speed:g} GT/s x{one.link.max_width}"),
        ("links", str(len(one.links)) if one.links else None),
    )  # fmt: skip
    return ", ".join(f"{name} {value}" for name, value in parts if value)


def _alike(found: Iterator[tuple[str, str]]) -> Iterator[Fact]:
    """Devices that are alike, once."""
    owners: dict[str, list[str]] = {}
    for text, memory in found:
        owners.setdefault(text, []).append(memory)
    for text, memories in owners.items():
        named = f"{memories[0]} to {memories[-1]}" if len(memories) > 2 else ", ".join(memories)
        yield named, f"{len(memories)} × {text}" if len(memories) > 1 else text


def _software(run: Run) -> Iterator[Fact]:
    machine = run.machine
    yield "linkgauge", machine.linkgauge
    yield "commit", machine.commit
    yield "Python", machine.python
    yield "system", machine.host.system
    yield "kernel", machine.host.kernel
    yield "kernel command line", _inventory(run).host.command_line


def _settings(run: Run) -> Iterator[Fact]:
    settings = run.settings
    yield "command", shlex.join(run.command)
    yield "run", run.id
    yield "label", run.label
    yield "began", run.started
    yield "resumed", ", ".join(run.resumed)
    yield "ended", run.finished or "interrupted"
    yield "sizes", ", ".join(map(format_size, settings.sizes))
    yield "precision", f"±{settings.precision:.2%}"
    yield "verified", "yes" if settings.verify else "no"


SECTION = Section("bill", "Bill of materials", 90, of_run=_blocks)
