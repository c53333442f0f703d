"""What `linkgauge scale` writes. nccl-tests defines `busbw` and `algbw` (doc/PERFORMANCE.md)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from linkgauge.model.curves import SizeLine
from linkgauge.model.operations.collective import Collective
from linkgauge.model.printable import BriefRepr

from .result import RunVerdict, Verdict

Member = Literal["GPU", "node"]
"""The kind of participants in a collective."""
SCHEMA: Literal["linkgauge.scale/1"] = "linkgauge.scale/1"


class At(msgspec.Struct, frozen=True):
    """A collective at one size, with its time and bandwidths.

    size: The size in bytes.
    seconds: Seconds that the collective takes.
    algbw: Size ÷ time, in bytes/s.
    busbw: The bus bandwidth (rate of each link) in bytes/s; null for one device, without links."""

    size: int
    seconds: float
    algbw: float
    busbw: float | None = None


class BusbwBound(msgspec.Struct, frozen=True):
    """The limits of the busbw that follow from the links and parts of a machine.

    theoretical: The limit set by the rates of links, in bytes/s; null if unknown.
    achievable: The limit after the overhead of protocols, in bytes/s; null if a part is unknown.
    because: The arithmetic, or why no limit is known.
    narrow: The pairs of devices with the lowest limit.
    over: The link or part that limits the pairs in `narrow`; null if their rates are unknown.
    least: The rate of rings in bytes/s, without reductions in the switch; null if unknown.
    reduced: The rate with reductions in the switch, in bytes/s; null unless faster than rings."""

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
    """The results of a collective over one number of devices.

    gpus: The number of devices.
    points: The measured points, one for each size.
    expected: The limits that follow from the links and parts of the machine.
    floor: The shortest time among all sizes, in seconds; null without points.
    plateau: The highest busbw among all sizes, in bytes/s; null for one device, and without points.
    at: The size in bytes at which the plateau is reached; null without a plateau.
    efficiency: The plateau as a share of the achievable (else theoretical) limit; null if unknown.
    verdict: Whether the plateau is as expected.
    line: Hockney's line through the times; null for too few sizes."""

    gpus: int
    points: tuple[At, ...]
    expected: BusbwBound
    floor: float | None = None
    plateau: float | None = None
    at: int | None = None
    efficiency: float | None = None
    verdict: Verdict = "not judged"
    line: SizeLine | None = None


class Knee(msgspec.Struct, frozen=True):
    """The first number of devices whose plateau is clearly below the best plateau so far.

    gpus: The number of devices at the knee.
    best: The number of devices with the best plateau before the knee.
    left: The plateau at the knee as a share of the best plateau, from 0 to 1.
    because: The part that became the bottleneck; null if no link or part explains the loss."""

    gpus: int
    best: int
    left: float
    because: str | None = None


class PairRate(msgspec.Struct, frozen=True):
    """The rate of two devices of a collective, measured while no other pair was busy.

    pair: The pair, as `0 -> 1`.
    rate: The measured rate in bytes/s.
    expected: The rate in bytes/s that the pair should achieve; null if unknown.
    slow: Whether the rate is clearly below the expected rate or, if unknown, below other pairs."""

    pair: str
    rate: float
    expected: float | None = None
    slow: bool = False


class Scaling(BriefRepr, msgspec.Struct, frozen=True, kw_only=True):
    """A collective over an increasing number of devices, as kept in `scale.json`.

    schema: The kind and version of the document.
    verdict: The verdict on the run; absent in files, because a run is judged when it is read.
    exit_code: The exit code of the command; absent in files.
    findings: The doctor's findings about what was measured; absent in files.
    id: The run's name: the name of its folder, or its start time if it is not kept.
    label: The label that the user gave.
    simulated: Whether it was measured on a simulated machine.
    command: The command line, argument by argument.
    started: When it began (ISO 8601, UTC).
    finished: When it ended (ISO 8601, UTC); null if it was interrupted.
    collective: The collective, with the options of its calls.
    backend: The backend that measured it.
    devices: All devices, in the order in which they are added.
    counts: The results for each number of devices.
    knee: Where the plateau falls; null if the plateau never falls.
    below: The numbers of devices whose plateau is clearly below the expected one.
    pairs: The pairs of devices that were measured alone afterwards.
    problems: The cells that did not pass. Points are computed without them.
    member: What each device represents: a GPU or a node."""

    schema: Literal["linkgauge.scale/1"] = SCHEMA
    verdict: RunVerdict | msgspec.UnsetType = msgspec.UNSET
    exit_code: int | msgspec.UnsetType = msgspec.UNSET
    findings: tuple[Any, ...] | msgspec.UnsetType = msgspec.UNSET
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
