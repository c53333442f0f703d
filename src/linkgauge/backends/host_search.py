"""Which of several kernels is the fastest here: they take turns, and the slower half leaves.

A shared host is slower at one moment than at the next, and never faster than it is. Kernels
therefore meet in many short turns, in an order that is shuffled each time, and what decides is how
fast the fastest quarter of a kernel's turns were: of two threads on two busy CPUs, hardly half of
the turns run undisturbed, and a median would compare the disturbances.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Protocol

from linkgauge import _native

Paces = Mapping[str, Sequence[float]]
"""Of each kernel, the seconds per byte of each of its turns."""

TURNS = 5
FINAL_TURNS = 15
"""Of each kernel in a round, and of each in the last one."""
FINALISTS = 2
FEW = 4
"""So few kernels are left when their narrower twins join."""
REVERSED_WINS = 12
REVERSED_BY = 1.02
"""The second best has overtaken the best where it won so many of the 15 turns (2 % of sign tests of
equal kernels find that) and was, in the median, so many times as fast: below that the choice
hardly matters."""


class Arena(Protocol):
    """Memory over which kernels take turns."""

    def take_turns(
        self, op: _native.Op, kernels: Sequence[str], turns: int, seconds: float
    ) -> Paces:
        """So many turns of each kernel, all together about so many seconds long."""
        ...

    def close(self) -> None: ...


def search(
    course: Arena, op: _native.Op, kernels: Sequence[str], default: str, seconds: float
) -> tuple[str, ...]:
    """The best kernel and the second best, found in about so many seconds.

    The `default`, which is good everywhere, takes part to the end: what bad luck left beside it
    must still beat it.

    Each round has an equal share of the time, so that the fewer kernels
    stay, the better they are compared.
    Kernels that differ in the width of their vectors alone hardly differ: the widest ones run
    first, and twins of the best join them later.
    """
    field = _widest(kernels)
    absent = [kernel for kernel in kernels if kernel not in field]
    each = seconds / (math.ceil(math.log2(max(len(field), 2))) + 2)
    while len(field) > FINALISTS or absent:
        if len(field) > FINALISTS:
            ranked = _ranked(course.take_turns(op, field, TURNS, each))
            field = ranked[: max(FINALISTS, (len(ranked) + 1) // 2)]
        if absent and len(field) <= FEW:
            families = {_family(kernel) for kernel in field}
            field = [*field, *(kernel for kernel in absent if _family(kernel) in families)]
            absent = []
    final = dict.fromkeys((*field, default))
    return tuple(_ranked(course.take_turns(op, tuple(final), FINAL_TURNS, each)))


def is_reversed(course: Arena, op: _native.Op, best: str, second: str, seconds: float) -> bool:
    """Whether the second best kernel is clearly faster than the best by now."""
    paces = course.take_turns(op, (best, second), FINAL_TURNS, seconds)
    ratios = [one / other for one, other in zip(paces[best], paces[second], strict=True)]
    wins = sum(ratio > 1 for ratio in ratios)
    return wins >= REVERSED_WINS and median(ratios) > REVERSED_BY


def _ranked(paces: Paces) -> list[str]:
    return sorted(paces, key=lambda kernel: lower_quartile(paces[kernel]))


def lower_quartile(paces: Sequence[float]) -> float:
    return sorted(paces)[len(paces) // 4]


_UNITS = ("avx512", "avx2")
"""Of which a CPU may have several, the widest first."""


def _family(kernel: str) -> str:
    """Its name without its vector unit."""
    return "-".join(part for part in kernel.split("-") if part not in _UNITS)


def _widest(kernels: Sequence[str]) -> list[str]:
    """One kernel of each family."""
    widest = {_family(kernel): kernel for kernel in kernels if _UNITS[0] not in kernel}
    widest |= {_family(kernel): kernel for kernel in kernels if _UNITS[0] in kernel}
    return list(widest.values())
