"""Shows a machine: its memories, how they are connected, and what could not be read. `linkgauge
devices` and the page of a run show these blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from linkgauge.judge.expected.assumed import shown as assumed_shown
from linkgauge.judge.findings import Evidence
from linkgauge.machine.hardware import known_values
from linkgauge.model.hardware.inventory import Accelerator, Adapter, FabricLink, Interface
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.names import spans
from linkgauge.model.units import approximate_size, count_of
from linkgauge.report.blocks import Block, Column, Line, Prose, Span, Table, line, plain
from linkgauge.report.results import SIMULATED, table
from linkgauge.report.words.sentences import program
from linkgauge.report.words.subjects import subjects

from .distances import distance_blocks
from .host import counts, gaps, host_facts, surroundings
from .nearest import nearest_blocks
from .pci import PciOutline

# Accelerators' own links (NVLink and the like), those that are alike in one row.

_MOST = 8
"""Most rows for a kind of link; if there are more, their ends are listed together."""
_HEADS: Sequence[str | Column] = (
    "", "kind", "active", Column("GB/s each, one way", True), Column("errors", True), "lead to",
)  # fmt: skip
_Ends = tuple[tuple[str, int], ...]
"""The places to which links lead, each with the number of links."""


def fabric_links(accelerators: Sequence[Accelerator]) -> Table:
    kinds: dict[tuple[str, ...], dict[_Ends, list[str]]] = {}
    for one in accelerators:
        for texts, ends in _bundles(one.links):
            kinds.setdefault(texts, {}).setdefault(ends, []).append(one.memory)
    rows = []
    for texts, alike in kinds.items():
        for ends, names in (alike if len(alike) <= _MOST else _together(alike)).items():
            rows.append((spans(names), *texts, _listed(ends)))
    return table("Fabric links", _HEADS, rows)


def _together(alike: dict[_Ends, list[str]]) -> dict[_Ends, list[str]]:
    ends = dict.fromkeys((name, 1) for ends in alike for name, _ in ends)
    return {tuple(ends): [name for names in alike.values() for name in names]}


def _bundles(links: Sequence[FabricLink]) -> Iterator[tuple[tuple[str, ...], _Ends]]:
    """Yields a table row for each kind of link, and the places to which the links of this kind
    lead."""
    kinds: dict[tuple[str, str | None, float | None], list[FabricLink]] = {}
    for link in links:
        kinds.setdefault((link.kind, link.version, link.rate), []).append(link)
    for (kind, version, rate), own in kinds.items():
        states = Counter(link.active for link in own)
        unsure = f" ({states[None]} unknown)" if states[None] else ""
        texts = (
            f"{kind} {version or ''}".rstrip(),
            f"{states[True]} of {len(own)}{unsure}",
            "unknown" if rate is None else f"{rate / 1e9:.1f}",
            str(sum(link.errors or 0 for link in own) or ""),
        )
        yield texts, tuple(Counter(link.remote or "unknown" for link in own).items())


def _listed(ends: _Ends) -> str:
    """Returns the ends of links: `sim:1-3, nvswitch (18)`. The number in parentheses says how many
    links lead to an end, if more than 1."""
    groups: dict[int, list[str]] = {}
    for name, count in sorted(ends, key=lambda end: (len(end[0]), end)):
        groups.setdefault(count, []).append(name)
    return ", ".join(
        spans(names) + (f" ({count}{' each' * (len(names) > 1)})" if count > 1 else "")
        for count, names in groups.items()
    )


_Memory = tuple[str, str, int | None, Sequence[str]]
"""The notation, the model and the bytes of a memory, and other known facts."""
_STATES = {True: "up", False: "down", None: "unknown"}


def machine_blocks(machine: Machine) -> Iterator[Block]:
    """Yields the host in a few lines, its memories, how they are connected, and why a backend has
    no devices."""
    yield from _overview(machine, detailed=False)
    count = len(gaps(machine.known))
    missing = f", and what could not be read ({count_of(count, 'reason')})" if count else ""
    yield Prose([plain(f"-v adds details of host and PCI{missing}", "dim")])
    yield from nearest_blocks(Evidence(machine))


def detailed_machine_blocks(machine: Machine, found: Evidence | None = None) -> Iterator[Block]:
    """Yields all known facts of a machine, including details of the host and of PCI, and the facts
    that could not be read. `found` is the evidence of a run, if there is one."""
    yield from _overview(machine, detailed=True)
    if missing := gaps(machine.known):
        why = (line(Span(what, "warn"), ": " if what else "", why) for why, what in missing.items())
        yield Prose([plain("Not read", "strong"), *why])
    yield from nearest_blocks(found or Evidence(machine))


def _overview(machine: Machine, *, detailed: bool) -> Iterator[Block]:
    inventory, found = machine.known, subjects(machine)
    pci = PciOutline(inventory, found)
    yield Prose([*machine_heading(machine)])
    yield from _filled(_memories(machine, detailed), pci.tree(ports=detailed))
    yield from _filled(fabric_links(inventory.accelerators))
    yield from distance_blocks(machine, found)
    yield from _filled(_adapters(inventory.adapters), _interfaces(inventory.interfaces))
    if lacking := [*unavailable_lines(machine)]:
        yield Prose(lacking)
    if detailed and machine.inventory:
        yield from _filled(pci.details(), host_facts(machine))


def unavailable_lines(machine: Machine, *, only_unanswered: bool = False) -> Iterator[Line]:
    """Yields a line for each unavailable backend. A backend that gave no answer in time may have
    devices, and its line has the command that waits for it."""
    for name, why in machine.unavailable.items():
        if name in machine.unanswered:
            waits = f"{program()} devices --backend {name}"
            yield line(Span(f"{name}: not yet known", "warn"), f": {why}; to wait for it: ", waits)
        elif not only_unanswered:
            yield line(Span(f"{name}: none", "warn"), f": {why}")


def _filled(*tables: Table) -> Iterator[Table]:
    yield from (one for one in tables if one.rows)


def machine_heading(machine: Machine) -> Iterator[Line]:
    """Yields lines that say which machine this is: its processors, its system, its surroundings."""
    host, details = machine.host, machine.known.host
    if machine.simulated is not None:
        yield line(SIMULATED, f" {machine.simulated}")
    parts = (
        host.cpu_model or "unknown processor", *counts(details), f"{host.cpus} CPUs",
        host.architecture or "unknown architecture",
    )  # fmt: skip
    yield plain((f"{host.hostname}: " if host.hostname else "") + ", ".join(parts))
    kernel = f"kernel {host.kernel or 'unknown'}"
    yield plain(", ".join((host.system or "unknown system", kernel, *surroundings(details))))
    if machine.known.assumed:
        yield plain(f"assumed, as nothing states it: {assumed_shown(machine.known.assumed)}", "dim")
    known = known_values(machine) if machine.known.stated else {}
    for key, value in machine.known.stated.items():
        beside = f"; the machine reports {known[key]}" if known.get(key) else ""
        yield line(Span(f"{key}: ", "name"), f"{value} (stated{beside})")


def _memories(machine: Machine, detailed: bool) -> Table:
    """Makes a table with a row for each kind of memory. Nodes or devices that differ only in their
    number share a row."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name, model, size, notes in (*_nodes(machine), *_devices(machine, detailed)):
        is_assumed = machine.known.assumed_of("memory size", name) is not None
        shown = f"{_size(size)}, assumed" if is_assumed else _size(size)
        found.setdefault((model, shown, ", ".join(filter(None, notes))), []).append(name)
    each = "size each" if any(len(names) > 1 for names in found.values()) else "size"
    rows = (
        (spans(names), f"{len(names)} × {model}" if len(names) > 1 else model, *others)
        for (model, *others), names in found.items()
    )
    return table("Memories", ("", "model", Column(each, True), "notes"), rows)


def _size(size: int | None) -> str:
    return "unknown" if size is None else approximate_size(size)


def _nodes(machine: Machine) -> Iterator[_Memory]:
    for node in machine.host.nodes:
        name, known = f"host:{node.index}", machine.known
        cpus = f"{len(node.cpus) or 'no'} CPUs"
        cpus += ", assumed" if known.assumed_of("CPUs", name) else ""
        is_known = known.assumed_of("memory size", name) is None
        available = f"{_size(node.memory_available)} available" if is_known else ""
        yield name, node.kind or "memory", node.memory_total, (cpus, available)


def _devices(machine: Machine, detailed: bool) -> Iterator[_Memory]:
    """Yields the devices of the backends, then the accelerators that only a vendor's library
    reports, as in a captured machine."""
    about = {one.memory: _about(one, detailed) for one in machine.known.accelerators}
    for one in machine.all_devices:
        driver = f"driver {one.driver}" if one.driver else ""
        shares = "shares the host's memory" if one.shares_host_memory else ""
        _, *more = about.pop(one.memory, [""])
        yield one.memory, one.model, one.memory_bytes, (driver, *one.notes, shares, *more)
    for memory, known in about.items():
        yield memory, machine.accelerators[memory].model or "unknown", None, known


def _about(one: Accelerator, detailed: bool) -> list[str]:
    """Returns the facts that a library reports of an accelerator, the driver first. Without
    `detailed`, returns the driver only."""
    lanes = one.link.max_speed and f"{one.link.max_speed:g} GT/s x{one.link.max_width}"
    facts = {"driver": one.driver, "library": one.library, "firmware": one.firmware}
    facts |= {"board": one.board, "form factor": one.form_factor, "PCIe": lanes or None}
    known = [f"{name} {fact}" if fact else "" for name, fact in facts.items()]
    return known if detailed else known[:1]


def _adapters(adapters: Sequence[Adapter]) -> Table:
    rows = (
        (one.name, one.link_layer or "unknown", one.state or "unknown", _rate(one.rate), one.pci)
        for one in adapters
    )
    return table("RDMA adapters", ("", "link", "state", Column("GB/s", True), "PCI"), rows)


def _interfaces(interfaces: Sequence[Interface]) -> Table:
    rows = (
        (
            f"nic:{number} {one.name}", one.kind or "other", _STATES[one.up], _rate(one.speed),
            one.driver, one.node, one.pci, one.rdma, ", ".join(one.addresses),
        )
        for number, one in enumerate(interfaces)
    )  # fmt: skip
    heads = (
        "", "kind", "state", Column("GB/s", True), "driver", Column("node", True), "PCI",
        "RDMA", "addresses",
    )  # fmt: skip
    return table("Interfaces", heads, rows)


def _rate(rate: float | None) -> str | None:
    return None if rate is None else f"{rate / 1e9:.3g}"
