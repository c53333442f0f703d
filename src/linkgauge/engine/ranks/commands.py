"""Messages between rank 0, which controls a run, and the member in every rank. Each command has one
answer, in the order of the commands, unless the command says otherwise."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from linkgauge.engine.workers.messages import Heartbeat, Measure
from linkgauge.machine.processes.channel import Answer, Reason, decoder
from linkgauge.model.documents.result import CellResult
from linkgauge.model.hardware.inventory import Interface
from linkgauge.model.hardware.machine import Device
from linkgauge.model.hardware.network import CounterRise
from linkgauge.model.ranks import Rank
from linkgauge.model.settings import Settings

PROTOCOL = 5
"""The version of the messages. Ranks understand the cards of other versions."""


class Card(msgspec.Struct, frozen=True, tag=True):
    """The first message of a member. It states who the member is and which CPUs it may use. `token`
    proves that the member belongs to this launch. `commit` is that of its checkout, if it runs from
    one."""

    rank: int
    host: str
    process: int
    version: str
    protocol: int = PROTOCOL
    token: bytes = b""
    cpus: tuple[int, ...] = ()
    commit: str | None = None


class Admitted(msgspec.Struct, frozen=True, tag=True):
    """Says that rank 0 has admitted the member, and who rank 0 is. The member names rank 0 if it is
    lost. There is no answer."""

    first: Rank


class Open(msgspec.Struct, frozen=True, tag=True):
    """Asks the member to open its device of this backend. With `with_gpu`, also asks it to open its
    GPU, for a run that measures network interfaces. `hosts` are the names of all ranks' machines.
    The answer is `Present`."""

    backend: str
    settings: Settings
    with_gpu: bool = False
    hosts: tuple[str, ...] = ()


class Present(msgspec.Struct, frozen=True):
    """The answer to `Open`. `device` is the member's device, and `problem` says why it has none.
    `nics` are the network interfaces that it measures with. `gpu` is the GPU that it also opened,
    and `lacks_gpu` says why there is none."""

    device: Device | None
    problem: str | None = None
    nics: tuple[Interface, ...] = ()
    gpu: Device | None = None
    lacks_gpu: str | None = None


class Hold(msgspec.Struct, frozen=True, tag=True):
    """Asks the member to reserve its device, so that no other run measures it."""


class ReadAccelerators(msgspec.Struct, frozen=True, tag=True):
    """Asks for all that is known of the accelerators. The answer is an `Inventory`."""


class ReadClock(msgspec.Struct, frozen=True, tag=True):
    """Asks for the member's monotonic clock, in seconds."""


class Ping(msgspec.Struct, frozen=True, tag=True):
    """Asks for a sign of life. The receiver answers `Pong` at once, even during other work. A
    member also sends a `Ping` if it has heard nothing from rank 0 for too long."""


class Pong(msgspec.Struct, frozen=True, tag=True):
    """A sign of life, which answers `Ping`. Rank 0 also sends it without being asked. There is no
    answer. `waited` is how many seconds a member has waited for CPUs since it began its work."""

    waited: float = 0.0


class EndRun(msgspec.Struct, frozen=True, tag="End"):
    """Ends the run. The members leave, in an orderly way unless a rank was `lost`. There is no
    answer. The message always keeps the same tag, so that ranks of other versions understand it."""

    lost: bool = False


class TakePart(msgspec.Struct, frozen=True, tag=True):
    """Asks a rank to measure its part of this work at the same time as the other `parties` (ranks).
    `shared` names memories of devices that several ranks use. `anew` discards what earlier
    repetitions of these cells determined. The answer is `PartTaken`."""

    work: Measure
    parties: tuple[int, ...]
    shared: tuple[str, ...] = ()
    anew: bool = False


class PartTaken(msgspec.Struct, frozen=True):
    """What a rank found as it took part. Only the first party has to send results. `rises` is what
    its machine counted of the network meanwhile."""

    cells: tuple[CellResult, ...] = ()
    rises: tuple[CounterRise, ...] = ()


class Said(msgspec.Struct, frozen=True):
    """One rank's contribution to a meeting: a value, or the reason why there is none."""

    value: msgspec.Raw
    reason: Reason | None = None


class Meet(msgspec.Struct, frozen=True, tag=True):
    """The message of a party to rank 0 at a meeting. Rank 0 answers `Met` or `PartyLeft` to all
    parties. `moved` is the most bytes that a party moves before its next message. With `start`, the
    answer says when to begin. `late` says that the previous start time had already passed when rank
    0's answer with it arrived."""

    said: Said
    moved: int = 0
    start: bool = False
    late: bool = False


class Met(msgspec.Struct, frozen=True, tag=True):
    """Rank 0's answer at a meeting. `said` has the values of all ranks, by rank. `at` is the time
    to start, by rank 0's clock. `ahead` is how many seconds the receiver's clock is ahead of rank
    0's."""

    said: Mapping[int, Said]
    at: float | None = None
    ahead: float = 0.0


class PartyLeft(msgspec.Struct, frozen=True, tag=True):
    """A party has left the cell, so the other parties cannot measure the cell."""

    why: str


Command = (
    Admitted
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
