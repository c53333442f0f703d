"""Messages between rank 0, which controls a run, and the member in every rank. A member answers
each command once and in order, unless the docstring of a command says otherwise."""

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
    """The first message of a member: who it is, and which CPUs it may use. `token` proves that it
    belongs to this launch. `commit` is its git commit, if it runs from a checkout."""

    rank: int
    host: str
    process: int
    version: str
    protocol: int = PROTOCOL
    token: bytes = b""
    cpus: tuple[int, ...] = ()
    commit: str | None = None


class Admitted(msgspec.Struct, frozen=True, tag=True):
    """Tells the member that it was admitted, and who rank 0 is. It is not answered."""

    first: Rank


class Open(msgspec.Struct, frozen=True, tag=True):
    """Asks the member to open its device of this backend. If `with_gpu` is true, it also opens its
    GPU, for runs over interfaces. `hosts` are all ranks' hosts. The answer is `Present`."""

    backend: str
    settings: Settings
    with_gpu: bool = False
    hosts: tuple[str, ...] = ()


class Present(msgspec.Struct, frozen=True):
    """The answer to `Open`: the member's device, or why it has none (`problem`); its network
    interfaces; its GPU, if `Open` asked for that, or why it has none (`lacks_gpu`)."""

    device: Device | None
    problem: str | None = None
    nics: tuple[Interface, ...] = ()
    gpu: Device | None = None
    lacks_gpu: str | None = None


class Hold(msgspec.Struct, frozen=True, tag=True):
    """Asks the member to reserve its device, so that no other run measures it."""


class ReadAccelerators(msgspec.Struct, frozen=True, tag=True):
    """Asks for all that is known about the accelerators. The answer is an `Inventory`."""


class ReadClock(msgspec.Struct, frozen=True, tag=True):
    """Asks for the time of the member's monotonic clock, in seconds."""


class Ping(msgspec.Struct, frozen=True, tag=True):
    """Asks for a `Pong`, which the receiver sends at once, even during other work. A member also
    sends it if rank 0 has been silent for too long."""


class Pong(msgspec.Struct, frozen=True, tag=True):
    """The answer to a `Ping`. Rank 0 also sends a `Pong` unasked, as a sign of life. `waited` is
    how many seconds a member has waited for CPUs since it began its current work."""

    waited: float = 0.0


class EndRun(msgspec.Struct, frozen=True, tag="End"):
    """Ends the run: the members leave, in an orderly way unless a rank was `lost`. It is not
    answered. Its tag never changes, so that ranks of other versions understand it."""

    lost: bool = False


class TakePart(msgspec.Struct, frozen=True, tag=True):
    """Asks a rank to measure its part of this work together with the other ranks in `parties`.
    `shared` are the memories of devices that several ranks use. If `anew` is true, the rank
    discards facts from earlier repetitions. The answer is `PartTaken`."""

    work: Measure
    parties: tuple[int, ...]
    shared: tuple[str, ...] = ()
    anew: bool = False


class PartTaken(msgspec.Struct, frozen=True):
    """The answer to `TakePart`: results from the cell's first rank, network counts from all."""

    cells: tuple[CellResult, ...] = ()
    rises: tuple[CounterRise, ...] = ()


class Said(msgspec.Struct, frozen=True):
    value: msgspec.Raw
    reason: Reason | None = None


class Meet(msgspec.Struct, frozen=True, tag=True):
    """A rank's message in an exchange. Rank 0 answers all ranks with `Met` or `PartyLeft`. `moved`
    is the most bytes that the rank moves before its next message. If `start` is true, the answer
    sets a start time. `late` is true if the last answer came after its start time."""

    said: Said
    moved: int = 0
    start: bool = False
    late: bool = False


class Met(msgspec.Struct, frozen=True, tag=True):
    """Rank 0's answer to `Meet`: the values of all ranks (`said`), the time to start by rank 0's
    clock (`at`), and how many seconds the receiver's clock is ahead of rank 0's (`ahead`)."""

    said: Mapping[int, Said]
    at: float | None = None
    ahead: float = 0.0


class PartyLeft(msgspec.Struct, frozen=True, tag=True):
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
