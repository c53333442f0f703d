"""Shows where devices are: the PCI tree, distances between devices, and what is near each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from linkgauge.judge.doctor.fabric import nearest
from linkgauge.judge.findings import Evidence
from linkgauge.judge.pcie_chains import PcieChain, hops
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.inventory import Accelerator, Inventory, PciFunction, PciLink
from linkgauge.model.hardware.machine import Device, Machine
from linkgauge.model.hardware.pcie import PciTree, generation, is_accelerator, link_rate
from linkgauge.model.names import spans
from linkgauge.report.blocks import (
    Block,
    Column,
    Entry,
    Heat,
    Prose,
    Shade,
    Span,
    Table,
    Tone,
    line,
    plain,
)
from linkgauge.report.results import table

_NUMBERS = ("GB/s", "max GB/s", "MaxPayload", "MaxReadReq", "IOMMU", "NODE")


class PciOutline:
    def __init__(self, inventory: Inventory, subjects: Sequence[Subject]) -> None:
        self._tree = PciTree(inventory.pci)
        self._known = known = self._tree.functions
        self._functions, self._hypervisor = inventory.pci, inventory.host.hypervisor
        self._below = grouped(
            (one.parent if one.parent in known else None, one) for one in inventory.pci
        )
        self._subjects = {one.pci: (number, one) for number, one in enumerate(subjects)}
        self._adapters = grouped((one.pci, one.name) for one in inventory.adapters)

    def tree(self, *, ports: bool) -> Table:
        """Shows the PCI tree. Unless `ports`, leaves out ports that lead to only one device."""
        tops = self._below.get(None, ())
        nodes = grouped((self._first_device(top).numa_node, top) for top in tops)
        rows: list[Sequence[str | Entry]] = []
        for node in sorted(nodes, key=lambda one: (one is None, one or 0)):
            name = "no NUMA node known" if node is None else f"host:{node}"
            rows.append((Entry(name, tone="name"), "", "", ""))
            rows += self._rows(nodes[node], 1, ports)
        by = f"{self._hypervisor} shows this layout; only its host knows the real one."
        lines = [plain(by, "dim")] if self._hypervisor else []
        heads = ("", "name", "PCIe link", "device")
        return table("PCI devices", heads, rows)._replace(lines=lines)

    def details(self) -> Table:
        """Shows the PCI facts that `rblnBandwidthLatencyTest --test_env_info` also shows."""
        rows = []
        for one in self._functions:
            number, _ = self._subjects.get(one.address, (None, None))
            counts = (one.max_payload, one.max_read_request, one.iommu_group, number)
            now = _rate(one.link.speed, one.link.width)
            most = _rate(one.link.max_speed, one.link.max_width)
            ids = f"{_ids(one)} rev {_hex(one.revision, 2)}"
            rows.append((one.address, now, most, *counts, ids))
        heads: list[str | Column] = ["", *(Column(name, True) for name in _NUMBERS), "ID"]
        return table("PCI details", heads, rows)

    def _first_device(self, function: PciFunction) -> PciFunction:
        below = self._below.get(function.address)
        return self._first_device(below[0]) if below else function

    def _rows(
        self, functions: Sequence[PciFunction], depth: int, ports: bool
    ) -> Iterator[Sequence[str | Entry]]:
        for function in functions:
            below = self._below.get(function.address, ())
            is_shown = ports or len(below) != 1
            if is_shown:
                _, subject = self._subjects.get(function.address, (None, None))
                at = function.address if ports else self._tree.slot(function.address)
                yield (
                    Entry(function.address, depth=depth),
                    "" if below else self._name(function, subject),
                    link_entry(self._known[at].link),
                    (subject and subject.model) or function.name or f"Device {_ids(function)}",
                )
            yield from self._rows(below, depth + is_shown, ports)

    def _name(self, function: PciFunction, subject: Subject | None) -> str:
        own = [subject.label] if subject and subject.label != function.address else []
        kind = "display, " if function.display else ""
        named = "/".join(self._adapters.get(function.address) or own)
        return named or f"{kind}{function.driver or 'no driver'}"


def link_entry(link: PciLink) -> Entry:
    """Formats a link's state, `Gen 5 x16`. Adds its best state if the link is slower now."""
    now = shown_link(link.speed, link.width)
    most = shown_link(link.max_speed or link.speed, link.max_width or link.width)
    is_known = link.speed is not None and link.width is not None
    slower = Entry(f"{now or 'unknown'} of {most}", tone="warn" if is_known else "")
    return Entry(now) if now == most else slower


def shown_link(speed: float | None, width: float | None) -> str:
    """Formats `Gen 5 x16`, or an empty text if both speed (GT/s) and width are unknown."""
    if speed is None and width is None:
        return ""
    number = generation(speed or 0.0)
    known = f"{speed:g} GT/s" if speed is not None and number is None else f"Gen {number or '?'}"
    return f"{known} x{'?' if width is None else f'{width:g}'}"


def _rate(speed: float | None, width: int | None) -> str:
    return "" if speed is None or width is None else f"{link_rate(speed, width) / 1e9:.1f}"


def _ids(function: PciFunction) -> str:
    return f"{_hex(function.vendor, 4)}:{_hex(function.device, 4)}"


def _hex(number: int | None, digits: int) -> str:
    return "?" * digits if number is None else f"{number:0{digits}x}"


MOST = 16
"""With more devices, close ones are listed in groups."""
MOST_COMPARED = 256
"""The pairs of a thousand devices would take minutes."""
UNKNOWN, NETWORK = "?", "NET"
_CLASSES = {
    "PIX": "at most one PCIe switch between them",
    "PXB": "several PCIe switches, no host bridge",
    "PHB": "a PCIe host bridge",
    "NODE": "host bridges of one NUMA node",
    "SYS": "the link between NUMA nodes",
    NETWORK: "the network between hosts",
    UNKNOWN: "unknown: the bridges between them cannot be read, or are a hypervisor's",
}
"""From close to far; devices joined by links of a fabric are closer."""


def distance_blocks(machine: Machine, subjects: Sequence[Subject]) -> Iterator[Block]:
    """Shows the distances of devices: PCIe hops as Linux counts them, and classes of links."""
    count = len(subjects)
    if count > MOST_COMPARED:
        many = f": not shown, {count} devices have {count * (count - 1) // 2} pairs"
        yield Prose([line(Span("Distances", "strong"), many)])
    elif count > 1:
        pairs = _Pairs(machine, subjects)
        yield pairs.block("PCIe distance (hops, not counting links between sockets)", pairs.hops)
        yield pairs.block("Topology class", pairs.topology_class)


class _Pairs:
    def __init__(self, machine: Machine, subjects: Sequence[Subject]) -> None:
        self._subjects, self._wiring = subjects, machine.wiring
        self._labels = [one.label for one in subjects]
        # A virtual machine's bridges are made up and do not show where devices are.
        self._tree = PciTree(()) if machine.is_virtual else machine.pci_tree
        # With adapters, other hosts are beyond a network: to look for routes would take minutes.
        adapters = self._wiring.adapters
        self._hosts = {one.memory: one.node for one in machine.all_devices if adapters}
        links = [link for one in machine.known.accelerators for link in one.links]
        self._kinds = {_short(link.kind): link.kind for link in links}

    def hops(self, one: Subject, other: Subject) -> str:
        known = self._tree.distance(one.pci or "", other.pci or "")
        return UNKNOWN if known is None else str(known)

    def topology_class(self, one: Subject, other: Subject) -> str:
        """Returns `NV18` for 18 NVLinks (`NV18?` if ends are unknown), `NET`, or a PCI class."""
        ends = [subject.accelerator.memory for subject in (one, other) if subject.accelerator]
        if len({self._hosts.get(end) for end in ends}) > 1:
            return NETWORK
        crossed = list(self._wiring.bundles(*ends).values()) if len(ends) == 2 else []
        if count := min((bundle.count for bundle in crossed), default=0):
            unsure = UNKNOWN if self._wiring.is_unsure(*ends) else ""
            return f"{_short(crossed[0].kind)}{count}{unsure}"
        return self._tree.topo_class(one.pci or "", other.pci or "") or UNKNOWN

    def block(self, title: str, between: Callable[[Subject, Subject], str]) -> Block:
        rows = [
            [None if one is other else between(one, other) for other in self._subjects]
            for one in self._subjects
        ]
        order = sorted({text for row in rows for text in row if text}, key=_by_closeness)
        legend = "; ".join(self._legend(order))
        lines = [plain(legend, "dim")] if legend else []
        if len(order) == 1:
            of = f"any two of {spans(self._labels)}"
            pair = " and ".join(self._labels) if len(self._labels) == 2 else of
            equivalent = line(Span(title, "strong"), f": {order[0]} between {pair}")
            return Prose([equivalent, *lines])
        if len(rows) > MOST:
            counts = [sum(row[at:].count(text) for at, row in enumerate(rows)) for text in order]
            groups = [self._groups(rows, order[: at + 1]) for at in range(len(order))]
            heads = ("", Column("pairs", True), "groups")
            found = table(title, heads, zip(order, counts, groups, strict=True))
            return found._replace(lines=lines)
        depths = {text: 10 - 10 * at // (len(order) - 1) for at, text in enumerate(order)}
        shades = [[Shade(t, depth=depths[t]) if t else None for t in row] for row in rows]
        anchor, names = title.partition(" ")[0], _heads(self._labels)
        return Heat(anchor, plain(title, "strong"), "", "", self._labels, names, shades, lines)

    def _groups(self, rows: Sequence[Sequence[str | None]], near: Sequence[str]) -> str:
        sets = {tuple(at for at, text in enumerate(row) if text in (None, *near)) for row in rows}
        groups = sorted(one for one in sets if len(one) > 1) if UNKNOWN not in near else ()
        return " | ".join(spans(self._labels[at] for at in group) for group in groups)

    def _legend(self, order: Sequence[str]) -> Iterator[str]:
        links = [text for text in order if text not in _CLASSES]
        used = (short for short in self._kinds if any(text.startswith(short) for text in links))
        yield from (f"{short}#: # active {self._kinds[short]} links" for short in used)
        if any(text.endswith(UNKNOWN) for text in links):
            yield "#?: links whose other end is unknown"
        yield from (f"{text}: {_CLASSES[text]}" for text in order if text in _CLASSES)


def _by_closeness(text: str) -> tuple[int, int, str]:
    return [*_CLASSES].index(text) if text in _CLASSES else -1, len(text), text


def _short(kind: str) -> str:
    return "NV" if kind.lower().startswith("nvlink") else kind.upper()


def _heads(labels: Sequence[str]) -> list[str]:
    names = [label.partition("/")[0] for label in labels]
    stems, numbers = zip(*(name.rpartition(":")[::2] for name in names), strict=True)
    return [*numbers] if len({*stems}) == 1 and all(map(str.isdecimal, numbers)) else names


_IDLE = " now, can be "
_LOAD = "A link that is slower than it can be may just be idle. To see its speed under load: "
_ALL = "NCCL chooses the nearest itself; a process of one accelerator may be told."
_RUN = "linkgauge run --prefix host_to_device_memcpy_ce"


def nearest_blocks(evidence: Evidence) -> Iterator[Table]:
    """Shows what is nearest to each device. Shows nothing for a machine with several hosts."""
    machine = evidence.machine
    cpus = {one.memory for one in machine.all_devices if one.is_cpu or one.node}
    found = [one for one in subjects(machine) if one.label not in cpus]
    if not found or machine.ranks:
        return
    equivalent = grouped(
        ((*_link(evidence, one), _node(evidence, one)), one.label) for one in found
    )
    rows = [
        (spans(names), Entry(words, tone=tone), Entry(command, tone="strong" if node else "dim"))
        for (words, tone, (node, command)), names in equivalent.items()
    ]
    idle = any(_IDLE in words for words, *_ in equivalent)
    lines = [line(Span(_LOAD, "dim"), Span(_RUN, "strong"))] if idle else []
    heads = ("", "PCIe link", "to start programs near it")
    yield table("Accelerators", heads, rows)._replace(lines=lines)
    yield from _beside(evidence, found)


def _beside(evidence: Evidence, found: Sequence[Subject]) -> Iterator[Table]:
    near = grouped((nearest(evidence.machine, one.pci or ""), one.label) for one in found)
    rows = []
    for (how, adapters), names in near.items():
        chosen = f"UCX_NET_DEVICES={','.join(f'{one}:1' for one in adapters)}"
        setting = Entry(f"{chosen} NCCL_IB_HCA=={','.join(adapters)}", tone="strong")
        rows += [(spans(names), f"{spans(adapters)} ({how})", setting)] if how is not None else []
    if rows:
        lines = [line(Span(_ALL, "dim"))]
        yield table("Adapters", ("", "nearest", "to use them"), rows)._replace(lines=lines)


def _link(evidence: Evidence, one: Subject) -> tuple[str, Tone]:
    """Returns the state of a device's link, or of a slower link above it, with its tone."""
    machine, address = evidence.machine, one.pci or ""
    path = [machine.pci_tree.slot(address), *(f.address for f in machine.pci_line(address)[1:])]
    known = {hop.function.address: hop for hop in hops(evidence)}
    chains = [known[at] for at in dict.fromkeys(path) if at in known]
    if not chains or shown_link(chains[0].link.speed, chains[0].link.width) == "":
        assumed = machine.known.assumed_of("PCIe link", one.label)
        return (f"PCIe {assumed}, assumed" if assumed else "unknown"), "dim"
    own, *above = chains
    slow = next((hop for hop in above if hop.is_slow), None)
    if own.is_slow is False and slow is not None:
        words, _ = _state(slow)
        return f"{_now(own)}, but the switch above it: {words}", "warn"
    return _state(own)


def _state(hop: PcieChain) -> tuple[str, Tone]:
    now, best = _now(hop), f"Gen {shown_link(hop.speed, hop.width).partition('Gen ')[2]}"
    if hop.is_slow:
        return f"{now}, should be {best} (linkgauge doctor)", "warn"
    if hop.is_slow is None:
        return f"{now}{_IDLE}{best}", ""
    if not (hop.link.speed and hop.link.width):
        return f"{now}, as far as it can be read", "dim"
    if hop.both_speeds and hop.both_widths:
        return f"{now}, as it should be", "good"
    return f"{now}, the card's best; its slot cannot be read", ""


def _now(hop: PcieChain) -> str:
    speed, width = hop.loaded_speed or hop.link.speed, hop.loaded_width or hop.link.width
    return f"PCIe {shown_link(speed, width)}"


def _node(evidence: Evidence, one: Subject) -> tuple[int | None, str]:
    machine = evidence.machine
    function = machine.functions.get(one.pci or "")
    node = None if function is None else function.numa_node
    nodes = {node.index: node for node in machine.host.nodes}
    node = next(iter(nodes)) if node is None and len(nodes) == 1 else node
    if node is None:
        return None, "NUMA node unknown"
    cpus = f"--cpunodebind={node} " if node not in nodes or nodes[node].cpus else ""
    return node, f"numactl {cpus}--membind={node}"


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A device. `label` has its names in all backends (`cuda:0/opencl:1`), or its PCI address."""

    label: str
    model: str | None = None
    pci: str | None = None
    accelerator: Accelerator | None = None


def subjects(machine: Machine) -> tuple[Subject, ...]:
    """Returns each device once, first those that vendors' libraries report, then the others."""
    found: dict[str, Subject] = {}
    listed = (one for one in machine.all_devices if one.pci)
    every: tuple[Accelerator | Device, ...] = (*machine.known.accelerators, *listed)
    for one in every:
        reported = one if isinstance(one, Accelerator) else None
        named = Subject(label=one.memory, model=one.model, pci=one.pci, accelerator=reported)
        known = found.setdefault(one.pci or one.memory, named)
        if one.memory not in known.label.split("/"):
            label = f"{known.label}/{one.memory}"
            found[one.pci or one.memory] = msgspec.structs.replace(known, label=label)
    for at, name in ((one.address, one.name) for one in machine.known.pci if is_accelerator(one)):
        found.setdefault(at, Subject(label=at, model=name, pci=at))
    return tuple(found.values())
