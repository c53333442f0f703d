"""Shows a machine: its host, memories and links, and what could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from linkgauge.judge.expected.assumed import shown as assumed_shown
from linkgauge.judge.findings import Evidence
from linkgauge.machine.hardware import known_values
from linkgauge.machine.tree import ranges
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.gaps import NEEDS_ROOT, Gap
from linkgauge.model.hardware.host_details import CpuCache, HostDetails
from linkgauge.model.hardware.inventory import (
    Accelerator,
    Adapter,
    FabricLink,
    Interface,
    Inventory,
)
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.names import spans
from linkgauge.model.units import approximate_size, count_of
from linkgauge.report.blocks import Block, Column, Line, Prose, Span, Table, line, plain
from linkgauge.report.results import SIMULATED, table
from linkgauge.report.sections.pci import subjects
from linkgauge.report.words.sentences import program

from .pci import PciOutline, distance_blocks, nearest_blocks

# Accelerators' own links (NVLink and the like), those that are equivalent in one row.

_MOST = 8
_HEADS: Sequence[str | Column] = (
    "", "kind", "active", Column("GB/s each, one way", True), Column("errors", True), "lead to",
)  # fmt: skip
_Ends = tuple[tuple[str, int], ...]


def fabric_links(accelerators: Sequence[Accelerator]) -> Table:
    bundles = ((*each, one.memory) for one in accelerators for each in _bundles(one.links))
    kinds = grouped((texts, (ends, name)) for texts, ends, name in bundles)
    rows = []
    for texts, own in kinds.items():
        equivalent = grouped(own)
        if len(equivalent) > _MOST:
            every = dict.fromkeys((name, 1) for ends in equivalent for name, _ in ends)
            equivalent = {tuple(every): [name for names in equivalent.values() for name in names]}
        rows += [(spans(names), *texts, _listed(ends)) for ends, names in equivalent.items()]
    return table("Fabric links", _HEADS, rows)


def _bundles(links: Sequence[FabricLink]) -> Iterator[tuple[tuple[str, ...], _Ends]]:
    kinds = grouped(((link.kind, link.version, link.rate), link) for link in links)
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
    """Formats where links lead, and how many if more than one: `sim:1-3, nvswitch (18)`."""
    ordered = sorted(ends, key=lambda end: (len(end[0]), end))
    groups = grouped((count, name) for name, count in ordered)
    return ", ".join(
        spans(names) + (f" ({count}{' each' * (len(names) > 1)})" if count > 1 else "")
        for count, names in groups.items()
    )


_Memory = tuple[str, str, int | None, Sequence[str]]
"""The notation, the model and the bytes of a memory, and other known facts."""
_STATES = {True: "up", False: "down", None: "unknown"}


def machine_blocks(machine: Machine) -> Iterator[Block]:
    yield from _overview(machine, detailed=False)
    count = len(gaps(machine.known))
    missing = f", and what could not be read ({count_of(count, 'reason')})" if count else ""
    yield Prose([plain(f"-v adds details of host and PCI{missing}", "dim")])
    yield from nearest_blocks(Evidence(machine))


def detailed_machine_blocks(machine: Machine, found: Evidence | None = None) -> Iterator[Block]:
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
    """Yields why backends are missing, and how to wait for a backend that was too slow."""
    for name, why in machine.unavailable.items():
        if name in machine.unanswered:
            waits = f"{program()} devices --backend {name}"
            yield line(Span(f"{name}: not yet known", "warn"), f": {why}; to wait for it: ", waits)
        elif not only_unanswered:
            yield line(Span(f"{name}: none", "warn"), f": {why}")


def _filled(*tables: Table) -> Iterator[Table]:
    yield from (one for one in tables if one.rows)


def machine_heading(machine: Machine) -> Iterator[Line]:
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
        yield plain(f"assumed, because not stated: {assumed_shown(machine.known.assumed)}", "dim")
    known = known_values(machine) if machine.known.stated else {}
    for key, value in machine.known.stated.items():
        beside = f"; the machine reports {known[key]}" if known.get(key) else ""
        yield line(Span(f"{key}: ", "name"), f"{value} (stated{beside})")


def _memories(machine: Machine, detailed: bool) -> Table:
    def size_of(name: str, size: int | None) -> str:
        is_assumed = machine.known.assumed_of("memory size", name) is not None
        return f"{_size(size)}, assumed" if is_assumed else _size(size)

    found = grouped(
        ((model, size_of(name, size), ", ".join(filter(None, notes))), name)
        for name, model, size, notes in (*_nodes(machine), *_devices(machine, detailed))
    )
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
        available = f"available: {_size(node.memory_available)}" if is_known else ""
        yield name, node.kind or "memory", node.memory_total, (cpus, available)


def _devices(machine: Machine, detailed: bool) -> Iterator[_Memory]:
    about = {one.memory: _about(one, detailed) for one in machine.known.accelerators}
    for one in machine.all_devices:
        driver = f"driver {one.driver}" if one.driver else ""
        shares = "shares the host's memory" if one.shares_host_memory else ""
        _, *more = about.pop(one.memory, [""])
        yield one.memory, one.model, one.memory_bytes, (driver, *one.notes, shares, *more)
    for memory, known in about.items():
        yield memory, machine.accelerators[memory].model or "unknown", None, known


def _about(one: Accelerator, detailed: bool) -> list[str]:
    lanes = one.link.max_speed and f"{one.link.max_speed:g} GT/s x{one.link.max_width}"
    facts = {"driver": one.driver, "library": one.library, "firmware": one.firmware}
    facts |= {"board": one.board, "form factor": one.form_factor, "PCIe": lanes or None}
    known = [f"{name} {fact}" if fact else "" for name, fact in facts.items()]
    mode = one.compute_mode if one.compute_mode not in (None, "default") else ""
    states = (
        "in MIG mode (sudo nvidia-smi -mig 0 ends it)" if one.mig else "",
        f"compute mode {mode} (sudo nvidia-smi -c DEFAULT ends it)" if mode else "",
    )
    return [*(known if detailed else known[:1]), *states]


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


_KINDS = {"data": "d", "instruction": "i"}


def host_facts(machine: Machine) -> Table:
    host, size = machine.known.host, machine.host.memory_total
    driver = f" by {host.frequency_driver}" if host.frequency_driver else ""
    facts: dict[str, Iterable[object]] = {
        "CPUs": (
            host.threads_per_core and f"{count_of(host.threads_per_core, 'thread')} a core",
            host.isa,
            host.governor and f"governor {host.governor}{driver}",
            *map(_cache, host.caches),
        ),
        "memory": (
            size and approximate_size(size),
            host.memory_rate and f"DIMMs {host.memory_rate / 1e9:.1f} GB/s",
            _distances(host),
            *(
                f"{total} huge pages of {approximate_size(size)}, {free} free"
                for size, (total, free) in host.huge_pages.items()
            ),
            host.transparent_huge_pages and f"transparent huge pages {host.transparent_huge_pages}",
        ),
        "CPU steal": (None if host.steal is None else f"{host.steal:.2%} since boot",),
        "may use": _allowances(host),
        "command line": (host.command_line,),
    }
    rows = ((name, "; ".join(str(text) for text in texts if text)) for name, texts in facts.items())
    return table("Host", ("", ""), [row for row in rows if row[1]])


def counts(host: HostDetails) -> Iterator[str]:
    known = {"socket": host.sockets, "core": host.cores}
    yield from (count_of(count, what) for what, count in known.items() if count is not None)


def surroundings(host: HostDetails) -> Iterator[str]:
    found = {"under": host.hypervisor, "in": host.container, "IOMMU": host.iommu}
    yield from (f"{how} {what}" for how, what in found.items() if what)


def _cache(cache: CpuCache) -> str:
    shared = f" shared by {cache.shared_by}" if cache.shared_by > 1 else ""
    return f"L{cache.level}{_KINDS.get(cache.kind, '')} {approximate_size(cache.size)}{shared}"


def _distances(host: HostDetails) -> str:
    rows = [f"from node {node}: {' '.join(map(str, row))}" for node, row in host.distances.items()]
    return f"NUMA distances {', '.join(rows)}" if len(rows) > 1 else ""


def _allowances(host: HostDetails) -> Iterator[str]:
    for what, listed in (("CPUs", host.allowed_cpus), ("NUMA nodes", host.allowed_nodes)):
        if listed is not None:
            yield f"{what} {ranges(listed)}"
    unread = {field for gap in host.unknown for field in gap.fields}
    limits = {"memory limit": host.memory_limit, "locked memory limit": host.memlock_limit}
    for what, limit in limits.items():
        if limit is not None or what not in unread:
            size = "unlimited" if limit is None else approximate_size(limit)
            yield f"{what.removesuffix(' limit')} {size}"


# What could not be read on a machine, each reason once, with what would make it readable.

_NAMED = 4


def gaps(inventory: Inventory) -> dict[str, str]:
    """Returns the unknown facts by reason, in the form `link.speed of sim:0-3`."""
    found = grouped(
        (gap.why, (owner, field))
        for owner, unknown in _unknown(inventory)
        for gap in unknown
        for field in gap.fields or ("",)
    )
    return {why: "; ".join(_lacking(lacking)) for why, lacking in found.items()}


def for_root(inventory: Inventory | None) -> list[str]:
    """Returns the facts that only root can read, with the reasons, a line for each reason."""
    found = (gaps(inventory) if inventory else {}).items()
    return [": ".join(filter(None, (text, why))) for why, text in found if why.endswith(NEEDS_ROOT)]


def _unknown(inventory: Inventory) -> Sequence[tuple[str, tuple[Gap, ...]]]:
    return [
        ("", (*inventory.unknown, *inventory.host.unknown)),
        *((one.memory, one.unknown) for one in inventory.accelerators),
        *((one.name, one.unknown) for one in inventory.adapters),
        *((one.address, one.unknown) for one in inventory.pci),
    ]


def _lacking(fields: Iterable[tuple[str, str]]) -> Iterator[str]:
    by_owner = ((owner, dict.fromkeys(own)) for owner, own in grouped(fields).items())
    equivalent = grouped((", ".join(filter(None, own)), owner) for owner, own in by_owner)
    for what, owners in equivalent.items():
        shown = spans(filter(None, owners)).split(", ")
        more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED + 1 else ""
        of = ", ".join(shown[:_NAMED] if more else shown) + more
        yield " of ".join(filter(None, (what, of)))
