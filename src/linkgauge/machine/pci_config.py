"""Reads names of PCI functions, and configuration space: PCI Express Base Specification 6.0, 7.5.1
(headers), 7.5.3 (PCI Express capability), 7.6.3 (extended capabilities), 7.7.11 (Access Control
Services), 7.8.4 (AER), 7.9.3 (serial), 9.3 (virtual functions)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from linkgauge.model.hardware.inventory import PciFunction, PciLink, PortType
from linkgauge.model.hardware.pcie import SPEEDS, WIDTHS

from .tree import Root

_HEADER, _CONVENTIONAL = 64, 256
_EXPRESS, _ACS, _AER, _SERIAL = 0x10, 0x000D, 0x0001, 0x0003
_PORTS: dict[int, PortType] = {
    0x0: "endpoint",
    0x1: "endpoint",
    0x4: "root port",
    0x5: "upstream port",
    0x6: "downstream port",
    0x7: "bridge",
    0x8: "bridge",
    0x9: "integrated endpoint",
}
_BRIDGE = 0x0604
_REDIRECTIONS = ((1 << 2, "request redirect"), (1 << 3, "completion redirect"))
"""Bits of ACS Control that send traffic between devices up to the root (lspci: ReqRedir,
CmpltRedir)."""
_RELAXED, _SET_UP = 1 << 4, 0x091F
"""The bit of Device Control for relaxed ordering, and the bits of which a real device has at least
one set. If none is set, the register was probably made up by a hypervisor, and nothing is known."""
_ASPM = ((1, "L0s"), (2, "L1"))
"""Bits of Link Control, with the power-saving states that they allow."""
NO_EXPRESS = "the function has no PCI Express capability"
NO_MEANING = "its register is absent, or its value has no meaning in PCI Express"
VIRTUAL = "this is a virtual function: only its physical function, not visible here, reports it"


class Config(PciFunction, frozen=True, kw_only=True):
    """A PCI function as its configuration space shows it. `why` says why fields are None, and
    `why_extended` says it for `acs` and `aer`. If `why_extended` is None, an `acs` that is None or
    an `aer` that is False means that the function lacks the capability."""

    address: str = ""
    aer: bool | None = None
    why: str | None = None
    why_extended: str | None = None


def decode(content: bytes | None) -> Config:
    """Decodes the sysfs file `config`. It has 64 bytes (without root), 256, or 4096 (extended)."""
    if not content:
        return _nothing("config space is not readable")
    if not content[:_HEADER].strip(b"\xff"):
        silent = _nothing("the function does not answer: its registers read as ones")
        return msgspec.structs.replace(silent, silent=True)
    space = _Space(content)
    at, why = _find_express(space)
    header = Config(
        # A virtual function has its physical one's ids, and reads as ones here (9.3.4.1.1).
        vendor=_unless_ones(space.word(0x00)),
        device=_unless_ones(space.word(0x02)),
        class_code=None if (word := space.word(0x08, 4)) is None else word >> 8,
        revision=space.word(0x08, 1),
        why=why,
        why_extended=why,
    )
    if at is not None:
        return _express(space, at, header)
    if why == NO_EXPRESS:
        code = header.class_code
        bridge = code is not None and code >> 8 == _BRIDGE
        return msgspec.structs.replace(
            header, port="bridge" if bridge else None, aer=False, why_extended=None
        )
    return header


def serial_number(content: bytes) -> slice | None:
    """Returns where the Device Serial Number (7.9.3) lies; None if the function has none."""
    at = _extended_places(_Space(content))[0].get(_SERIAL)
    return None if at is None else slice(at + 4, min(at + 12, len(content)))


def _unless_ones(word: int | None) -> int | None:
    return None if word == 0xFFFF else word


def _nothing(why: str) -> Config:
    return Config(why=why, why_extended=why)


class _Space:
    """Configuration space as little-endian words. A word beyond its end is None."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def word(self, offset: int, width: int = 2) -> int | None:
        part = self.content[offset : offset + width]
        return int.from_bytes(part, "little") if len(part) == width else None

    @property
    def end(self) -> str:
        size = len(self.content)
        if size == _HEADER:
            return "only 64 bytes of config space are readable: run as root"
        return f"config space ends after {size} bytes"


def _find_express(space: _Space) -> tuple[int | None, str | None]:
    status, kind = space.word(0x06), space.word(0x0E, 1)
    if status is None or kind is None:
        return None, space.end
    if not status & 0x10:
        return None, NO_EXPRESS
    at = space.word(0x14 if kind & 0x7F == 2 else 0x34, 1)
    seen: set[int] = set()
    while at is not None and (at := at & 0xFC):
        if at in seen or at < _HEADER:
            return None, f"the list of capabilities is garbled: it leads back to 0x{at:02x}"
        seen.add(at)
        found = space.word(at, 1)
        if found == _EXPRESS:
            return at, None
        at = None if found is None else space.word(at + 1, 1)
    return None, space.end if at is None else NO_EXPRESS


def _express(space: _Space, at: int, header: Config) -> Config:
    flags, capable, control = space.word(at + 2), space.word(at + 4, 4), space.word(at + 8)
    states = space.word(at + 0x10)
    end = at + (0x14 if flags is not None and flags & 0xF < 2 else 0x32)
    acs, aer, why_extended = _extended(space)
    port = None if flags is None else _PORTS.get(flags >> 4 & 0xF)
    virtual = port == "endpoint" and _is_virtual(control, space.word(at + 0x12))
    why = VIRTUAL if virtual else NO_MEANING
    return msgspec.structs.replace(
        header,
        port=port,
        link=_link(space, at, second=flags is not None and flags & 0xF >= 2),
        max_payload=None if control is None or virtual else _size(control >> 5),
        max_payload_supported=None if capable is None else _size(capable),
        max_read_request=None if control is None or virtual else _size(control >> 12),
        relaxed_ordering=bool(control & _RELAXED) if control and control & _SET_UP else None,
        aspm=tuple(name for bit, name in _ASPM if (states or 0) & bit) or None,
        acs=acs,
        aer=aer,
        why=space.end if len(space.content) < end else why,
        why_extended=why_extended,
    )


def _is_virtual(control: int | None, status: int | None) -> bool:
    """Whether packet sizes, link speed and width read as 0, as in virtual functions (9.3.5)."""
    return (
        control is not None and not control & 0x70E0 and status is not None and not status & 0x3FF
    )


def _link(space: _Space, at: int, *, second: bool) -> PciLink:
    """Reads the link. `second` is true if the capability has the registers of its version 2."""
    capable, status = space.word(at + 0x0C, 4), space.word(at + 0x12)
    speeds = space.word(at + 0x2C, 4) if second else None
    target = space.word(at + 0x30) if second else None
    # The vector of Link Capabilities 2 has bit 1 for 2.5 GT/s and so on.
    code = ((speeds or 0) & 0xFE).bit_length() - 1
    max_speed = _speed(code) if code > 0 else None if capable is None else _speed(capable)
    if target is not None and target & 0xF == 0 and max_speed == SPEEDS[0]:
        # A link with only this speed may leave its target 0 (7.5.3.19).
        target = 1
    return PciLink(
        speed=None if status is None else _speed(status),
        width=None if status is None else _width(status),
        max_speed=max_speed,
        max_width=None if capable is None else _width(capable),
        target=None if target is None else _speed(target),
    )


def _speed(register: int) -> float | None:
    code = register & 0xF
    return SPEEDS[code - 1] if 1 <= code <= len(SPEEDS) else None


def _width(register: int) -> int | None:
    lanes = register >> 4 & 0x3F
    return lanes if lanes in WIDTHS else None


def _size(register: int) -> int | None:
    """Returns a packet size in bytes: the code 0 means 128, and 5 means 4096."""
    code = register & 7
    return 128 << code if code <= 5 else None


def _extended(space: _Space) -> tuple[tuple[str, ...] | None, bool | None, str | None]:
    """Returns the ACS redirections, whether the function has AER, and why either is unknown."""
    places, why = _extended_places(space)
    aer = True if _AER in places else None if why else False
    if _ACS not in places:
        return None, aer, why
    control = space.word(places[_ACS] + 6)
    if control is None:
        return None, aer, space.end
    return tuple(name for bit, name in _REDIRECTIONS if control & bit), aer, why


def _extended_places(space: _Space) -> tuple[dict[int, int], str | None]:
    places: dict[int, int] = {}
    seen: set[int] = set()
    at = _CONVENTIONAL
    while at:
        if at in seen or at < _CONVENTIONAL:
            return places, f"the list of extended capabilities is garbled: it leads to 0x{at:03x}"
        seen.add(at)
        header = space.word(at, 4)
        if header is None:
            return places, space.end
        if header in (0, 0xFFFFFFFF):
            break
        places.setdefault(header & 0xFFFF, at)
        at = header >> 20 & 0xFFC
    return places, None


# Names of PCI functions, from the PCI ID database if the machine has one.

PLACES = (
    "usr/share/hwdata/pci.ids",
    "usr/share/misc/pci.ids",
    "usr/share/pci.ids",
    "var/lib/pciutils/pci.ids",
)


def read_names(root: Root, wanted: Iterable[tuple[int, int]]) -> dict[tuple[int, int], str] | None:
    """Returns names such as `NVIDIA Corporation GH100 [H200 SXM 141GB]` by vendor and device. An
    unknown device has its number, as in lspci. Returns None without a database of names."""
    texts = (root.text(place) for place in PLACES)
    text = next((text for text in texts if text), None)
    return None if text is None else find_names(text, wanted)


def find_names(text: str, wanted: Iterable[tuple[int, int]]) -> dict[tuple[int, int], str]:
    """Returns the names of `wanted` in the database's text, without devices of unknown vendors."""
    pairs = set(wanted)
    vendors = {f"{vendor:04x}": vendor for vendor, _ in pairs}
    numbers = {(vendor, f"{device:04x}"): (vendor, device) for vendor, device in pairs}
    makers: dict[int, str] = {}
    devices: dict[tuple[int, int], str] = {}
    vendor: int | None = None
    for line in text.splitlines():
        # A subsystem's line begins with two tabs; classes follow the vendors: C 03 ...
        if line[:1] not in ("\t", "#", ""):
            vendor = vendors.get(line[:4].lower()) if line[4:6] == "  " else None
            if vendor is not None:
                makers[vendor] = line[4:].strip()
        elif vendor is not None and line[:1] == "\t" and line[1:2] != "\t":
            number, _, name = line[1:].partition("  ")
            if pair := numbers.get((vendor, number.lower())):
                devices[pair] = name.strip()
    return {
        pair: f"{makers[pair[0]]} {devices.get(pair) or f'Device {pair[1]:04x}'}"
        for pair in pairs
        if pair[0] in makers
    }
