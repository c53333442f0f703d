"""Reads new messages in the kernel's log (/dev/kmsg), if this process may read it."""

from __future__ import annotations

import errno
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from pathlib import Path

import msgspec

from linkgauge.model.hardware.gaps import NEEDS_ROOT, Gap
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.kernel_log import Gravity, KernelLog, LogKind, LogLine

# Records of /dev/kmsg, and which of them concern what a run measures.
#
# The format is that of the kernel's Documentation/ABI/testing/dev-kmsg. What drivers write is not
# an interface: a line that no pattern knows is left out, and nothing is concluded from its absence.

MOST_CHARACTERS = 1000
"""The largest number of characters in a line. The kernel has about the same limit."""
_BRIDGE = 0x06
"""The PCI base class of bridges."""


class LogRecord(msgspec.Struct, frozen=True):
    """A record of the kernel's log. `level` is 0 (emergency) to 7 (debug). `number` counts since
    boot. `seconds` is the kernel's clock. `properties` name the device (SUBSYSTEM, DEVICE)."""

    level: int
    number: int
    seconds: float
    text: str
    properties: dict[str, str] = {}


_HEAD = re.compile(rb"([0-9]{1,9}),([0-9]{1,20}),([0-9]{1,20})[^;\n]*;")
_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})")


def parse_record(data: bytes) -> LogRecord | None:
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
    r"""Decodes `\xNN`, by which the kernel writes backslashes and non-printable characters."""
    return _ESCAPE.sub(lambda byte: bytes([int(byte[1], 16)]), escaped).decode(errors="replace")


class Interest(msgspec.Struct, frozen=True):
    """The drivers and PCI addresses of devices whose log messages are kept."""

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
"""The kinds of log lines with their patterns. The first pattern that matches counts."""
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
"""A pattern of a PCI address with its domain. NVIDIA's driver leaves the function out."""
_SHORT = re.compile(r"\bdevice[ =]\[?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\b", re.IGNORECASE)


def recognize(record: LogRecord, interest: Interest, seconds: float) -> LogLine | None:
    """Converts a record to a line of the log. `seconds` is the time since the run's start. Returns
    None if the record is of no known kind and names no driver or device in `interest`."""
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


_PRINTED = re.compile(
    r"(?:.{0,80}? kernel: )?"
    r"(?:\[ *([0-9]{1,9}\.[0-9]{1,9})\](?:\[[^]]{1,12}\])? |\[[^]]{10,40}\] )?(.*)",
    re.DOTALL,
)
_FAILED = re.compile(
    r"[\w-]{2,32}: probe of (?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] failed"
    r"|nvme [\w:.-]{4,20}: Removing after probe failure|\s*NVRM: .*fallen off the bus"
)


def printed_log(lines: Iterable[str]) -> KernelLog:
    """Reads lines as dmesg or a journal prints them. Leaves out a line unless it has an error's
    code, or states how grave an error is, or says that a driver cannot start a device."""
    found = (line for text in lines if (line := _read_printed(text)) is not None)
    return KernelLog(tuple(sorted(found, key=attrgetter("seconds", "text"))))


def _read_printed(text: str) -> LogLine | None:
    printed = _PRINTED.match(text)
    seconds, said = printed.groups() if printed else (None, text)
    record = LogRecord(level=4, number=0, seconds=float(seconds or 0), text=said)
    line = recognize(record, Interest(), record.seconds)
    if _FAILED.match(said):
        return line or LogLine(record.seconds, _with_escapes(said)[:MOST_CHARACTERS], "driver")
    # What is logged at boot, such as "AER: enabled", states neither.
    return line if line is not None and (line.code or line.gravity) else None


def _addresses(text: str) -> list[str]:
    full = [
        f"{int(domain, 16):04x}:{bus}:{slot}.{function or 0}".lower()
        for before, domain, bus, slot, function in _FULL.findall(text)
        if before or function
    ]
    return full or [f"0000:{short}".lower() for short in _SHORT.findall(text)]


def _addresses_of(record: LogRecord) -> list[str]:
    return _addresses(record.properties.get("DEVICE", "").removeprefix("+pci:"))


def _with_escapes(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


KMSG = Path("/dev/kmsg")
_DEVICE = os.makedev(1, 11)
"""The device number of /dev/kmsg. In containers, the path may be another file, such as the
console."""
_LARGEST = 8192
"""The largest size of a record in bytes (CONSOLE_EXT_LOG_MAX). A read returns one record."""
_AT_ONCE = 10_000
"""The largest number of records in one pass. The next pass continues there."""
MOST_OF_A_KIND = 20
"""The largest number of kept lines with the same kind, code, gravity and device. A flood of such
lines thus leaves room for others."""
MOST = 1000
"""The largest number of kept lines."""

Source = Callable[[], bytes]
"""A function that returns the next record, as a read of /dev/kmsg does. It raises BlockingIOError
at the end of the log, and BrokenPipeError if records were lost."""


class Follower:
    """Reads new messages about the machine's devices. `source` is a function that returns the next
    record, or a text that says why there is no log. The run began `since` seconds ago."""

    def __init__(
        self,
        source: Source | str,
        machine: Machine,
        *,
        since: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._interest = interest_of(machine)
        self._since = since
        self._clock = clock
        self._began = clock()
        self._read_until = 0.0
        self._is_first = True
        self._kept: Counter[tuple[object, ...]] = Counter()

    def new(self) -> KernelLog | None:
        """Returns the lines since the last call, or None if there are none. The first call always
        returns a log, with the reason if the kernel's log cannot be read."""
        first, self._is_first = self._is_first, False
        if isinstance(self._source, str):
            return KernelLog(unknown=(Gap(self._source, "kernel log"),)) if first else None
        records, lost = _read(self._source)
        elapsed = self._clock() - self._began
        found = [self._line(record, elapsed) for record in records]
        self._read_until = elapsed
        concerning = [line for line in found if line is not None]
        lines = [line for line in concerning if self._keeps(line)]
        log = KernelLog(tuple(lines), len(concerning) - len(lines), lost)
        return log if first or log != KernelLog() else None

    def _line(self, record: LogRecord, elapsed: float) -> LogLine | None:
        # The kernel stamps records by a clock that is not adjusted and drifts from ours by seconds
        # in weeks. When the record was read bounds when it was written.
        at = min(max(record.seconds - self._began, self._read_until), elapsed)
        return recognize(record, self._interest, round(self._since + at, 6))

    def _keeps(self, line: LogLine) -> bool:
        kind = (line.kind, line.code, line.gravity, line.pci)
        if self._kept[kind] >= MOST_OF_A_KIND or self._kept.total() >= MOST:
            return False
        self._kept[kind] += 1
        return True


def _read(source: Source) -> tuple[list[LogRecord], bool]:
    records: list[LogRecord] = []
    lost = False
    for _ in range(_AT_ONCE):
        try:
            data = source()
        except BlockingIOError:
            break
        except OSError as error:
            lost = True
            if error.errno in (errno.EPIPE, errno.EINVAL):
                continue  # overwritten, or too long: the next read goes on behind it
            break
        if not data:
            break
        if (record := parse_record(data)) is not None:
            records.append(record)
    return records, lost


@contextmanager
def following(machine: Machine, since: float = 0.0, path: Path = KMSG) -> Iterator[Follower | None]:
    """Follows the log during this block. Yields None for a simulated machine: it has no kernel."""
    if machine.simulated is not None:
        yield None
        return
    found = _open(path)
    if isinstance(found, str):
        yield Follower(found, machine, since=since)
        return
    try:
        yield Follower(partial(os.read, found, _LARGEST), machine, since=since)
    finally:
        os.close(found)


def _open(path: Path) -> int | str:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        return _why_closed(path, error)
    try:
        if os.fstat(descriptor).st_rdev == _DEVICE:
            os.lseek(descriptor, 0, os.SEEK_END)
            return descriptor
        why = f"{path} is not the kernel's log (usual in containers)"
    except OSError as error:
        why = f"{path}: {error.strerror}"
    os.close(descriptor)
    return why


def _why_closed(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{path} is missing (usual in containers)"
    if isinstance(error, PermissionError) and os.geteuid():
        return f"{path}: {error.strerror} (kernel.dmesg_restrict): {NEEDS_ROOT}"
    return f"{path}: {error.strerror}"
