"""CPUs and nodes as libvirt lists them: `0-3,^2,8` is 0, 1, 3 and 8."""

from __future__ import annotations

import re

MOST = 16384
"""libvirt itself takes no number from here on (VIR_DOMAIN_CPUMASK_LEN)."""
_PIECE = re.compile(r"(\^?)([0-9]{1,9})(?:-([0-9]{1,9}))?", re.ASCII)

_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})", re.ASCII)


def parse_cpu_set(text: str) -> tuple[int, ...]:
    """The numbers, ascending. Raises ValueError for what libvirt refuses, too: a piece that is no
    number or range, a range that falls, a number that is too large, an empty list."""
    found: set[int] = set()
    for piece in text.split(","):
        match = _PIECE.fullmatch(piece.strip())
        if match is None:
            raise ValueError(f"{piece.strip()[:40]!r} is not a number or range")
        first, last = int(match[2]), int(match[3] or match[2])
        if last >= MOST:
            raise ValueError(f"{last} is beyond {MOST - 1}, the highest that libvirt takes")
        if last < first or (match[1] and match[3]):
            raise ValueError(f"{piece.strip()!r} is not a range")
        if match[1]:
            found.discard(first)
        else:
            found.update(range(first, last + 1))
    if not found:
        raise ValueError("it is empty")
    return tuple(sorted(found))


def length(text: str) -> int:
    """About how many numbers a list has, without making it."""
    ends = ((int(low), min(int(high), MOST)) for low, high in _RANGE.findall(text))
    return text.count(",") + 1 + sum(max(0, high - low) for low, high in ends)
