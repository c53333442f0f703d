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
    """The first message of a member: who it is, and which CPUs it may use. `token` proves that it
    belongs to this launch. `commit` is that of its checkout, if it runs from one."""

    rank: int
    host: str
    process: int
    version: str
    protocol: int = PROTOCOL
    token: bytes = b""
    cpus: tuple[int, ...] = ()
    commit: str | None = None


class Admitted(msgspec.Struct, frozen=True, tag=True):
    """Says that rank 0 has admitted the member, and who rank 0 is. There is no answer."""

    first: Rank


class Open(msgspec.Struct, frozen=True, tag=True):
    """Asks the member to open its device of this backend and, with `with_gpu`, its GPU, for a run
    that measures network interfaces. `hosts` names all ranks' machines. The answer is `Present`."""

    backend: str
    settings: Settings
    with_gpu: bool = False
    hosts: tuple[str, ...] = ()


class Present(msgspec.Struct, frozen=True):
    """The answer to `Open`: the member's device, or why it has none (`problem`); the interfaces
    that it measures with; the GPU that it also opened, or why there is none (`lacks_gpu`)."""

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
    """Asks for `Pong` at once, even during other work, as a sign of life. A member also asks if it
    has heard nothing from rank 0 for too long."""


class Pong(msgspec.Struct, frozen=True, tag=True):
    """A sign of life, without an answer. Rank 0 also sends it without being asked. `waited` is how
    many seconds a member has waited for CPUs since it began its work."""

    waited: float = 0.0


class EndRun(msgspec.Struct, frozen=True, tag="End"):
    """Ends the run. The members leave, in an orderly way unless a rank was `lost`. There is no
    answer. The tag never changes, so that ranks of other versions understand it."""

    lost: bool = False


class TakePart(msgspec.Struct, frozen=True, tag=True):
    """Asks a rank to measure its part of this work at the same time as the other `parties` (ranks).
    `shared` names memories of devices that several ranks use. `anew` discards what earlier
    repetitions determined. The answer is `PartTaken`."""

    work: Measure
    parties: tuple[int, ...]
    shared: tuple[str, ...] = ()
    anew: bool = False


class PartTaken(msgspec.Struct, frozen=True):
    """What a rank found: results, if it is the first party, and its network's counts."""

    cells: tuple[CellResult, ...] = ()
    rises: tuple[CounterRise, ...] = ()


class Said(msgspec.Struct, frozen=True):
    value: msgspec.Raw
    reason: Reason | None = None


class Meet(msgspec.Struct, frozen=True, tag=True):
    """A party's message to rank 0 at a meeting, which answers `Met` or `PartyLeft` to all parties.
    `moved` is the most bytes that a party moves before its next message. With `start`, the answer
    says when to begin. `late` says that the previous answer came after its start time."""

    said: Said
    moved: int = 0
    start: bool = False
    late: bool = False


class Met(msgspec.Struct, frozen=True, tag=True):
    """Rank 0's answer at a meeting: the values of all ranks (`said`), the time to start by rank 0's
    clock (`at`), and the seconds that the receiver's clock is ahead of it (`ahead`)."""

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
