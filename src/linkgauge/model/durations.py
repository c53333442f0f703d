"""Durations as people write and read them."""

from __future__ import annotations

import re

from .errors import InputError

_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?|\.[0-9]{1,9}", re.ASCII)
_PART = re.compile(rf"({_NUMBER.pattern}) ?(ms|s|min|m|h|d|w)", re.ASCII)
_WHOLE = re.compile(rf"(?:{_PART.pattern}\s*)+", re.ASCII)
LONGEST = 10 * 366 * 86400.0
"""Ten years, in seconds: more than anything here lasts."""


def parse_duration(text: str, what: str) -> float:
    """Seconds of `10s`, `90m`, `8h`, `1h30m`, `2d`, `500ms`, and of a bare number such as `10` or
    `0.5`. Raises InputError, which names `what`, for anything else, for 0, and for more than ten
    years."""
    stripped = text.strip().lower()
    if _NUMBER.fullmatch(stripped):
        stripped += "s"
    if not _WHOLE.fullmatch(stripped) or len(stripped) > 60:
        raise InputError(f"{what} {text!r} is not understood: write 30s, 10m, 8h or 1h30m")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(stripped))
    if not 0 < seconds <= LONGEST:
        raise InputError(f"{what} {text!r}: give more than nothing, and at most ten years")
    return seconds


def format_duration(seconds: float) -> str:
    """At most two parts: `8 h`, `1 h 30 min`, `10 min`, `12.5 s`, `250 ms`."""
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    for (unit, name), (part, below) in (
        ((86400, "d"), (3600, "h")), ((3600, "h"), (60, "min")), ((60, "min"), (1, "s")),
    ):  # fmt: skip
        if whole >= unit:
            count, rest = divmod(whole, unit)
            rest = rest // part
            return f"{count} {name} {rest} {below}" if rest else f"{count} {name}"
    return f"{whole} s"


def clock(seconds: float) -> str:
    """`8:03:12`: hours, minutes and seconds since a start."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
