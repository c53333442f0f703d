"""How far accelerators are apart: hops over the PCI tree, and the classes of nvidia-smi topo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from rich.text import Text

from linkgauge.model.inventory import Accelerator, Inventory
from linkgauge.model.pci_tree import PciTree

from .subjects import Subject, spans

MOST = 32
"""Devices whose matrix is still read; of more, those that are close are named in groups."""
UNKNOWN = "?"
SELF = "X"
_CLASSES = ("PIX", "PXB", "PHB", "NODE", "SYS", UNKNOWN)
_LEGEND = {
    "PIX": "at most one PCIe switch between them",
    "PXB": "several PCIe switches, no host bridge",
    "PHB": "a PCIe host bridge",
    "NODE": "host bridges of one NUMA node",
    "SYS": "the link between NUMA nodes",
    UNKNOWN: "not known: a bridge above or a NUMA node is hidden, or made up by a hypervisor",
}


class Matrix(msgspec.Struct, frozen=True):
    """A text for each pair of accelerators, and the texts from close to far."""

    title: str
    labels: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    order: tuple[str, ...]


def distances(inventory: Inventory, subjects: Sequence[Subject]) -> Matrix:
    """Hops as Linux counts them for peer-to-peer traffic; the same device is 0."""
    tree = _tree(inventory)

    def hops(one: Subject, other: Subject) -> str:
        if one is other:
            return "0"
        known = tree.distance(one.pci, other.pci) if one.pci and other.pci else None
        return UNKNOWN if known is None else str(known)

    return _matrix("PCIe distance (hops)", subjects, hops, lambda text: (len(text), text))


def classes(inventory: Inventory, subjects: Sequence[Subject]) -> Matrix:
    """The fabric's links where some are active between two, else what PCI has between them."""
    tree = _tree(inventory)
    fabric = _Fabric([one.told for one in subjects if one.told])

    def between(one: Subject, other: Subject) -> str:
        if one is other:
            return SELF
        links = fabric.between(one.told, other.told)
        placed = tree.topo_class(one.pci, other.pci) if one.pci and other.pci else None
        return links or placed or UNKNOWN

    return _matrix("Topology class", subjects, between, _by_class)


def _tree(inventory: Inventory) -> PciTree:
    """Empty in a virtual machine: the bridges there are made up, and tell nothing of where the
    devices are."""
    return PciTree(() if inventory.host.hypervisor else inventory.pci)


def _by_class(text: str) -> tuple[int, str]:
    return (_CLASSES.index(text) + 1, "") if text in _CLASSES else (0, text)


def _matrix(
    title: str,
    subjects: Sequence[Subject],
    text: Callable[[Subject, Subject], str],
    key: Callable[[str], tuple[int, str]],
) -> Matrix:
    rows = tuple(tuple(text(one, other) for other in subjects) for one in subjects)
    found = {
        text
        for number, row in enumerate(rows)
        for column, text in enumerate(row)
        if number != column
    }
    order = sorted(found - {UNKNOWN}, key=key) + [UNKNOWN] * (UNKNOWN in found)
    return Matrix(title, tuple(one.label for one in subjects), rows, tuple(order))


class _Fabric:
    """Active links by device and where they lead, each with its kind."""

    def __init__(self, accelerators: Sequence[Accelerator]) -> None:
        self._devices = {one.memory for one in accelerators}
        self._active: dict[str, dict[str | None, list[str]]] = {}
        for one in accelerators:
            ends = self._active.setdefault(one.memory, {})
            for link in one.links:
                if link.active is not False:
                    ends.setdefault(link.remote, []).append(short_kind(link.kind))

    def between(self, one: Accelerator | None, other: Accelerator | None) -> str | None:
        """`NV18`, with a question mark where nothing tells where links lead; None without any."""
        if one is None or other is None:
            return None
        ours, theirs = self._active[one.memory], self._active[other.memory]
        direct = [links for links in (ours.get(other.memory), theirs.get(one.memory)) if links]
        if direct:
            return f"{direct[0][0]}{min(map(len, direct))}"
        over = [name for name in ours if name in theirs and not self._is_memory(name)]
        if not over:
            return None
        links = [kind for name in over for kind in ours[name]]
        count = min(len(links), sum(len(theirs[name]) for name in over))
        return f"{links[0]}{count}{UNKNOWN if over == [None] else ''}"

    def _is_memory(self, name: str | None) -> bool:
        return name is not None and (name in self._devices or name.startswith("host:"))


def short_kind(kind: str) -> str:
    """NV of NVLink, as nvidia-smi has it; others' by their name."""
    return "NV" if kind.lower().startswith("nvlink") else kind.upper()


def matrix_lines(matrix: Matrix) -> Iterator[Text]:
    """The matrix, or for many devices the groups that its figures make."""
    if len(matrix.labels) > MOST:
        yield from _groups(matrix)
        return
    yield Text(matrix.title, "bold")
    first = max(map(len, matrix.labels))
    width = max(len(text) for row in (*matrix.rows, matrix.labels) for text in row) + 2
    yield Text(" " * first + "".join(f"{label:>{width}}" for label in matrix.labels), "cyan")
    for label, row in zip(matrix.labels, matrix.rows, strict=True):
        line = Text(f"{label:<{first}}", "cyan")
        for text in row:
            line.append(f"{text:>{width}}", "default")
        yield line


def _groups(matrix: Matrix) -> Iterator[Text]:
    """Who are this close to one another, from close to far; each figure with its pairs."""
    yield Text(f"{matrix.title}, {len(matrix.labels)} devices by groups", "bold")
    counts = Counter(text for number, row in enumerate(matrix.rows) for text in row[number + 1 :])
    joined = _Joined(len(matrix.labels))
    for text in matrix.order:
        if text != UNKNOWN:
            for number, row in enumerate(matrix.rows):
                for column in range(number + 1, len(row)):
                    if row[column] == text:
                        joined.join(number, column)
        groups = [
            spans(matrix.labels[place] for place in group)
            for group in joined.groups()
            if len(group) > 1
        ]
        pairs = f"{counts[text]} pair{'' if counts[text] == 1 else 's'}"
        members = "" if text == UNKNOWN else ": " + " | ".join(groups)
        yield Text.assemble((f"{text:>6}", "cyan"), f"  {pairs}{members}")


class _Joined:
    """Places that have been joined, directly or over others."""

    def __init__(self, count: int) -> None:
        self._first = list(range(count))

    def _of(self, place: int) -> int:
        while self._first[place] != place:
            place = self._first[place]
        return place

    def join(self, one: int, other: int) -> None:
        low, high = sorted((self._of(one), self._of(other)))
        self._first[high] = low

    def groups(self) -> list[list[int]]:
        found: dict[int, list[int]] = {}
        for place in range(len(self._first)):
            found.setdefault(self._of(place), []).append(place)
        return list(found.values())


def legend(matrix: Matrix, kinds: Mapping[str, str]) -> Text:
    """What the classes that occur mean. `kinds`: names of fabrics by their short ones."""
    told = [f"{short}# {name} links" for short, name in kinds.items() if _has(matrix, short)]
    if any(text.endswith(UNKNOWN) and text != UNKNOWN for text in matrix.order):
        told.append("#? links that nothing tells where they lead")
    told += [f"{text} {_LEGEND[text]}" for text in matrix.order if text in _LEGEND]
    return Text("; ".join(told), "dim")


def _has(matrix: Matrix, short: str) -> bool:
    return any(text.startswith(short) and text not in _LEGEND for text in matrix.order)
