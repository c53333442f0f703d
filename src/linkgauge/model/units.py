"""Units: figures are stored in SI base units (bytes/s, seconds), and scaled only for display."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Literal

import msgspec

from .errors import InputError

Better = Literal["higher", "lower"]


class Unit(msgspec.Struct, frozen=True):
    """The unit of a `quantity`: `symbol` in files; `shown`, with figures ÷ `scale`, for people."""

    symbol: str
    shown: str
    scale: float
    better: Better
    quantity: str = "bandwidth"


BANDWIDTH = Unit("B/s", "GB/s", 1e9, "higher")
"""Payload bytes, counted once. GB/s is 10^9 bytes a second."""
STREAM = Unit("B/s (STREAM)", "GB/s", 1e9, "higher")
"""Bytes of every array that is read or written, as STREAM counts: not comparable with BANDWIDTH."""
LATENCY = Unit("s", "ns", 1e-9, "lower", "time")
COLLECTIVE = Unit("s (collective)", "us", 1e-6, "lower", "time")
"""The time of one collective, the average of its ranks."""
RATE = Unit("1/s", "events/s", 1.0, "higher", "rate")
FLOPS = Unit("FLOP/s", "TFLOP/s", 1e12, "higher", "rate")
"""2 n³ floating-point operations count for a product of two n × n matrices."""
HIDDEN = Unit("1 (hidden)", "%", 0.01, "higher", "time hidden")
"""Of the shorter of two times: that of copies and that of a kernel, each alone."""
TOKENS = Unit("tokens/s", "tokens/s", 1.0, "higher", "rate")
REQUESTS = Unit("requests/s", "requests/s", 1.0, "higher", "rate")
STEP = Unit("s (step)", "ms", 1e-3, "lower", "time")

_ALL = (
    BANDWIDTH, STREAM, LATENCY, COLLECTIVE, RATE, FLOPS, HIDDEN, TOKENS, STEP, REQUESTS,
)  # fmt: skip
UNITS = {unit.symbol: unit for unit in _ALL}


def unit_of(symbol: str) -> Unit:
    """Returns the unit with this symbol. Figures with an unknown symbol are shown unscaled."""
    return UNITS.get(symbol) or Unit(symbol, symbol, 1.0, "higher")


def format_figure(value: float, unit: str) -> str:
    """Formats a figure without its unit: three or four digits, or all those before the point."""
    scaled = value / unit_of(unit).scale
    for least, decimals in ((999.95, 0), (99.995, 1), (1, 2)):
        if abs(scaled) >= least:
            return f"{scaled:.{decimals}f}"
    return format_decimals(value, unit)


def format_with_unit(value: float, unit: str) -> str:
    return f"{format_figure(value, unit)} {unit_of(unit).shown}"


def format_decimals(value: float, unit: str) -> str:
    """Formats a figure without its unit, with two decimals or, below 1, three digits."""
    scaled = value / unit_of(unit).scale
    return f"{scaled:.2f}" if scaled >= 1 or scaled == 0 else f"{scaled:.3g}"


_SIZE = re.compile(r"(0[xX][0-9a-fA-F]+|[0-9]+)(?:([kKmMgGtT])(?:i?[bB])?|[bB])?")
_POWERS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_LARGEST = 1 << 60


def parse_size(text: str) -> int:
    """Returns the bytes of `512M`, `1GiB` or `0x100000`; prefixes are powers of two. Raises
    InputError for other texts, 0, and more than an exbibyte."""
    stripped = text.strip()
    match = _SIZE.fullmatch(stripped)
    # ASCII only: digits of other scripts were never meant as a size.
    if not match or not stripped.isascii():
        if re.fullmatch(r"-\s*[0-9].*", stripped, re.ASCII):
            raise InputError(f"size {text!r} is negative: give a positive size such as 64M")
        raise InputError(f"size {text!r} is not understood: write 4096, 4K, 512M, 1G or 0x100000")
    number, prefix = match.groups()
    if len(number) > 32:
        raise InputError(f"size of {len(number)} digits is larger than any memory")
    size = int(number, 0 if number[:2].lower() == "0x" else 10) << _POWERS[(prefix or "").lower()]
    if size == 0:
        raise InputError("size 0 moves nothing: give a positive size such as 64M")
    if size > _LARGEST:
        raise InputError(f"size {text!r} is larger than any memory")
    return size


MOST_SIZES = 64
"""The most sizes in one list. Each size is measured separately and has its own table."""


def parse_sizes(text: str) -> tuple[int, ...]:
    """Returns the sizes in a list, in bytes and without repeats. Sweeps (`1K:1G:x2`, `64K:1M:+64K`)
    never pass their end. Raises InputError for other texts and for too many sizes."""
    found = dict.fromkeys(chain.from_iterable(map(_sizes_of, text.split(","))))
    if len(found) > MOST_SIZES:
        raise InputError(f"{len(found)} sizes are too many: give at most {MOST_SIZES}")
    return tuple(found)


def _sizes_of(part: str) -> Iterator[int]:
    if ":" not in part:
        yield parse_size(part)
        return
    ends, _, step = part.rpartition(":")
    first, _, last = ends.partition(":")
    step = step.strip()
    if not first.strip() or not last.strip() or step[:1] not in ("x", "X", "+"):
        raise InputError(f"size {part!r} is not understood: a sweep is 1K:1G:x2 or 64K:1M:+64K")
    size, end = parse_size(first), parse_size(last)
    if size > end:
        raise InputError(f"size {part!r} starts above its end: give the smaller size first")
    if step[0] == "+":
        yield from _adding(part, size, end, step[1:])
    else:
        yield from _multiplying(part, size, end, step[1:])


def _multiplying(part: str, size: int, end: int, factor: str) -> Iterator[int]:
    if not re.fullmatch(r"[0-9]{1,20}", factor, re.ASCII) or int(factor) < 2:
        raise InputError(f"size {part!r}: the factor is a whole number from 2 on, such as x2")
    while size <= end:
        yield size
        size *= int(factor)


def _adding(part: str, size: int, end: int, step: str) -> Iterator[int]:
    if not step.strip("+ ").lstrip("0xX"):
        raise InputError(f"size {part!r}: the step is a positive size, such as +64K")
    sizes = range(size, end + 1, parse_size(step))
    if len(sizes) > MOST_SIZES:
        raise InputError(
            f"size {part!r} is {len(sizes)} sizes: give at most {MOST_SIZES}, by larger steps or "
            "by a factor (x2)"
        )
    yield from sizes


def format_size(size: int) -> str:
    """Returns a size in its shortest exact form: 512 MiB, 4 KiB, 1000 B."""
    for power, name in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power and size % (1 << power) == 0:
            return f"{size >> power} {name}"
    return f"{size} B"


def approximate_size(size: int) -> str:
    """Returns a size with one decimal (3.7 GiB). Sizes of cells are shown exactly instead."""
    for power, name in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size / (1 << power):.1f} {name}"
    return f"{size} B"


def parse_fraction(text: str, what: str = "precision") -> float:
    """Returns 0.01 for `1%` and `0.01`. Raises InputError unless 0 < fraction < 1."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:e-[0-9]{1,2})?)\s*(%?)\s*", text, re.ASCII)
    if not match or len(text) > 40:
        raise InputError(f"{what} {text!r} is not understood: write 0.01 or 1%")
    value = float(match[1]) / (100 if match[2] else 1)
    if not 0 < value < 1:
        raise InputError(f"{what} {text!r} must lie between 0 and 1 (100%)")
    return value


def count_of(count: int | None, one: str = "cell", several: str = "") -> str:
    return f"{count} {one if count == 1 else several or f'{one}s'}"


def percent(share: float) -> str:
    hundredths = share * 100
    decimals = 2 if hundredths < 0.095 else 1 if hundredths < 9.95 else 0
    return f"{hundredths:.{decimals}f}%"


# Durations as people write and read them.

_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?|\.[0-9]{1,9}", re.ASCII)
_PART = re.compile(rf"({_NUMBER.pattern}) ?(ms|s|min|m|h|d|w)", re.ASCII)
_WHOLE = re.compile(rf"(?:{_PART.pattern}\s*)+", re.ASCII)
LONGEST = 10 * 366 * 86400.0
"""The longest time in seconds: ten years, more than anything here lasts."""


def parse_duration(text: str, what: str) -> float:
    """Returns the seconds of `1h30m` or `0.5`. Raises InputError for 0 and for over ten years."""
    stripped = text.strip().lower()
    if _NUMBER.fullmatch(stripped):
        stripped += "s"
    if not _WHOLE.fullmatch(stripped) or len(stripped) > 60:
        raise InputError(f"{what} {text!r} is not understood: write 30s, 10m, 8h or 1h30m")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(stripped))
    if not 0 < seconds <= LONGEST:
        raise InputError(f"{what} {text!r}: give more than 0, and at most ten years")
    return seconds


def format_duration(seconds: float) -> str:
    """Returns a duration in at most two parts: `1 h 30 min`, `12.5 s`, `250 ms`."""
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
    """Returns a duration as hours, minutes and seconds: `8:03:12`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
