"""The processes of a run that several processes measure, each a rank."""

from __future__ import annotations

import msgspec

from .errors import LinkgaugeError, OutcomeKind
from .inventory import Interface


class Rank(msgspec.Struct, frozen=True):
    """A process of a run: its number, where it is, and the memory it measures with (null until it
    is known), with the network interfaces of its machine if these are measured. Its monotonic clock
    is `ahead` seconds of rank 0's, give or take `unsure` seconds (null: not compared)."""

    number: int
    host: str
    process: int
    memory: str | None = None
    model: str | None = None
    ahead: float | None = None
    unsure: float | None = None
    nics: tuple[Interface, ...] = ()

    def __str__(self) -> str:
        where = ", ".join(filter(None, (self.host, f"process {self.process}", self.memory)))
        return f"rank {self.number} ({where})"


class Crowd(msgspec.Struct, frozen=True):
    """More ranks on a machine than CPUs that they may use."""

    host: str
    ranks: int
    cpus: int


class LostRank(msgspec.Struct, frozen=True):
    """The rank that ended a run by its own end, or by its silence: `how` says it in words,
    `doing` is what the run was at."""

    number: int
    how: str
    doing: str
    host: str | None = None
    process: int | None = None
    memory: str | None = None

    def __str__(self) -> str:
        process = None if self.process is None else f"process {self.process}"
        where = ", ".join(filter(None, (self.host, process, self.memory)))
        named = f"rank {self.number} ({where})" if where else f"rank {self.number}"
        return f"{named} {self.how} while {self.doing}"


class RankLost(LinkgaugeError):
    """A rank ended, or does not answer: the run cannot go on."""

    def __init__(self, lost: LostRank, kind: OutcomeKind = "crash") -> None:
        super().__init__(str(lost))
        self.lost = lost
        self.kind = kind
