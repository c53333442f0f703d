"""What `devices` and `list` show: a machine's memories and inventory; the available benchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from linkgauge.benchmarks.table import EVERY_PROFILE, Row, Sweep
from linkgauge.machine.hardware import known_values
from linkgauge.model.inventory import Adapter, Inventory
from linkgauge.model.machine import Machine
from linkgauge.model.units import approximate_size

from .distances import classes, distances, legend, matrix_lines, short_kind
from .fabric_links import fabric_lines
from .files import json_document
from .gaps import gap_lines
from .host_details import host_lines
from .pci_tree_text import tree_lines
from .run_text import simulated
from .subjects import subjects

_PROFILES = len(" ".join(EVERY_PROFILE))


def _size(size: int | None) -> str:
    return "unknown" if size is None else approximate_size(size)


def machine_lines(machine: Machine) -> Iterator[RenderableType]:
    """The host, a row for each memory, the PCI tree, links and distances; last, why a backend has
    no devices and what could not be read."""
    inventory = machine.inventory or Inventory()
    yield from _heading(machine)
    yield Text()
    yield _memories(machine)
    for section in _sections(machine, inventory):
        if section:
            yield Text()
        yield from section


def _heading(machine: Machine) -> Iterator[Text]:
    host = machine.host
    if machine.simulated is not None:
        yield simulated().append(f" {machine.simulated}")
    name = f"{host.hostname}: " if host.hostname else ""
    yield Text(
        f"{name}{host.cpu_model or 'unknown processor'}, {host.cpus} CPUs, "
        f"{host.architecture or 'unknown architecture'}"
    )
    yield Text(f"{host.system or 'unknown system'}, kernel {host.kernel or 'unknown'}")
    if machine.inventory is None:
        return
    yield from host_lines(machine.inventory.host)
    known = known_values(machine)
    for key, value in machine.inventory.stated.items():
        machine_says = known.get(key)
        beside = f"; the machine says {machine_says}" if machine_says else ""
        yield Text.assemble((f"{key}: ", "cyan"), f"{value} (stated{beside})")


def _memories(machine: Machine) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("memory", "model", "size", "notes"):
        table.add_column(heading, justify="right" if heading == "size" else "left")
    for node in machine.host.nodes:
        cpus = f"{len(node.cpus)} CPUs" if node.cpus else "no CPUs"
        notes = f"{cpus}, {_size(node.memory_available)} available"
        kind = node.kind or "memory"
        table.add_row(f"host:{node.index}", kind, _size(node.memory_total), notes)
    listed = set()
    for devices in machine.devices.values():
        for device in devices:
            listed.add(device.memory)
            beside = [device.driver, *device.notes]
            if device.shares_host_memory:
                beside.append("shares the host's memory")
            table.add_row(
                Text(device.memory),
                Text(device.model),
                _size(device.memory_bytes),
                Text(", ".join(note for note in beside if note)),
            )
    # A captured tree has what the libraries report, not always what the backends do.
    for one in machine.inventory.accelerators if machine.inventory else ():
        if one.memory not in listed:
            table.add_row(Text(one.memory), Text(one.model), "unknown", Text(one.driver or ""))
    return table


def _sections(machine: Machine, inventory: Inventory) -> Iterator[list[Text]]:
    """The sections, to be separated by blank lines; empty ones are not shown."""
    found = subjects(machine)
    tree = list(tree_lines(inventory, found))
    shown = ", as the hypervisor shows them" if inventory.host.hypervisor else ""
    yield [Text(f"PCI devices{shown}", "bold"), *tree] if tree else []
    yield list(fabric_lines(inventory.accelerators))
    if len(found) > 1:
        yield list(matrix_lines(distances(machine, found)))
        between = classes(machine, found)
        kinds = {
            short_kind(link.kind): link.kind for one in inventory.accelerators for link in one.links
        }
        yield [*matrix_lines(between), legend(between, kinds)]
    yield list(_adapters(inventory.adapters))
    reasons = machine.unavailable.items()
    yield [Text.assemble((f"{name}: none", "yellow"), f": {reason}") for name, reason in reasons]
    yield list(gap_lines(inventory))


def _adapters(adapters: Sequence[Adapter]) -> Iterator[Text]:
    if adapters:
        yield Text("Network adapters with RDMA", "bold")
    for adapter in adapters:
        rate = "rate unknown" if adapter.rate is None else f"{adapter.rate / 1e9:.1f} GB/s"
        yield Text.assemble(
            (adapter.name, "bold"),
            f": {adapter.link_layer or 'unknown link layer'}, {adapter.state or 'unknown state'}, "
            f"{rate}, {adapter.pci or 'no PCI address'}",
        )


def benchmark_lines(rows: Sequence[Row | Sweep]) -> Iterator[Text]:
    """Name, profiles and title of each."""
    width = max(len(row.name) for row in rows)
    for row in rows:
        profiles = f"  {' '.join(row.profiles):<{_PROFILES}}"
        yield Text.assemble((f"{row.name:<{width}}", "bold"), (profiles, "dim"), f"  {row.title}")


def benchmarks_document(rows: Sequence[Row | Sweep]) -> str:
    return json_document(
        [{"name": row.name, "title": row.title, "profiles": row.profiles} for row in rows]
    )
