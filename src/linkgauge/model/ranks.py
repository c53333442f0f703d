"""The processes of a run that several processes measure, each a rank."""

from __future__ import annotations

import msgspec

from .errors import LinkgaugeError, OutcomeKind
from .inventory import Interface


class Rank(msgspec.Struct, frozen=True):
    """A process of a run.

    number: The rank's number, from 0.
    host: The name of its host.
    process: Its process id.
    memory: The memory that it measures with, in the notation; null until it is known.
    model: The model of its accelerator; null until it is known, or without one.
    ahead: How far its monotonic clock is ahead of rank 0's, in seconds; null if it was not
        compared.
    unsure: By how much that may be off, in seconds; null if it was not compared.
    nics: The network interfaces of its machine, if these are measured.
    """

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
    """More ranks on a machine than CPUs that they may use.

    host: The machine's name.
    ranks: The number of ranks.
    cpus: The number of CPUs.
    """

    host: str
    ranks: int
    cpus: int


class LostRank(msgspec.Struct, frozen=True):
    """The rank that ended a run by its own end, or by its silence.

    number: The rank's number.
    how: A sentence that says how it ended.
    doing: What the run was doing then.
    host: The name of its host; null if unknown.
    process: Its process id; null if unknown.
    memory: Its memory, in the notation; null if unknown.
    """

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
