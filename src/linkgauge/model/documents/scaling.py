"""The output of `linkgauge scale`: a collective over more and more devices.

Absent is null, never 0; figures are in SI base units. `busbw` and `algbw` are as nccl-tests defines
them (doc/PERFORMANCE.md): the rate of a link if all ranks have equal links, and size by time."""

from __future__ import annotations

from typing import Literal

import msgspec

from linkgauge.model.curves import SizeLine
from linkgauge.model.operations.collective import Collective

from .result import Verdict

Member = Literal["GPU", "node"]
"""The kind of participants in a collective."""
SCHEMA: Literal["linkgauge.scale/1"] = "linkgauge.scale/1"


class At(msgspec.Struct, frozen=True):
    """A collective at one size.

    size: The size in bytes.
    seconds: Seconds that it takes.
    algbw: The size by the time, in bytes/s.
    busbw: The rate of a link, in bytes/s; null for one device, which uses no link."""

    size: int
    seconds: float
    algbw: float
    busbw: float | None = None


class BusbwBound(msgspec.Struct, frozen=True):
    """The limits of the busbw that follow from a machine's map.

    theoretical: The limit by the rates of links, in bytes/s; null if unknown.
    achievable: The limit after the overhead of protocols, in bytes/s; null if a part of the way is
        unknown, as `because` says.
    because: The arithmetic, or why there is none.
    narrow: The pairs of devices with the lowest limit.
    over: The link or part that limits these; null if no rate on their way is known.
    least: The rate that rings reach alone, in bytes/s: as many rings as have links of their own
        if the library is known to use them, else one ring in the order of the devices; null if
        unknown.
    reduced: The rate that reductions in the switch reach after the overhead of protocols, in
        bytes/s; null if no switch can reduce, or rings reach as much.
    """

    theoretical: float | None = None
    achievable: float | None = None
    because: str = ""
    narrow: tuple[str, ...] = ()
    over: str | None = None
    least: float | None = None
    reduced: float | None = None

    @property
    def figure(self) -> float | None:
        return self.achievable or self.theoretical


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """A collective over one number of devices.

    gpus: The number of devices.
    points: Its points, by size.
    expected: The limits that follow from the machine's map.
    floor: The least time of any size, in seconds; null without points.
    plateau: The highest busbw of any size, in bytes/s; null for one device, and without points.
    at: The size in bytes at which the plateau is reached; null without one.
    efficiency: The plateau's share of the achievable limit, else of the theoretical one; null if
        there is none.
    verdict: Whether the plateau is as expected.
    line: The line through the times; null for too few sizes."""

    gpus: int
    points: tuple[At, ...]
    expected: BusbwBound
    floor: float | None = None
    plateau: float | None = None
    at: int | None = None
    efficiency: float | None = None
    verdict: Verdict = "unknown"
    line: SizeLine | None = None


class Knee(msgspec.Struct, frozen=True):
    """The first number of devices whose plateau is clearly below the best so far.

    gpus: That number of devices.
    best: The number of devices of the best so far.
    left: Its plateau as a share of the best one's, from 0 to 1.
    because: What became the bottleneck; null if nothing in the machine's map does."""

    gpus: int
    best: int
    left: float
    because: str | None = None


class PairRate(msgspec.Struct, frozen=True):
    """A pair of devices of a collective, measured alone.

    pair: The pair, as `0 -> 1`.
    rate: Its rate in bytes/s.
    expected: The rate in bytes/s that it should achieve; null if unknown.
    slow: Whether it is clearly below that, or else below the other pairs.
    """

    pair: str
    rate: float
    expected: float | None = None
    slow: bool = False


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """A collective over more and more devices, as kept in `scale.json`.

    schema: The kind of document, and its version.
    id: The run's name: that of its folder, or its start if it is not kept.
    label: The label that it was given.
    simulated: Whether it was measured on a simulated machine.
    command: The command line, argument by argument.
    started: When it began (ISO 8601, UTC).
    finished: When it ended (ISO 8601, UTC); null if it was interrupted.
    collective: The collective, and how it is called.
    backend: The backend that measured it.
    devices: All devices, in the order in which they are added.
    counts: The results for each number of devices.
    knee: Where the plateau falls; null if it does not.
    below: The numbers of devices whose plateau is clearly below the expected one.
    pairs: The pairs that were then measured alone.
    problems: Cells that did not pass; no point includes them.
    member: The kind of thing that each device represents."""

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
