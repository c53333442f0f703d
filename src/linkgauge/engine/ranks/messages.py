"""Messages between rank 0, which controls a run, and the member of it in every rank. A command is
answered once, in the order in which commands come, but for those that say that they have no
answer."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from linkgauge.backends.member import Allocate, Begin, SharedCopy
from linkgauge.machine.channel import Answer, decoder
from linkgauge.model.errors import Phase
from linkgauge.model.inventory import Interface
from linkgauge.model.machine import Device
from linkgauge.model.ranks import Rank
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Operation, Transfer

PROTOCOL = 2
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


class Doing(msgspec.Struct, frozen=True, tag=True):
    """What the run is at from here on, in words. No answer."""

    words: str


class Open(msgspec.Struct, frozen=True, tag=True):
    """Open what the member measures with: its device of this backend, beside network interfaces
    with its GPU if it is asked for. Answered by `Present`."""

    backend: str
    settings: Settings
    with_gpu: bool = False


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


class Look(msgspec.Struct, frozen=True, tag=True):
    """Asks for what is known of the accelerators by now. Answered by an `Inventory`."""


class Clock(msgspec.Struct, frozen=True, tag=True):
    """The member's monotonic clock, in seconds."""


class Virtual(msgspec.Struct, frozen=True, tag=True):
    """The time of the member's simulated machine, in seconds."""


class Refuses(msgspec.Struct, frozen=True, tag=True):
    """Answered by a `Reason`: null if the member carries the transfer out."""

    transfer: Transfer


class Remarks(msgspec.Struct, frozen=True, tag=True):
    transfer: Transfer


class Free(msgspec.Struct, frozen=True, tag=True):
    """Free a buffer of one's own, or let go of another rank's."""

    number: int


class Fill(msgspec.Struct, frozen=True, tag=True):
    number: int
    size: int
    pattern: int
    seed: int
    inverted: bool


class Mismatch(msgspec.Struct, frozen=True, tag=True):
    number: int
    size: int
    pattern: int
    seed: int


class Checksum(msgspec.Struct, frozen=True, tag=True):
    number: int
    size: int


class Token(msgspec.Struct, frozen=True, tag=True):
    """Asks for a token by which a group of ranks founds its communicator, such as NCCL's unique id.
    Answered by bytes."""


class Reach(msgspec.Struct, frozen=True, tag=True):
    """Asks whether one's engine reaches the memories of these copies, which are on several
    machines. Answered by a tuple: of each copy why not, null if it does."""

    copies: tuple[SharedCopy, ...]


class Prepare(msgspec.Struct, frozen=True, tag=True):
    """Prepare one's part of these copies. Answered by `Prepared`. Of a collective, `tokens` has one
    for each of its groups, if members of this backend need any; of copies, one for each, empty for
    those whose engine reaches both memories. The same tokens come with all collectives of the same
    groups, and with all copies from one rank to another."""

    copies: tuple[SharedCopy, ...]
    operation: Operation
    tokens: tuple[bytes, ...] = ()


class Arm(msgspec.Struct, frozen=True, tag=True):
    loops: int
    laps: int


class Iterate(msgspec.Struct, frozen=True, tag=True):
    """Time so many single iterations of the collective that is prepared. Answered by the seconds of
    each."""

    count: int


class Check(msgspec.Struct, frozen=True, tag=True):
    """Fill one's buffers, carry the collective out once, and check one's result. Answered by
    `Wrong`, of its own alone."""


class Close(msgspec.Struct, frozen=True, tag=True):
    """Close what is prepared, if anything is."""


class Enter(msgspec.Struct, frozen=True, tag=True):
    """A phase of cells begins on a simulated machine."""

    cells: Mapping[int, tuple[Transfer, ...]]
    phase: Phase
    visit: int
    taken: int


class Ping(msgspec.Struct, frozen=True, tag=True):
    """Answered at once by `Pong`, whatever else the member does. Rank 0 hears it from a member that
    has heard nothing of it for too long."""


class Pong(msgspec.Struct, frozen=True, tag=True):
    """A sign of life: the answer to `Ping`; rank 0 gives it unasked, too. No answer."""


class End(msgspec.Struct, frozen=True, tag=True):
    """The run is over: leave, in peace with all others unless a rank was `lost`. No answer."""

    lost: bool = False


Command = (
    Told | Doing | Open | Hold | Look | Clock | Virtual | Refuses | Remarks | Allocate | Free
    | Fill | Mismatch | Checksum | Token | Reach | Prepare | Arm | Begin | Iterate | Check | Close
    | Enter | Ping | Pong | End
)  # fmt: skip


Reply = Card | Answer | Ping | Pong

decode_command = decoder(Command)
decode_reply = decoder(Reply)
