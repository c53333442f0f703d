"""Messages between rank 0, which controls a run, and the member of it in every rank. A command is
answered once, in the order in which commands come, but for those that say that they have no
answer."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from linkgauge.engine.workers.messages import Heartbeat, Measure
from linkgauge.machine.channel import Answer, Reason, decoder
from linkgauge.model.hardware.inventory import Interface
from linkgauge.model.hardware.machine import Device
from linkgauge.model.ranks import Rank
from linkgauge.model.settings import Settings

PROTOCOL = 3
"""The version of these messages: ranks understand each other's cards whatever theirs is."""


class Card(msgspec.Struct, frozen=True, tag=True):
    """What a member says first: who it is, and which CPUs it may use. `token` shows that it is of
    this launch."""

    rank: int
    host: str
    process: int
    version: str
    protocol: int = PROTOCOL
    token: bytes = b""
    cpus: tuple[int, ...] = ()


class Told(msgspec.Struct, frozen=True, tag=True):
    """Who rank 0 is, and where it keeps the run, for whoever has to write down that it is gone. No
    answer."""

    first: Rank
    journal: str | None = None


class ShowProgress(msgspec.Struct, frozen=True, tag=True):
    """Rank 0 says in words what the run does from here on. Members do not answer it."""

    words: str


class Open(msgspec.Struct, frozen=True, tag=True):
    """Open what the member measures with: its device of this backend, beside network interfaces
    with its GPU if it is asked for. `hosts` are the names of all ranks' machines. Answered by
    `Present`."""

    backend: str
    settings: Settings
    with_gpu: bool = False
    hosts: tuple[str, ...] = ()


class Present(msgspec.Struct, frozen=True):
    """The member's device; or the `problem` that leaves it without one. With `nics`, the network
    interfaces that it measures with, and the GPU beside them, or why there is none."""

    device: Device | None
    problem: str | None = None
    nics: tuple[Interface, ...] = ()
    gpu: Device | None = None
    lacks_gpu: str | None = None


class Hold(msgspec.Struct, frozen=True, tag=True):
    """Keep other runs from measuring the member's device."""


class ReadAccelerators(msgspec.Struct, frozen=True, tag=True):
    """Asks for what is known of the accelerators by now. Answered by an `Inventory`."""


class ReadClock(msgspec.Struct, frozen=True, tag=True):
    """The member's monotonic clock, in seconds."""


class Ping(msgspec.Struct, frozen=True, tag=True):
    """Answered at once by `Pong`, whatever else the member does. Rank 0 hears it from a member that
    has heard nothing of it for too long."""


class Pong(msgspec.Struct, frozen=True, tag=True):
    """A sign of life: the answer to `Ping`; rank 0 gives it unasked, too. No answer."""


class EndRun(msgspec.Struct, frozen=True, tag="End"):
    """The run is over: leave, in peace with all others unless a rank was `lost`. No answer. Its
    word stays as it is: ranks of other versions understand it, too."""

    lost: bool = False


class TakePart(msgspec.Struct, frozen=True, tag=True):
    """Carry out one's part of this work with the other `parties`, whose ranks all do the same at
    the same time. Memories in `shared` are of devices that several ranks have; with `anew`, what
    earlier visits of these cells established is forgotten. Answered by the results, or by none if
    they are those of the first party."""

    work: Measure
    parties: tuple[int, ...]
    shared: tuple[str, ...] = ()
    anew: bool = False


class Said(msgspec.Struct, frozen=True):
    """What one rank says where ranks meet: a value; or why it has none."""

    value: msgspec.Raw
    reason: Reason | None = None


class Meet(msgspec.Struct, frozen=True, tag=True):
    """Said to rank 0 by all parties before any goes on; answered by `Met`, or by `PartyLeft`. Each
    moves at most `moved` bytes before its next word. With `start`, they are told when to begin;
    `late` is whether the last time had passed when it came."""

    said: Said
    moved: int = 0
    start: bool = False
    late: bool = False


class Met(msgspec.Struct, frozen=True, tag=True):
    """What all have said, by rank; when to start by rank 0's clock, and by how many seconds one's
    own is ahead of it."""

    said: Mapping[int, Said]
    at: float | None = None
    ahead: float = 0.0


class PartyLeft(msgspec.Struct, frozen=True, tag=True):
    """A party has left the cell: nothing comes of it for the others."""

    why: str


Command = (
    Told
    | ShowProgress
    | Open
    | Hold
    | ReadAccelerators
    | ReadClock
    | TakePart
    | Met
    | PartyLeft
    | Ping
    | Pong
    | EndRun
)

Reply = Card | Answer | Heartbeat | Meet | Ping | Pong

decode_command = decoder(Command)
decode_reply = decoder(Reply)
