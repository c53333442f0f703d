"""Messages between rank 0, which controls a run, and its member in every rank. Each command has one
answer, in the order of the commands, except for those that say that they have no answer."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from linkgauge.engine.workers.messages import Heartbeat, Measure
from linkgauge.machine.processes.channel import Answer, Reason, decoder
from linkgauge.model.hardware.inventory import Interface
from linkgauge.model.hardware.machine import Device
from linkgauge.model.ranks import Rank
from linkgauge.model.settings import Settings

PROTOCOL = 3
"""The version of these messages. Ranks understand the cards of other versions."""


class Card(msgspec.Struct, frozen=True, tag=True):
    """A member's first message: its identity, and the CPUs that it may use. `token` proves that it
    belongs to this launch."""

    rank: int
    host: str
    process: int
    version: str
    protocol: int = PROTOCOL
    token: bytes = b""
    cpus: tuple[int, ...] = ()


class Told(msgspec.Struct, frozen=True, tag=True):
    """Rank 0's identity, and where it keeps the run, for a member that has to record the loss of
    rank 0. No answer."""

    first: Rank
    journal: str | None = None


class ShowProgress(msgspec.Struct, frozen=True, tag=True):
    """Rank 0 says in words what the run does from here on. Members do not answer it."""

    words: str


class Open(msgspec.Struct, frozen=True, tag=True):
    """Asks the member to open its device of this backend and, if asked, its GPU beside network
    interfaces. `hosts` are the names of all ranks' machines. Answered by `Present`."""

    backend: str
    settings: Settings
    with_gpu: bool = False
    hosts: tuple[str, ...] = ()


class Present(msgspec.Struct, frozen=True):
    """The member's device, or the `problem` that leaves it without one. `nics` are the network
    interfaces that it measures with, and `gpu` is the GPU beside them; `lacks_gpu` says why there
    is none."""

    device: Device | None
    problem: str | None = None
    nics: tuple[Interface, ...] = ()
    gpu: Device | None = None
    lacks_gpu: str | None = None


class Hold(msgspec.Struct, frozen=True, tag=True):
    """Asks the member to keep other runs from measuring its device."""


class ReadAccelerators(msgspec.Struct, frozen=True, tag=True):
    """Asks for all that is known of the accelerators. Answered by an `Inventory`."""


class ReadClock(msgspec.Struct, frozen=True, tag=True):
    """Asks for the member's monotonic clock, in seconds."""


class Ping(msgspec.Struct, frozen=True, tag=True):
    """Asks for a sign of life, which `Pong` gives at once, whatever else the receiver does. A
    member sends it, too, if it has heard nothing from rank 0 for too long."""


class Pong(msgspec.Struct, frozen=True, tag=True):
    """A sign of life: the answer to `Ping`. Rank 0 also sends it unasked. No answer."""


class EndRun(msgspec.Struct, frozen=True, tag="End"):
    """Ends the run: the members leave, in an orderly way unless a rank was `lost`. No answer. The
    message keeps its tag, because ranks of other versions understand it, too."""

    lost: bool = False


class TakePart(msgspec.Struct, frozen=True, tag=True):
    """Asks a rank to measure its part of this work with the other `parties`, all at the same time.
    `shared` names memories of devices that several ranks have; `anew` discards what earlier visits
    of these cells established. Answered by the results, or by none if they are the same as the
    first party's."""

    work: Measure
    parties: tuple[int, ...]
    shared: tuple[str, ...] = ()
    anew: bool = False


class Said(msgspec.Struct, frozen=True):
    """One rank's contribution to a meeting: a value, or the reason why there is none."""

    value: msgspec.Raw
    reason: Reason | None = None


class Meet(msgspec.Struct, frozen=True, tag=True):
    """A party's message to rank 0 at a meeting; rank 0 answers all with `Met`, or with `PartyLeft`.
    Each party moves at most `moved` bytes before its next message. With `start`, the answer says
    when to begin; `late` says whether the last such time had passed when its answer came."""

    said: Said
    moved: int = 0
    start: bool = False
    late: bool = False


class Met(msgspec.Struct, frozen=True, tag=True):
    """All ranks' values, by rank; the starting time by rank 0's clock, and how many seconds the
    receiver's own clock is ahead of it."""

    said: Mapping[int, Said]
    at: float | None = None
    ahead: float = 0.0


class PartyLeft(msgspec.Struct, frozen=True, tag=True):
    """A party has left the cell, so the others cannot measure it."""

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
