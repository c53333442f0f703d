"""Shows distances between accelerators: hops in the PCI tree, and the classes of nvidia-smi
topo."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.pcie import PciTree
from linkgauge.model.names import spans
from linkgauge.report.blocks import Block, Column, Heat, Prose, Shade, Span, line, plain
from linkgauge.report.results import table
from linkgauge.report.words.subjects import Subject

MOST = 16
"""The most devices whose matrix is readable; with more, close devices are listed in groups."""
MOST_COMPARED = 256
"""The most devices whose pairs are compared; a thousand devices would take minutes."""
UNKNOWN, NETWORK = "?", "NET"
_CLASSES = {
    "PIX": "at most one PCIe switch between them",
    "PXB": "several PCIe switches, no host bridge",
    "PHB": "a PCIe host bridge",
    "NODE": "host bridges of one NUMA node",
    "SYS": "the link between NUMA nodes",
    NETWORK: "the network between hosts",
    UNKNOWN: "unknown: a hypervisor hides or emulates a bridge or a NUMA node",
}
"""The classes of distances, from close to far; devices joined by links of a fabric are closer."""


def distance_blocks(machine: Machine, subjects: Sequence[Subject]) -> Iterator[Block]:
    """Yields the hops between accelerators as Linux counts them for peer-to-peer traffic. Then
    yields the number of active fabric links of each pair. A pair without fabric links has its PCI
    topology class instead."""
    count = len(subjects)
    if count > MOST_COMPARED:
        many = f": not shown, {count} devices have {count * (count - 1) // 2} pairs"
        yield Prose([line(Span("Distances", "strong"), many)])
    elif count > 1:
        pairs = _Pairs(machine, subjects)
        yield pairs.block("PCIe distance (hops)", pairs.hops)
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
        """Returns the class of a pair: `NV18`, or a PCI class such as `PIX`. A question mark after
        `NV18` means that it is unknown where some links lead."""
        ends = [subject.accelerator.memory for subject in (one, other) if subject.accelerator]
        if len({self._hosts.get(end) for end in ends}) > 1:
            return NETWORK
        crossed = list(self._wiring.bundles(*ends).values()) if len(ends) == 2 else []
        if count := min((bundle.count for bundle in crossed), default=0):
            unsure = UNKNOWN if self._wiring.is_unsure(*ends) else ""
            return f"{_short(crossed[0].kind)}{count}{unsure}"
        return self._tree.topo_class(one.pci or "", other.pci or "") or UNKNOWN

    def block(self, title: str, between: Callable[[Subject, Subject], str]) -> Block:
        """Returns one line if all pairs have the same class, else a matrix. If there are too many
        devices for a matrix, they are shown as groups."""
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
            alike = line(Span(title, "strong"), f": {order[0]} between {pair}")
            return Prose([alike, *lines])
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
        """Returns a list of the groups of devices. All pairs within a group have the same class."""
        sets = {tuple(at for at, text in enumerate(row) if text in (None, *near)) for row in rows}
        groups = sorted(one for one in sets if len(one) > 1) if UNKNOWN not in near else ()
        return " | ".join(spans(self._labels[at] for at in group) for group in groups)

    def _legend(self, order: Sequence[str]) -> Iterator[str]:
        """Yields the meaning of each class that occurs."""
        links = [text for text in order if text not in _CLASSES]
        for short, kind in self._kinds.items():
            if any(text.startswith(short) for text in links):
                yield f"{short}#: # active {kind} links"
        if any(text.endswith(UNKNOWN) for text in links):
            yield "#?: links whose other end is unknown"
        yield from (f"{text}: {_CLASSES[text]}" for text in order if text in _CLASSES)


def _by_closeness(text: str) -> tuple[int, int, str]:
    return [*_CLASSES].index(text) if text in _CLASSES else -1, len(text), text


def _short(kind: str) -> str:
    """Returns the short name of a kind of link: NV for NVLink, as in nvidia-smi. Other kinds keep
    their name."""
    return "NV" if kind.lower().startswith("nvlink") else kind.upper()


def _heads(labels: Sequence[str]) -> list[str]:
    """Returns a column head for each device: its first name. If the names differ only in their
    number, the head is the number."""
    names = [label.partition("/")[0] for label in labels]
    stems, numbers = zip(*(name.rpartition(":")[::2] for name in names), strict=True)
    return [*numbers] if len({*stems}) == 1 and all(map(str.isdecimal, numbers)) else names
