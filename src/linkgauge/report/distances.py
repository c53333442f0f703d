"""How far apart accelerators are: hops in the PCI tree, and the classes of nvidia-smi topo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from linkgauge.model.inventory import Accelerator
from linkgauge.model.machine import Machine
from linkgauge.model.pci_tree import PciTree
from linkgauge.model.wiring import Wiring

from .matrix import grid
from .subjects import Subject, spans
from .wrapping import Hanging

MOST = 32
"""Most devices whose matrix is readable; if there are more, close ones are listed in groups."""
MOST_COMPARED = 256
"""Most devices whose pairs are looked at: of a thousand that takes minutes."""
UNKNOWN = "?"
_INDENT = 8
"""Columns of a group's figure."""
SELF = "X"
_CLASSES = ("PIX", "PXB", "PHB", "NODE", "SYS", UNKNOWN)
_LEGEND = {
    "PIX": "at most one PCIe switch between them",
    "PXB": "several PCIe switches, no host bridge",
    "PHB": "a PCIe host bridge",
    "NODE": "host bridges of one NUMA node",
    "SYS": "the link between NUMA nodes",
    UNKNOWN: "unknown: a hypervisor hides or emulates a bridge or a NUMA node",
}


class DistanceMatrix(msgspec.Struct, frozen=True):
    """A text for each pair of accelerators, and the texts from close to far."""

    title: str
    labels: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    order: tuple[str, ...]


def distances(machine: Machine, subjects: Sequence[Subject]) -> DistanceMatrix:
    """Hops as Linux counts them for peer-to-peer traffic; the same device is 0."""
    tree = _tree(machine)

    def hops(one: Subject, other: Subject) -> str:
        known = tree.distance(one.pci or "", other.pci or "")
        return UNKNOWN if known is None else str(known)

    return _matrix("PCIe distance (hops)", "0", subjects, hops, lambda text: (len(text), text))


def classes(machine: Machine, subjects: Sequence[Subject]) -> DistanceMatrix:
    """The active fabric links between two if there are any, else the PCI topology class."""
    tree, wiring = _tree(machine), machine.wiring

    def between(one: Subject, other: Subject) -> str:
        links = _links(wiring, one.accelerator, other.accelerator)
        return links or tree.topo_class(one.pci or "", other.pci or "") or UNKNOWN

    return _matrix("Topology class", SELF, subjects, between, _by_class)


def _tree(machine: Machine) -> PciTree:
    """Empty in a virtual machine: its bridges are made up and do not show where devices are."""
    return PciTree(()) if machine.is_virtual else machine.pci_tree


def _links(wiring: Wiring, one: Accelerator | None, other: Accelerator | None) -> str | None:
    """`NV18`, with a question mark if it is unknown where links lead; None without any."""
    if one is None or other is None:
        return None
    crossed = list(wiring.bundles(one.memory, other.memory).values())
    count = min((bundle.count for bundle in crossed), default=0)
    unsure = wiring.is_unsure(one.memory, other.memory)
    return f"{short_kind(crossed[0].kind)}{count}{UNKNOWN if unsure else ''}" if count else None


def _by_class(text: str) -> tuple[int, str]:
    return (_CLASSES.index(text) + 1, "") if text in _CLASSES else (0, text)


def _matrix(
    title: str,
    same: str,
    subjects: Sequence[Subject],
    text: Callable[[Subject, Subject], str],
    key: Callable[[str], tuple[int, str]],
) -> DistanceMatrix:
    rows = tuple(
        tuple(same if one is other else text(one, other) for other in subjects) for one in subjects
    )
    found = {text for at, row in enumerate(rows) for text in (*row[:at], *row[at + 1 :])}
    order = sorted(found - {UNKNOWN}, key=key) + [UNKNOWN] * (UNKNOWN in found)
    return DistanceMatrix(title, tuple(one.label for one in subjects), rows, tuple(order))


def short_kind(kind: str) -> str:
    """NV for NVLink, as in nvidia-smi; others by their name."""
    return "NV" if kind.lower().startswith("nvlink") else kind.upper()


class DistanceTable:
    """The matrix where it fits, else the groups of devices close to one another; one line where all
    pairs are alike."""

    def __init__(self, matrix: DistanceMatrix) -> None:
        self.matrix = matrix

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in matrix_lines(self.matrix, options.max_width):
            yield Hanging(line, _INDENT)


def matrix_lines(matrix: DistanceMatrix, width: int) -> Iterator[Text]:
    """What a DistanceTable shows in `width` columns."""
    labels, columns = matrix.labels, _headings(matrix.labels)
    first = max(map(len, labels))
    entry = max(len(text) for row in (*matrix.rows, columns) for text in row) + 2
    if len(matrix.order) == 1:
        pair = " and ".join(labels) if len(labels) == 2 else f"any two of {spans(labels)}"
        yield Text.assemble((matrix.title, "bold"), f": {matrix.order[0]} between {pair}")
    elif len(labels) > MOST or first + entry * len(labels) > width:
        yield from _groups(matrix)
    else:
        yield Text(matrix.title, "bold")
        rows = ([(text, "default") for text in row] for row in matrix.rows)
        yield from grid([label.ljust(first) for label in labels], columns, entry, rows)


def _headings(labels: Sequence[str]) -> list[str]:
    """The first name of each device, or its number if all names but for it are the same."""
    names = [label.partition("/")[0] for label in labels]
    stems = {name.rpartition(":")[0] for name in names}
    numbers = [name.rpartition(":")[2] for name in names]
    return numbers if len(stems) == 1 and all(map(str.isdecimal, numbers)) else names


def _groups(matrix: DistanceMatrix) -> Iterator[Text]:
    """Groups of devices this close to one another, from close to far; each figure with its
    pairs."""
    yield Text(f"{matrix.title}, {len(matrix.labels)} devices by groups", "bold")
    counts = Counter(text for number, row in enumerate(matrix.rows) for text in row[number + 1 :])
    joined = [{number} for number in range(len(matrix.labels))]
    for text in matrix.order:
        for number, row in enumerate(matrix.rows) if text != UNKNOWN else ():
            near = {column for column, found in enumerate(row) if found == text} | {number}
            touched = [group for group in joined if group & near]
            joined = [group for group in joined if not group & near]
            joined.append(set().union(*touched))
        groups = [
            spans(matrix.labels[place] for place in sorted(group))
            for group in sorted(joined, key=min)
            if len(group) > 1
        ]
        pairs = f"{counts[text]} pair{'' if counts[text] == 1 else 's'}"
        members = "" if text == UNKNOWN else ": " + " | ".join(groups)
        yield Text.assemble((f"{text:>6}", "cyan"), f"  {pairs}{members}")


def legend(matrix: DistanceMatrix, kinds: Mapping[str, str]) -> Text:
    """What the classes that occur mean. `kinds`: names of fabrics by their short names."""
    parts = [
        f"{short}#: # active {name} links" for short, name in kinds.items() if _has(matrix, short)
    ]
    if any(text.endswith(UNKNOWN) and text != UNKNOWN for text in matrix.order):
        parts.append("#?: links whose other end is unknown")
    parts += [f"{text}: {_LEGEND[text]}" for text in matrix.order if text in _LEGEND]
    return Text("; ".join(parts), "dim")


def _has(matrix: DistanceMatrix, short: str) -> bool:
    return any(text.startswith(short) and text not in _LEGEND for text in matrix.order)
