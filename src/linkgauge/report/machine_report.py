"""What `devices` shows: a machine's memories, and how they are connected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.console import RenderableType
from rich.text import Text

from linkgauge.machine.hardware import known_values
from linkgauge.model.inventory import Adapter, Interface
from linkgauge.model.machine import Machine
from linkgauge.model.units import approximate_size

from .distances import MOST_COMPARED, DistanceTable, classes, distances, legend, short_kind
from .fabric_links import fabric_lines
from .gaps import gap_lines
from .host_details import counts, host_lines, surroundings
from .pci_tree_text import tree_lines
from .run_text import simulated
from .subjects import spans, subjects
from .topology_text import topology_lines
from .wrapping import Hanging


def _size(size: int | None) -> str:
    return "unknown" if size is None else approximate_size(size)


def machine_lines(machine: Machine) -> Iterator[RenderableType]:
    """The host in a few lines, its memories, how they are connected, and why a backend has no
    devices."""
    yield from _in_sections([*_overview(machine), [_more(machine)]])


def detailed_machine_lines(machine: Machine) -> Iterator[RenderableType]:
    """All that is known for people: also the host's and the PCI's details, and what could not be
    read."""
    inventory = machine.known
    tree: list[RenderableType] = [
        Hanging(line, _indent(line)) for line in tree_lines(inventory, subjects(machine))
    ]
    host = machine.inventory and [Hanging(line, 4) for line in host_lines(inventory.host)]
    missing: list[RenderableType] = [Hanging(line, 4) for line in gap_lines(inventory)]
    details = (_titled("PCI details", tree), _titled("Host", host or []), missing)
    yield from _in_sections((*_overview(machine), *details))


def _in_sections(sections: Iterable[Sequence[RenderableType]]) -> Iterator[RenderableType]:
    """With blank lines between them; empty ones are left out."""
    for number, section in enumerate(filter(None, sections)):
        if number:
            yield Text()
        yield from section


def _titled(title: str, lines: Sequence[RenderableType]) -> list[RenderableType]:
    return [Text(title, "bold"), *lines] if lines else []


def _indent(line: Text) -> int:
    """A step to the right of the line's own."""
    return len(line.plain) - len(line.plain.lstrip()) + 4


def _overview(machine: Machine) -> Iterator[list[RenderableType]]:
    inventory = machine.known
    found = subjects(machine)
    yield list(_heading(machine))
    yield list(_memories(machine))
    shown = ", as the hypervisor shows them" if inventory.host.hypervisor else ""
    yield _titled(f"PCI devices{shown}", list(topology_lines(inventory, found)))
    yield [Hanging(line, 4) for line in fabric_lines(inventory.accelerators)]
    if len(found) > MOST_COMPARED:
        yield [_too_many(len(found))]
    elif len(found) > 1:
        between = classes(machine, found)
        kinds = {
            short_kind(link.kind): link.kind for one in inventory.accelerators for link in one.links
        }
        yield [DistanceTable(distances(machine, found))]
        yield [DistanceTable(between), Hanging(legend(between, kinds), 4)]
    yield list(_adapters(inventory.adapters))
    yield list(_interfaces(inventory.interfaces))
    yield [
        Hanging(Text.assemble((f"{name}: none", "yellow"), f": {reason}"), 4)
        for name, reason in machine.unavailable.items()
    ]


def _too_many(count: int) -> Hanging:
    pairs = f": not shown, {count} devices have {count * (count - 1) // 2} pairs"
    return Hanging(Text.assemble(("Distances", "bold"), pairs), 4)


def _heading(machine: Machine) -> Iterator[RenderableType]:
    host, details = machine.host, machine.known.host
    if machine.simulated is not None:
        yield simulated().append(f" {machine.simulated}")
    name = f"{host.hostname}: " if host.hostname else ""
    parts = (
        host.cpu_model or "unknown processor", *counts(details), f"{host.cpus} CPUs",
        host.architecture or "unknown architecture",
    )  # fmt: skip
    yield Hanging(Text(name + ", ".join(parts)), 4)
    system = (
        host.system or "unknown system", f"kernel {host.kernel or 'unknown'}",
        *surroundings(details),
    )  # fmt: skip
    yield Hanging(Text(", ".join(system)), 4)
    if machine.inventory is None:
        return
    known = known_values(machine)
    for key, value in machine.inventory.stated.items():
        machine_says = known.get(key)
        beside = f"; the machine reports {machine_says}" if machine_says else ""
        yield Hanging(Text.assemble((f"{key}: ", "cyan"), f"{value} (stated{beside})"), 4)


class _Memory(NamedTuple):
    model: str
    size: str
    notes: str


def _memories(machine: Machine) -> Iterator[RenderableType]:
    """A row for each node of the host, and for devices that differ in their number only."""
    rows: dict[_Memory, list[str]] = {}
    for node in machine.host.nodes:
        cpus = f"{len(node.cpus)} CPUs" if node.cpus else "no CPUs"
        notes = f"{cpus}, {_size(node.memory_available)} available"
        row = _Memory(node.kind or "memory", _size(node.memory_total), notes)
        rows.setdefault(row, []).append(f"host:{node.index}")
    for memory, row in _devices(machine):
        rows.setdefault(row, []).append(memory)
    size = "size each" if any(len(alike) > 1 for alike in rows.values()) else "size"
    cells = [("memory", "model", size, "notes")]
    for row, memories in rows.items():
        model = f"{len(memories)} × {row.model}" if len(memories) > 1 else row.model
        cells.append((spans(memories), model, row.size, row.notes))
    first, second, third = (max(len(line[at]) for line in cells) for at in range(3))
    for line in cells:
        memory, model, size, notes = line
        text = Text(f"{memory:<{first}}  {model:<{second}}  {size:>{third}}  {notes}".rstrip())
        if line is cells[0]:
            text.stylize("bold")
        yield Hanging(text, first + 2)


def _devices(machine: Machine) -> Iterator[tuple[str, _Memory]]:
    devices = [device for listed in machine.devices.values() for device in listed]
    for device in devices:
        notes = [f"driver {device.driver}" if device.driver else "", *device.notes]
        if device.shares_host_memory:
            notes.append("shares the host's memory")
        shown = ", ".join(note for note in notes if note)
        yield device.memory, _Memory(device.model, _size(device.memory_bytes), shown)
    # A captured tree has what the libraries report, not always what the backends do.
    names = {device.memory for device in devices}
    for one in machine.inventory.accelerators if machine.inventory else ():
        if one.memory not in names:
            driver = f"driver {one.driver}" if one.driver else ""
            yield one.memory, _Memory(one.model or "unknown", "unknown", driver)


def _adapters(adapters: Sequence[Adapter]) -> Iterator[RenderableType]:
    if adapters:
        yield Text("Network adapters with RDMA", "bold")
    for adapter in adapters:
        rate = "rate unknown" if adapter.rate is None else f"{adapter.rate / 1e9:.1f} GB/s"
        line = Text.assemble(
            (adapter.name, "bold"),
            f": {adapter.link_layer or 'unknown link layer'}, {adapter.state or 'unknown state'}, "
            f"{rate}, {adapter.pci or 'no PCI address'}",
        )
        yield Hanging(line, 4)


def _more(machine: Machine) -> RenderableType:
    """What `-v` shows beside it."""
    gaps = max(len(list(gap_lines(machine.known))) - 1, 0)
    missing = f", and what could not be read ({gaps} reason{'s' * (gaps > 1)})" if gaps else ""
    return Hanging(Text(f"-v adds details of host and PCI{missing}", "dim"), 4)


def _interfaces(interfaces: Sequence[Interface]) -> Iterator[RenderableType]:
    if interfaces:
        yield Text("Network interfaces", "bold")
    for number, one in enumerate(interfaces):
        parts = (
            one.kind or "other kind",
            {True: "up", False: "down", None: "unknown state"}[one.up],
            *one.addresses,
            "" if one.speed is None else f"{one.speed / 1e9:.3g} GB/s",
            f"driver {one.driver}" if one.driver else "",
            f"node {one.node}" if one.node is not None else "",
            one.pci or "",
            f"RDMA {one.rdma}" if one.rdma else "",
        )
        text = Text.assemble(
            (f"nic:{number}", "bold"), f" {one.name}: ", ", ".join(filter(None, parts))
        )
        yield Hanging(text, 4)
