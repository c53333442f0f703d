"""PCI configuration space: the registers of a function that tell what its link runs at.

Source: PCI Express Base Specification 6.0, 7.5.1 (headers), 7.5.3 (PCI Express capability), 7.6.3
(extended capabilities), 7.7.11 (Access Control Services), 7.8.4 (Advanced Error Reporting).
"""

from __future__ import annotations

import msgspec

from linkgauge.model.hardware.inventory import PciFunction, PortType
from linkgauge.model.hardware.pcie import SPEEDS

_SIZE = 4096
_COMMAND = 0x0406
"""Memory and bus mastering on, legacy interrupts off."""
_HAS_CAPABILITIES = 0x0010
_CAPABILITY = 0x60
"""Where the PCI Express capability lies; the first one is found through the pointer at 0x34."""
_ID, _VERSION = 0x10, 2
_AER, _ACS = 0x100, 0x148
"""Where the extended capabilities lie, the first one where all begin."""
_AER_ID, _ACS_ID = 0x0001, 0x000D
_ACS_ALL, _ACS_REDIRECT = 0x005F, 0x000C
"""ACS Capability: all services but egress control; ACS Control: redirect requests, completions."""

PORTS: dict[PortType, int] = {
    "endpoint": 0,
    "root port": 4,
    "upstream port": 5,
    "downstream port": 6,
}
"""Device/Port Type of the PCI Express Capabilities register."""


class Buses(msgspec.Struct, frozen=True):
    """A bridge's bus numbers: above it, below it, the highest below it."""

    primary: int
    secondary: int
    subordinate: int


def config_space(function: PciFunction, buses: Buses | None) -> bytes:
    """4096 bytes. A function whose link is unknown shows speed and width 0. All have AER; those
    whose `acs` is known have ACS."""
    link = function.link
    space = bytearray(_SIZE)

    def put(offset: int, value: int, width: int) -> None:
        space[offset : offset + width] = value.to_bytes(width, "little")

    put(0x00, function.vendor or 0, 2)
    put(0x02, function.device or 0, 2)
    put(0x04, _COMMAND, 2)
    put(0x06, _HAS_CAPABILITIES, 2)
    put(0x08, function.revision or 0, 1)
    put(0x09, function.class_code or 0, 3)
    put(0x34, _CAPABILITY, 1)
    if buses is not None:
        put(0x0E, 1, 1)
        put(0x18, buses.primary, 1)
        put(0x19, buses.secondary, 1)
        put(0x1A, buses.subordinate, 1)
    put(_CAPABILITY, _ID, 2)
    put(_CAPABILITY + 0x02, PORTS[function.port or "endpoint"] << 4 | _VERSION, 2)
    if link.speed and link.max_speed and link.width and link.max_width:
        speed, max_speed = _speed_code(link.speed), _speed_code(link.max_speed)
        payload = _size_code(function.max_payload or 0)
        read_request = _size_code(function.max_read_request or 0)
        put(_CAPABILITY + 0x04, _size_code(function.max_payload_supported or 0), 4)  # DevCap
        put(_CAPABILITY + 0x08, read_request << 12 | payload << 5, 2)  # DevCtl
        put(_CAPABILITY + 0x0C, link.max_width << 4 | max_speed, 4)  # LnkCap
        put(_CAPABILITY + 0x12, link.width << 4 | speed, 2)  # LnkSta
        put(_CAPABILITY + 0x2C, ((1 << max_speed) - 1) << 1, 4)  # LnkCap2
        put(_CAPABILITY + 0x30, _speed_code(link.target or link.speed), 2)  # LnkCtl2
    put(_AER, (_ACS << 20 if function.acs is not None else 0) | 2 << 16 | _AER_ID, 4)
    if function.acs is not None:
        put(_ACS, 1 << 16 | _ACS_ID, 4)
        put(_ACS + 0x04, _ACS_ALL, 2)
        put(_ACS + 0x06, _ACS_REDIRECT if function.acs else 0, 2)
    return bytes(space)


def _speed_code(speed: float) -> int:
    """The generation: 1 for 2.5 GT/s; the nearest one below a speed between two."""
    return max((code for code, of in enumerate(SPEEDS, 1) if of <= speed), default=0)


def _size_code(size: int) -> int:
    """0 for 128 bytes, 1 for 256 up to 5 for 4096."""
    return min(max(size.bit_length() - 8, 0), 5)
