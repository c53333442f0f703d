"""Records of /dev/kmsg, and which of them concern what a run measures.

The format is that of the kernel's Documentation/ABI/testing/dev-kmsg. What drivers write is not an
interface: a line that no pattern knows is left out, and nothing is concluded from its absence.
"""

from __future__ import annotations

import re

import msgspec

from linkgauge.model.kernel_log import Gravity, LogKind, LogLine
from linkgauge.model.machine import Machine

MOST_CHARACTERS = 1000
"""Of a kept line; the kernel cuts its own off at about as many."""
_BRIDGE = 0x06
"""The PCI base class of bridges, whose lines are recognized by their kind."""


class LogRecord(msgspec.Struct, frozen=True):
    """`level` is 0 (emergency) to 7 (debug), `number` counts records since the kernel's start and
    `seconds` by its own clock; `properties` name the device (SUBSYSTEM, DEVICE)."""

    level: int
    number: int
    seconds: float
    text: str
    properties: dict[str, str] = {}


_HEAD = re.compile(rb"([0-9]{1,9}),([0-9]{1,20}),([0-9]{1,20})[^;\n]*;")
_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})")


def parse_record(data: bytes) -> LogRecord | None:
    """One record as a read of /dev/kmsg returns it; None if it is none."""
    head = _HEAD.match(data)
    if head is None:
        return None
    message, *continued = data[head.end() :].split(b"\n")
    pairs = (line[1:].partition(b"=") for line in continued if line[:1] == b" " and b"=" in line)
    return LogRecord(
        level=int(head[1]) & 7,  # the bits above are the facility
        number=int(head[2]),
        seconds=int(head[3]) / 1e6,
        text=_text(message),
        properties={_text(name): _text(value) for name, _, value in pairs},
    )


def _text(escaped: bytes) -> str:
    r"""The kernel writes `\xNN` for each byte that is not printable ASCII, and for a backslash."""
    return _ESCAPE.sub(lambda byte: bytes([int(byte[1], 16)]), escaped).decode(errors="replace")


class Interest(msgspec.Struct, frozen=True):
    """The drivers and addresses of a machine's accelerators and adapters."""

    drivers: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()


def interest_of(machine: Machine) -> Interest:
    inventory = machine.inventory
    functions = [f for f in inventory.pci if not f.display] if inventory else []
    carrying = [f for f in functions if f.class_code is None or f.class_code >> 16 != _BRIDGE]
    devices = [device.pci for found in machine.devices.values() for device in found]
    return Interest(
        drivers=frozenset(f.driver for f in carrying if f.driver),
        addresses=frozenset({*(f.address for f in carrying), *filter(None, devices)}),
    )


_KINDS: tuple[tuple[LogKind, re.Pattern[str]], ...] = (
    ("xid", re.compile(r"\bNVRM: Xid \(")),
    ("sxid", re.compile(r"\bSXid \(")),
    ("hotplug", re.compile(r"\bpciehp\b")),
    (
        "aer",
        re.compile(
            r"\bAER: |\bPCIe Bus Error: |\bDPC: |\berror status/mask="
            r"|^\S+ \S+:\s+\[ ?[0-9]+\] [A-Z]"
        ),
    ),
    (
        "hardware",
        re.compile(r"\[Hardware Error\]|^EDAC\b|^mce: (?!.*temperature)|\bMemory failure: "),
    ),
    ("iommu", re.compile(r"^DMAR(?:-IR)?: |\bAMD-Vi: |^arm-smmu")),
    ("out-of-memory", re.compile(r"\b[Oo]ut of memory: Kill|^oom-kill:|\binvoked oom-killer\b")),
    ("driver", re.compile(r"^NVRM: |^nvidia\b|\bamdgpu\b|^pcieport |^(?:rbln|rebellions)")),
)
"""In order of priority."""
_CODE = re.compile(r"\bS?Xid \([^)]*\): ?([0-9]{1,6})\b")
_STATED: tuple[tuple[Gravity, re.Pattern[str]], ...] = (
    ("uncorrected", re.compile(r"\bnon-?fatal\b|\brecoverable\b", re.IGNORECASE)),
    ("fatal", re.compile(r"\bfatal\b", re.IGNORECASE)),
    ("uncorrected", re.compile(r"\buncorrect(?:ed|able)\b|\b[0-9]+ UE\b", re.IGNORECASE)),
    ("corrected", re.compile(r"\bcorrect(?:ed|able)\b|\b[0-9]+ CE\b", re.IGNORECASE)),
)
_FULL = re.compile(
    r"(?<![\w.:])(PCI:|Xid \()?([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-7]))?(?!:?\w)",
    re.IGNORECASE,
)
"""With its domain; without its function only as NVIDIA's driver writes it."""
_SHORT = re.compile(r"\bdevice[ =]\[?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\b", re.IGNORECASE)


def recognize(record: LogRecord, interest: Interest, seconds: float) -> LogLine | None:
    """The record as a line that is kept, at this time; None if it concerns nothing that is
    measured."""
    text = record.text
    kind = next((kind for kind, pattern in _KINDS if pattern.search(text)), None)
    # An AER line of a port ends with the device that reported the error to it.
    addresses = _addresses(text)[:: -1 if kind == "aer" else 1] or _addresses_of(record)
    if kind is None:
        named = text.partition(" ")[0].rstrip(":")
        if named not in interest.drivers and interest.addresses.isdisjoint(addresses):
            return None
        kind = "driver"
    code = _CODE.search(text) if kind in ("xid", "sxid") else None
    return LogLine(
        seconds=seconds,
        text=_with_escapes(text)[:MOST_CHARACTERS],
        kind=kind,
        pci=addresses[0] if addresses else None,
        level=record.level,
        code=int(code[1]) if code else None,
        gravity=next((gravity for gravity, said in _STATED if said.search(text)), None),
    )


def _addresses(text: str) -> list[str]:
    """The PCI functions that a text names, as sysfs writes them."""
    full = [
        f"{int(domain, 16):04x}:{bus}:{slot}.{function or 0}".lower()
        for before, domain, bus, slot, function in _FULL.findall(text)
        if before or function
    ]
    return full or [f"0000:{short}".lower() for short in _SHORT.findall(text)]


def _addresses_of(record: LogRecord) -> list[str]:
    """The device that the kernel itself names beside a driver's message."""
    return _addresses(record.properties.get("DEVICE", "").removeprefix("+pci:"))


def _with_escapes(text: str) -> str:
    """The text with escapes for control characters and others that are not shown as they are."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
