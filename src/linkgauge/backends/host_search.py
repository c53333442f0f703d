"""Finds the fastest of several kernels. The kernels take turns, and after each round the slower
half is dropped.

Other load on a shared host makes some turns slower and none faster. Kernels therefore run in many
short turns, in random order. The lower quartile of a kernel's turns decides its rank. With two
threads on two busy CPUs, hardly half of the turns run undisturbed, and a median would compare the
disturbances."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Protocol

from linkgauge import _native

Paces = Mapping[str, Sequence[float]]
"""Seconds per byte of each turn, by kernel."""

TURNS = 5
FINAL_TURNS = 15
"""The turns of each kernel in the last round."""
FINALISTS = 2
FEW = 4
"""When at most this many kernels are left, narrower variants of these kernels join."""
REVERSED_WINS = 12
REVERSED_BY = 1.02
"""The least median ratio with which the second best kernel replaces the best kernel. In addition,
it must win so many turns that equal kernels would do so in only 2 % of sign tests. With a lower
ratio the choice hardly matters."""


class Arena(Protocol):
    """Memory on which kernels take turns."""

    def take_turns(
        self, op: _native.Op, kernels: Sequence[str], turns: int, seconds: float
    ) -> Paces:
        """Runs `turns` turns of each kernel, in about `seconds` altogether."""
        ...

    def close(self) -> None: ...


def search(
    course: Arena, op: _native.Op, kernels: Sequence[str], safe: Sequence[str], seconds: float
) -> tuple[str, ...]:
    """Returns the finalists, best first, after a search of about `seconds`.

    The kernels in `safe` are good on nearly every CPU and stay until the last round. A kernel that
    came so far by luck must still beat them.

    The last round takes half of the time, and earlier rounds share the rest equally. So the
    comparison gets better as fewer kernels remain. Kernels that differ only in vector width hardly
    differ in speed. The widest kernels run first, and narrower variants of the best join later."""
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
    """Whether the second best kernel is now clearly faster than the best kernel."""
    paces = course.take_turns(op, (best, second), FINAL_TURNS, seconds)
    ratios = [one / other for one, other in zip(paces[best], paces[second], strict=True)]
    wins = sum(ratio > 1 for ratio in ratios)
    return wins >= REVERSED_WINS and median(ratios) > REVERSED_BY


def _ranked(paces: Paces) -> list[str]:
    return sorted(paces, key=lambda kernel: lower_quartile(paces[kernel]))


def lower_quartile(paces: Sequence[float]) -> float:
    return sorted(paces)[len(paces) // 4]


_UNITS = ("avx512", "avx2")
"""Vector units, of which a CPU may have several; the widest first."""


def _family(kernel: str) -> str:
    """Returns the kernel's name without the vector unit."""
    return "-".join(part for part in kernel.split("-") if part not in _UNITS)


def _widest(kernels: Sequence[str]) -> list[str]:
    """Returns the widest kernel of each family."""
    widest = {_family(kernel): kernel for kernel in kernels if _UNITS[0] not in kernel}
    widest |= {_family(kernel): kernel for kernel in kernels if _UNITS[0] in kernel}
    return list(widest.values())
