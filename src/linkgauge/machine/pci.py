"""Reads accelerators, RDMA adapters, and all bridges above them, from sysfs attributes
(Documentation/ABI/testing/sysfs-bus-pci) or else from configuration space."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec

from linkgauge.model.hardware.gaps import NO_NAMES, NONE_LISTED, NOT_GROUPED, Gap
from linkgauge.model.hardware.inventory import PciFunction, PciLink
from linkgauge.model.hardware.pcie import SPEEDS, WIDTHS

from .network import has_class, is_rdma
from .pci_config import decode, read_names
from .tree import ADDRESS, PCI, Root, hexadecimal

_ADDRESS = re.compile(ADDRESS)
_HOST_BRIDGE = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
_DISPLAY, _COPROCESSOR, _ACCELERATOR = 0x03, 0x0B, 0x12
_VGA = 0x0300
_BMC_VENDORS = (0x1A03, 0x102B)
"""ASPEED and Matrox. They make the VGA of baseboard management controllers."""
_ACCELERATOR_VENDORS = (0x10DE, 0x1002, 0x8086)
"""NVIDIA, AMD and Intel. Their devices may compute even if they also show the console."""
_ASLEEP = ("D3hot", "D3cold")
_SEVERITIES = ("correctable", "nonfatal", "fatal")

Value = TypeVar("Value")


class _Location(msgspec.Struct, frozen=True):
    folder: str
    parent: str | None
    why: str | None = None


def read_pci(root: Root) -> tuple[tuple[PciFunction, ...], tuple[Gap, ...]]:
    """Returns the PCI functions, ordered by address, and the facts that could not be read."""
    functions, unread = read_functions(root)
    numbers = [(function.vendor, function.device) for function in functions]
    names = read_names(root, [(v, d) for v, d in numbers if v is not None and d is not None])
    if names is None and functions:
        unread.append(NO_NAMES)
    known: dict[tuple[int | None, int | None], str] = dict((names or {}).items())
    named = (
        msgspec.structs.replace(function, name=known.get(pair))
        for function, pair in zip(functions, numbers, strict=True)
    )
    return tuple(named), tuple(unread)


def read_functions(root: Root) -> tuple[list[PciFunction], list[Gap]]:
    """Returns the same as `read_pci`, but without names, which take long to read."""
    seats, unread = _find(root)
    ordered = sorted(seats.items(), key=lambda item: _order(item[0]))
    return [_FunctionReader(root, address, seat).read() for address, seat in ordered], unread


def _find(root: Root) -> tuple[dict[str, _Location], list[Gap]]:
    seats: dict[str, _Location] = {}
    unread: list[Gap] = []
    names = root.names(PCI)
    if not names:
        unread.append(NONE_LISTED)
    for name in sorted(names):
        folder = root.resolve(f"{PCI}/{name}")
        if not _ADDRESS.fullmatch(name):
            unread.append(Gap("not a PCI address", f"PCI function {name!r}"))
        elif folder is None:
            unread.append(Gap("its link leads nowhere below the root", f"PCI function {name}"))
        elif (code := _class_code(root, folder)) is None:
            unread.append(Gap("neither class nor config is readable", f"PCI function {name}"))
        elif _counts(root, folder, code):
            for address, seat in _line(name, folder).items():
                seats.setdefault(address, seat)
    return seats, unread


def _class_code(root: Root, folder: str) -> int | None:
    code = hexadecimal(root.line(f"{folder}/class"), 6)
    return decode(root.content(f"{folder}/config")).class_code if code is None else code


def groups_of_devices(root: Root) -> set[str]:
    """Returns the names of the IOMMU groups that contain accelerators or RDMA adapters."""
    found = set()
    for name in root.names(PCI):
        folder = root.resolve(f"{PCI}/{name}")
        code = _class_code(root, folder) if folder else None
        if folder and code is not None and _counts(root, folder, code):
            found.add(root.link_name(f"{folder}/iommu_group"))
    return {group for group in found if group}


def _counts(root: Root, folder: str, code: int) -> bool:
    if code >> 16 in (_DISPLAY, _COPROCESSOR, _ACCELERATOR):
        return True
    shown = "infiniband" in root.names(folder)
    if shown or has_class(root):
        return shown
    vendor = hexadecimal(root.line(f"{folder}/vendor"), 4)
    return is_rdma(code, vendor or decode(root.content(f"{folder}/config")).vendor)


def _line(address: str, folder: str) -> dict[str, _Location]:
    """Returns a function's location and those of the bridges above, by address, topmost first."""
    steps = folder.split("/")
    first = len(steps)
    while first and _ADDRESS.fullmatch(steps[first - 1]):
        first -= 1
    line = steps[first:]
    if line[-1:] != [address] or len(set(line)) < len(line):
        return {address: _Location(folder, None, f"its link leads to {folder!r}")}
    if not (first and _HOST_BRIDGE.fullmatch(steps[first - 1])):
        why = "its path has no host bridge (copied without its symbolic links?)"
        return {address: _Location(folder, None, why)}
    parents: list[str | None] = [None, *line]
    return {
        name: _Location("/".join(steps[: first + number + 1]), parents[number])
        for number, name in enumerate(line)
    }


def lineage(address: str, folder: str) -> tuple[str, ...]:
    """Returns the addresses from the topmost bridge down to the function; empty if unknown."""
    line = _line(address, folder)
    return () if line[address].why else tuple(line)


def _order(address: str) -> tuple[int, ...]:
    return tuple(int(part, 16) for part in re.split("[:.]", address))


class _FunctionReader:
    def __init__(self, root: Root, address: str, seat: _Location) -> None:
        self._root, self._address, self._seat = root, address, seat
        self._config = decode(root.content(f"{seat.folder}/config"))
        physical = root.resolve(f"{seat.folder}/physfn")
        # A virtual function has the link and the packet sizes of its physical one.
        self._wire_folder = physical or seat.folder
        self._wire = decode(root.content(f"{physical}/config")) if physical else self._config
        self._power = root.line(f"{self._wire_folder}/power_state")
        self._fields: dict[str, list[str]] = {}

    def read(self) -> PciFunction:
        config, wire, seat = self._config, self._wire, self._seat
        vendor = self._attribute("vendor", partial(hexadecimal, digits=4), config.vendor)
        code = self._attribute(
            "class", partial(hexadecimal, digits=6), config.class_code, field="class_code"
        )
        packets = partial(self._register, why=config.why)
        parent = self._register("parent", seat.parent, seat.why)
        return PciFunction(
            address=self._address,
            vendor=vendor,
            device=self._attribute("device", partial(hexadecimal, digits=4), config.device),
            class_code=code,
            revision=self._attribute("revision", partial(hexadecimal, digits=2), config.revision),
            driver=self._root.link_name(f"{seat.folder}/driver"),
            numa_node=self._numa_node(),
            iommu_group=self._iommu_group(),
            port=self._register("port", config.port, config.why),
            parent=parent,
            link=self._link(wire.link),
            max_payload=packets("max_payload", wire.max_payload),
            max_payload_supported=packets("max_payload_supported", wire.max_payload_supported),
            max_read_request=packets("max_read_request", wire.max_read_request),
            relaxed_ordering=wire.relaxed_ordering,
            aspm=wire.aspm,
            acs=self._register("acs", config.acs, config.why_extended),
            errors=self._errors(),
            display=self._is_display(vendor, code),
            silent=config.silent and self._power not in _ASLEEP,
            unknown=tuple(Gap(why, *fields) for why, fields in self._fields.items()),
        )

    def _text(self, name: str, folder: str | None = None) -> str | None:
        return self._root.text(f"{folder or self._seat.folder}/{name}")

    def _unknown(self, field: str, why: str) -> None:
        self._fields.setdefault(why, []).append(field)

    def _attribute(
        self,
        name: str,
        parse: Callable[[str], Value | None],
        register: Value | None = None,
        *,
        field: str | None = None,
        folder: str | None = None,
    ) -> Value | None:
        text = self._text(name, folder)
        value = None if text is None else parse(text.strip())
        if value is not None or register is not None:
            return register if value is None else value
        found = "sysfs has no such file" if text is None else f"{name} is {_short(text)}"
        self._unknown(field or name, f"{found}, and {self._config.why}")
        return None

    def _register(self, field: str, value: Value | None, why: str | None) -> Value | None:
        if value is None and why:
            self._unknown(field, why)
        return value

    def _link(self, register: PciLink) -> PciLink:
        """Returns sysfs's link, else `register`; without speed and width if the function sleeps."""
        link = self._as_read(register)
        if self._power not in _ASLEEP:
            return link
        self._unknown("link.speed", f"it sleeps (power_state is {self._power}): its link rests")
        return msgspec.structs.replace(link, speed=None, width=None)

    def _as_read(self, register: PciLink) -> PciLink:
        read = partial(self._attribute, folder=self._wire_folder)
        return PciLink(
            speed=read("current_link_speed", gigatransfers, register.speed, field="link.speed"),
            width=read("current_link_width", lanes, register.width, field="link.width"),
            max_speed=read(
                "max_link_speed", gigatransfers, register.max_speed, field="link.max_speed"
            ),
            max_width=read("max_link_width", lanes, register.max_width, field="link.max_width"),
            target=self._register("link.target", register.target, self._config.why),
        )

    def _numa_node(self) -> int | None:
        text = self._text("numa_node")
        if text is not None and re.fullmatch("[0-9]{1,6}", text):
            return int(text)
        if text == "-1":
            why = "numa_node is -1: the firmware names none"
        else:
            why = "sysfs has no such file" if text is None else f"numa_node is {_short(text)}"
        self._unknown("numa_node", why)
        return None

    def _iommu_group(self) -> int | None:
        name = self._root.link_name(f"{self._seat.folder}/iommu_group")
        if name is not None and re.fullmatch("[0-9]{1,9}", name):
            return int(name)
        why = NOT_GROUPED if name is None else f"its link leads to {_short(name)}"
        self._unknown("iommu_group", why)
        return None

    def _errors(self) -> dict[str, int] | None:
        texts = {severity: self._text(f"aer_dev_{severity}") for severity in _SEVERITIES}
        shown = {severity: _total(text) for severity, text in texts.items() if text is not None}
        for severity, total in shown.items():
            if total is None:
                self._unknown("errors", f"aer_dev_{severity} is garbled")
        if not shown:
            self._unknown("errors", self._why_no_counters())
        return {severity: total for severity, total in shown.items() if total is not None} or None

    def _why_no_counters(self) -> str:
        if self._config.aer:
            return "the function has AER, but the kernel counts no errors (firmware handles them?)"
        if self._config.aer is None:
            return "sysfs has no aer_dev_* counters"
        return "the function has no AER capability"

    def _is_display(self, vendor: int | None, code: int | None) -> bool:
        if code is None or code >> 16 != _DISPLAY:
            return False
        console = code >> 8 == _VGA and self._text("boot_vga") == "1"
        return vendor in _BMC_VENDORS or (console and vendor not in _ACCELERATOR_VENDORS)


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


def gigatransfers(text: str) -> float | None:
    """Returns the GT/s in a text such as `8.0 GT/s PCIe`; None for another text."""
    match = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,3})?) ?GT/s(?: PCIe)?", text)
    return float(match[1]) if match and float(match[1]) in SPEEDS else None


def lanes(text: str) -> int | None:
    """Returns the number of lanes; None unless PCIe has this width (0, 63 and 255 mean unknown)."""
    return int(text) if re.fullmatch("[0-9]{1,3}", text) and int(text) in WIDTHS else None


def _total(text: str) -> int | None:
    counts: dict[str, int] = {}
    for line in text.splitlines():
        match = re.fullmatch(r"(\S+) +([0-9]{1,20})", line.strip())
        if not match:
            return None
        counts[match[1]] = int(match[2])
    totals = [count for name, count in counts.items() if name.startswith("TOTAL_ERR_")]
    if totals:
        return totals[0]
    return sum(counts.values()) if counts else None
