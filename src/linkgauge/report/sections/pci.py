"""Shows the PCI devices and how they are connected: a tree for each NUMA node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkgauge.model.hardware.inventory import Inventory, PciFunction, PciLink
from linkgauge.model.hardware.pcie import PciTree, generation
from linkgauge.report.blocks import Column, Entry, Table, plain
from linkgauge.report.results import table
from linkgauge.report.words.subjects import Subject

_NUMBERS = ("GB/s", "max GB/s", "MaxPayload", "MaxReadReq", "IOMMU", "NODE")


class PciOutline:
    """A table of the PCI functions, each below its parent. Devices have the names that the rest of
    the report uses."""

    def __init__(self, inventory: Inventory, subjects: Sequence[Subject]) -> None:
        self._tree = PciTree(inventory.pci)
        self._known = known = self._tree.functions
        self._functions, self._hypervisor = inventory.pci, inventory.host.hypervisor
        self._below: dict[str | None, list[PciFunction]] = {}
        for function in inventory.pci:
            parent = function.parent if function.parent in known else None
            self._below.setdefault(parent, []).append(function)
        self._subjects = {one.pci: (number, one) for number, one in enumerate(subjects)}
        self._adapters: dict[str | None, list[str]] = {}
        for adapter in inventory.adapters:
            self._adapters.setdefault(adapter.pci, []).append(adapter.name)

    def tree(self, *, ports: bool) -> Table:
        """Returns a tree of switches and devices. With `ports`, the tree also has ports that lead
        to only one device."""
        nodes: dict[int | None, list[PciFunction]] = {}
        for top in self._below.get(None, ()):
            nodes.setdefault(self._first_device(top).numa_node, []).append(top)
        rows: list[Sequence[str | Entry]] = []
        for node in sorted(nodes, key=lambda one: (one is None, one or 0)):
            name = "no NUMA node known" if node is None else f"host:{node}"
            rows.append((Entry(name, tone="name"), "", "", ""))
            rows += self._rows(nodes[node], 1, ports)
        by = f"{self._hypervisor} shows them so; where they really are, only its host knows."
        lines = [plain(by, "dim")] if self._hypervisor else []
        heads = ("", "name", "PCIe link", "device")
        return table("PCI devices", heads, rows)._replace(lines=lines)

    def details(self) -> Table:
        """Returns a table of the PCI facts that `rblnBandwidthLatencyTest --test_env_info`
        shows."""
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
            if len(below) == 1 and not ports:
                yield from self._rows(below, depth, ports)
                continue
            _, subject = self._subjects.get(function.address, (None, None))
            at = function.address if ports else self._tree.slot(function.address)
            yield (
                Entry(function.address, depth=depth),
                "" if below else self._name(function, subject),
                link_entry(self._known[at].link),
                (subject and subject.model) or function.name or f"Device {_ids(function)}",
            )
            yield from self._rows(below, depth + 1, ports)

    def _name(self, function: PciFunction, subject: Subject | None) -> str:
        """Returns the name by which the rest of the report calls a function. If it has none,
        returns the name of its driver."""
        own = [subject.label] if subject and subject.label != function.address else []
        kind = "display, " if function.display else ""
        named = "/".join(self._adapters.get(function.address) or own)
        return named or f"{kind}{function.driver or 'no driver'}"


def link_entry(link: PciLink) -> Entry:
    """Returns a link's state, `Gen 5 x16`, and its best state if it runs slower."""
    now = shown_link(link.speed, link.width)
    most = shown_link(link.max_speed or link.speed, link.max_width or link.width)
    is_known = link.speed is not None and link.width is not None
    slower = Entry(f"{now or 'unknown'} of {most}", tone="warn" if is_known else "")
    return Entry(now) if now == most else slower


def shown_link(speed: float | None, width: float | None) -> str:
    """Returns a link as people name it: `Gen 5 x16`, or nothing if nothing of it is known."""
    if speed is None and width is None:
        return ""
    known = "Gen ?" if speed is None else f"{speed:g} GT/s"
    number = None if speed is None else generation(speed)
    return (
        f"{known if number is None else f'Gen {number}'} x{'?' if width is None else f'{width:g}'}"
    )


def _rate(speed: float | None, width: int | None) -> str:
    """Returns the bandwidth of all lanes in GB/s before line coding. Vendors call this a link's
    full bandwidth."""
    return "" if speed is None or width is None else f"{speed * width / 8:.1f}"


def _ids(function: PciFunction) -> str:
    return f"{_hex(function.vendor, 4)}:{_hex(function.device, 4)}"


def _hex(number: int | None, digits: int) -> str:
    return "?" * digits if number is None else f"{number:0{digits}x}"
