"""The quantities in a description: numbers with units."""

from __future__ import annotations

import re

from linkgauge.model.errors import InputError
from linkgauge.model.units import parse_size

_NUMBER = r"\s*([0-9]+(?:\.[0-9]+)?)\s*"


class Size(int):
    """A size in bytes. Its prefixes are powers of two: `64G` is 64 × 2^30 bytes."""


class Rate(float):
    """A rate in bytes/s: `50 GB/s` is 50 × 10^9."""


class WorkRate(float):
    """A rate of floating-point operations per second: `67 TFLOP/s` is 67 × 10^12."""


class Seconds(float):
    """A time in seconds, written with a unit: `415 ns`."""


class Fraction(float):
    """A fraction, 0 or more: `0.5` or `50%`."""


class Share(Fraction):
    """A fraction above 0, such as an efficiency."""


def quantity(kind: type, value: object) -> object:
    """Reads a quantity with its unit. Raises ValueError if the text is not one."""
    text = str(value)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{kind.__name__.lower()} expected, found {text[:40]!r}")  # noqa: TRY004
    if kind is Size:
        try:
            return Size(parse_size(text))
        except InputError as error:
            raise ValueError(str(error)) from error
    expected, units = _UNITS[kind]
    match = re.fullmatch(_NUMBER + f"({'|'.join(units)})", text, re.ASCII)
    if not match or len(text) > 40:
        raise ValueError(f"{expected} expected, found {text[:40]!r}")
    found = float(match[1]) * units[match[2]]
    if kind in (Rate, Share) and found <= 0:
        raise ValueError(f"{'a rate' if kind is Rate else 'an efficiency'} of 0 moves nothing")
    return kind(found)


_UNITS: dict[type, tuple[str, dict[str, float]]] = {
    Rate: ("a rate such as 50 GB/s", {"B/s": 1.0, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}),
    WorkRate: ("a rate such as 67 TFLOP/s", {"GFLOP/s": 1e9, "TFLOP/s": 1e12, "PFLOP/s": 1e15}),
    Seconds: ("a time such as 415 ns", {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}),
    **dict.fromkeys((Fraction, Share), ("a share such as 0.5 or 50%", {"": 1.0, "%": 0.01})),
}
"""An example of each quantity, and its units."""
