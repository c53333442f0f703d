"""Finds the fastest of several kernels. They take turns, and after each round the slower half is
dropped.

Other programs on the machine make some turns slower, but none faster. Kernels therefore run in many
short turns, in random order. A kernel is judged by the lower quartile of its turns. On busy CPUs,
the median would often be a disturbed turn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Protocol

from linkgauge import _native

Paces = Mapping[str, Sequence[float]]
"""The seconds per byte of each turn, by kernel."""

TURNS = 5
FINAL_TURNS = 15
"""The number of turns of each kernel in the last round."""
FINALISTS = 2
FEW = 4
"""If at most this many kernels are left, their narrower variants join the search."""
REVERSED_WINS = 12
REVERSED_BY = 1.02
"""The second best kernel replaces the best if it is faster by this factor in the median. It must
also win so many turns that chance is unlikely (2 % in a sign test)."""


class Arena(Protocol):
    """Memory on which kernels take turns."""

    def take_turns(
        self, op: _native.Op, kernels: Sequence[str], turns: int, seconds: float
    ) -> Paces:
        """Runs each kernel `turns` times. `seconds` is the approximate time for all turns."""
        ...

    def close(self) -> None: ...


def search(
    course: Arena, op: _native.Op, kernels: Sequence[str], safe: Sequence[str], seconds: float
) -> tuple[str, ...]:
    """Returns the best kernels, best first. `seconds` is the approximate time of the search.

    The kernels in `safe` are good on nearly every CPU. They stay until the last round, so that a
    kernel that was only lucky must still beat them.

    The last round takes half of the time. Kernels that differ only in vector width have about the
    same speed. Only the widest run at first, and narrower variants of the best join later."""
    field = _widest(kernels)
    absent = [kernel for kernel in kernels if kernel not in field]
    last = seconds / 2
    each = (seconds - last) / (math.ceil(math.log2(max(len(field), 2))) + 1)
    while len(field) > FINALISTS or absent:
        if len(field) > FINALISTS:
            ranked = _ranked(course.take_turns(op, field, TURNS, each))
            field = ranked[: max(FINALISTS, (len(ranked) + 1) // 2)]
        if absent and len(field) <= FEW:
            families = {_family(kernel) for kernel in field}
            field = [*field, *(kernel for kernel in absent if _family(kernel) in families)]
            absent = []
    final = dict.fromkeys((*field, *safe))
    return tuple(_ranked(course.take_turns(op, tuple(final), FINAL_TURNS, last)))


def is_reversed(course: Arena, op: _native.Op, best: str, second: str, seconds: float) -> bool:
    """Whether the second best kernel is now clearly faster than the best."""
    paces = course.take_turns(op, (best, second), FINAL_TURNS, seconds)
    ratios = [one / other for one, other in zip(paces[best], paces[second], strict=True)]
    wins = sum(ratio > 1 for ratio in ratios)
    return wins >= REVERSED_WINS and median(ratios) > REVERSED_BY


def _ranked(paces: Paces) -> list[str]:
    return sorted(paces, key=lambda kernel: lower_quartile(paces[kernel]))


def lower_quartile(paces: Sequence[float]) -> float:
    return sorted(paces)[len(paces) // 4]


_UNITS = ("avx512", "avx2")
"""Vector units, the widest first."""


def _family(kernel: str) -> str:
    """Returns the name of a kernel without its vector unit."""
    return "-".join(part for part in kernel.split("-") if part not in _UNITS)


def _widest(kernels: Sequence[str]) -> list[str]:
    """Returns the kernels with the widest vectors among variants of the same kernel."""
    widest = {_family(kernel): kernel for kernel in kernels if _UNITS[0] not in kernel}
    widest |= {_family(kernel): kernel for kernel in kernels if _UNITS[0] in kernel}
    return list(widest.values())
