"""The output of `linkgauge scale`: a collective over more and more devices.

Absent is null, never 0; figures are in SI base units. `busbw` and `algbw` are as nccl-tests define
them (doc/PERFORMANCE.md): what a link carries if all ranks have equal ones, and size by time.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .collective import Collective
from .result import SizeLine, Verdict

Member = Literal["GPU", "node"]
"""What takes part in a collective."""
SCHEMA: Literal["linkgauge.scale/1"] = "linkgauge.scale/1"


class At(msgspec.Struct, frozen=True):
    """One call of `size` bytes in `seconds`; `busbw` is null of one device, which no link joins to
    another one."""

    size: int
    seconds: float
    algbw: float
    busbw: float | None = None


class Bound(msgspec.Struct, frozen=True):
    """The busbw that a machine's map gives, in bytes/s: `theoretical` by the rates of its links,
    `achievable` with all that protocols take (null: something on the way is not known, as
    `because` says); the `figure` is the one to reach, else the one not to exceed. `narrow` are the
    pairs of devices that carry least, `over` is what limits them (null: of nothing that they cross
    is the rate known)."""

    theoretical: float | None = None
    achievable: float | None = None
    because: str = ""
    narrow: tuple[str, ...] = ()
    over: str | None = None

    @property
    def figure(self) -> float | None:
        return self.achievable or self.theoretical


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """What so many devices do: `points` by size, the `floor` in seconds (the least time of any
    size), the `plateau` (the most busbw of any size; of one device null), reached at the size
    `at`, the `efficiency` (the plateau's share of what is expected: of what is achievable, else of
    the theoretical bound; null: nothing is), the `verdict` on it, and the `line` through the times
    (null: too few sizes)."""

    gpus: int
    points: tuple[At, ...]
    expected: Bound
    floor: float | None = None
    plateau: float | None = None
    at: int | None = None
    efficiency: float | None = None
    verdict: Verdict = "unknown"
    line: SizeLine | None = None


class Knee(msgspec.Struct, frozen=True):
    """The first number of devices whose plateau is clearly below the best so far, that of `best`
    devices: `left` is its share of that. `because` names what became the bottleneck, null if
    nothing in the machine's map does."""

    gpus: int
    best: int
    left: float
    because: str | None = None


class PairRate(msgspec.Struct, frozen=True):
    """A pair of devices of a collective, measured alone: bytes/s, and what is expected."""

    pair: str
    rate: float
    expected: float | None = None
    slow: bool = False


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """A collective over the first N of the `devices`, for each of the `counts`. `below` are the
    numbers of devices whose plateau is clearly below what is expected; `pairs` were then measured
    alone. Each device is a `member`: where it stands for a node, that. `problems` are of what did
    not pass, which is in none of the points."""

    schema: Literal["linkgauge.scale/1"] = SCHEMA
    id: str
    label: str
    simulated: bool = False
    command: tuple[str, ...] = ()
    started: str
    finished: str | None
    collective: Collective
    backend: str
    devices: tuple[str, ...]
    counts: tuple[Count, ...]
    knee: Knee | None = None
    below: tuple[int, ...] = ()
    pairs: tuple[PairRate, ...] = ()
    problems: tuple[str, ...] = ()
    member: Member = "GPU"
