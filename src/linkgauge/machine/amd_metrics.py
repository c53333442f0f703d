"""What AMD's driver writes into gpu_metrics: a table whose header says its version.

Source: the kernel's include/kgd_pp_interface.h, which never changes a version once it is out.
"""

from __future__ import annotations

import struct

import msgspec

_HEADER = struct.Struct("<HBB")
_V1_3 = struct.Struct("<4s 6H 3H H Q Q 7H 7H I H H H 2x 2I 4H Q 3H 2x Q")
"""Of MI200 and of cards for desktops."""
_V1_4 = struct.Struct("<4s 3H H 2H 4H Q Q I I H H H H")
"""Of MI300: up to the speed of its XGMI links. Later versions of the family move fields."""
_UNKNOWN = 0xFFFF
"""Of 16 bits: the device does not say."""
_MHZ, _TENTH = 1e6, 0.1
_THROTTLERS = {
    range(8): "power cap",
    range(16, 24): "current limit",
    range(32, 44): "hardware thermal slowdown",
    range(44, 46): "voltage regulator too hot",
    range(46, 48): "hardware slowdown",
}
"""Bits of the throttle status that is alike for all devices (SMU_THROTTLER_…_BIT)."""


class Metrics(msgspec.Struct, frozen=True):
    """In Hz, °C, W, GT/s and lanes; null where the table does not say."""

    clock: float | None = None
    temperature: float | None = None
    power: float | None = None
    link_speed: float | None = None
    link_width: int | None = None
    throttled: tuple[str, ...] = ()


def parse_metrics(table: bytes | None) -> Metrics:
    """The table's values; all null for a version that is not known here, or for no table."""
    if table is None or len(table) < _HEADER.size:
        return Metrics()
    version = _HEADER.unpack_from(table)[1:]
    if version == (1, 3) and len(table) >= _V1_3.size:
        found = _V1_3.unpack_from(table)
        # After the header: 6 temperatures, 3 activities, power, energy, time, 14 clocks, a status,
        # fan, width, speed, 2 counters, 4 temperatures, time, 3 voltages, the common status.
        return Metrics(
            clock=_known(found[20], _MHZ),
            temperature=_known(found[2], 1.0),
            power=_known(found[10], 1.0),
            link_width=_lanes(found[29]),
            link_speed=_known(found[30], _TENTH),
            throttled=tuple(_reasons(found[-1])),
        )
    if version == (1, 4) and len(table) >= _V1_4.size:
        found = _V1_4.unpack_from(table)
        return Metrics(
            temperature=_known(found[1], 1.0),
            power=_known(found[4], 1.0),
            link_width=_lanes(found[15]),
            link_speed=_known(found[16], _TENTH),
        )
    return Metrics()


def _known(value: int, scale: float) -> float | None:
    return None if value in (0, _UNKNOWN) else value * scale


def _lanes(value: int) -> int | None:
    return None if value in (0, _UNKNOWN) else value


def _reasons(status: int) -> list[str]:
    if status == (1 << 64) - 1:  # the device does not say
        return []
    return [word for bits, word in _THROTTLERS.items() if any(status >> bit & 1 for bit in bits)]
