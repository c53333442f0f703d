"""Members without devices: the memories of their hosts, between which MPI moves bytes.

`rma` is one-sided: the engine's owner puts (MPI_Put, if it has the source) or gets (MPI_Get) into
or from a window of the other rank, and flushes. `msg` are messages (MPI_Isend, MPI_Irecv); with the
destination's engine they are asked for, with the source's the last is acknowledged. A broadcast is
MPI's. Time is taken by the engine's owner, from before the first call until everything is there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from linkgauge.backends import native
from linkgauge.backends.member import (
    Allocate,
    Allocated,
    Begin,
    Ended,
    Member,
    Prepared,
    SharedCopy,
    await_time,
)
from linkgauge.backends.protocol import Pace, Pattern, Wrong
from linkgauge.backends.rank_memory import HostMemory
from linkgauge.backends.rules import check_alone, lacking
from linkgauge.machine.launch import Launch
from linkgauge.model.collective import Collective
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.machine import Device
from linkgauge.model.memory import Memory
from linkgauge.model.operation import OperationName, named
from linkgauge.model.result import Placement
from linkgauge.model.transfer import Transfer
from linkgauge.model.units import approximate_size

from .collectives import Communicators, MpiCollective, RankPart, part_refusal
from .flags import FlagSide
from .streams import Part, Stream, broadcast_streams, message_stream, run
from .world import mpi_errors, world

PACE = Pace(seconds=0.02, loops=2)
SLOW_CALLS = 50e-6
"""Seconds of a copy below which the calls that Python makes are part of its figure."""
_BY_PYTHON = "Python's time to call MPI is part of theirs"


_ELSEWHERE = Allocated(Placement("", 0), (), b"")
"""What is known of another rank's part of a window."""


class _Block:
    """A buffer: memory of this process, or its window, which these ranks have a part of (none:
    all)."""

    def __init__(
        self,
        address: int,
        size: int,
        pages: Any = None,
        window: Any = None,
        ranks: tuple[int, ...] = (),
    ) -> None:
        self.address = address
        self.size = size
        self.pages = pages
        self.window = window
        self._ranks = ranks

    def place_of(self, rank: int) -> int:
        """The rank's number among those that have the window."""
        return self._ranks.index(rank) if self._ranks else rank


class MpiMember(Member):
    """This process and its host's memory. MPI moves others' bytes, and ends their collective calls,
    only while it is called (MPI 4.1, 2.9: progress)."""

    others_wait = True

    def __init__(self, launch: Launch, mpi: Any) -> None:
        self._mpi = mpi
        self._comm = mpi.COMM_WORLD
        self._rank = launch.rank
        self._host = HostMemory(launch.rank)
        self._cpus = self._host.cpus
        self._blocks: dict[int, _Block] = {}
        self._comms: dict[int, Any] = {}
        """Communicators of all ranks, by the rank that broadcasts."""
        self._pairs: dict[tuple[int, ...], Any] = {}
        """Communicators of some ranks, which have windows in common."""
        self._copies: Sequence[SharedCopy] = ()
        self._operation: OperationName = "copy"
        self._loops = 0
        self._ready: list[Stream] = []
        self._flags: FlagSide | None = None
        self._comms_of = Communicators(mpi)
        self._collective: MpiCollective | None = None
        self._shortest: float | None = None
        """Seconds of a loop of the copies prepared last."""

    def make_progress(self) -> None:
        with suppress(BackendError), mpi_errors("MPI_Iprobe"):  # the next call fails, too
            self._comm.Iprobe()

    def device(self) -> Device:
        library = self._mpi.Get_library_version().split(",")[0].splitlines()[0]
        return self._host.device(" ".join(library.split())[:80])

    def refusal(self, transfer: Transfer) -> str | Unsupported | None:
        if transfer.engine.kind == "ccl":
            return part_refusal(transfer)
        if transfer.engine.kind not in ("rma", "msg") or transfer.both_ways:
            return f"{transfer}: between hosts, MPI moves bytes one way, by rma or msg"
        if any(memory.kind or not memory.is_host for memory in transfer.memories):
            return f"{transfer}: MPI moves bytes between pinned host memories"
        if len(transfer.memories) < 2 or transfer.source == transfer.destination:
            return f"{transfer}: MPI moves bytes between two ranks"
        return None

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        if self._collective is not None:
            return self._collective.remarks
        if named(self._operation).from_one:
            by = "MPI_Ibcast"
        elif transfer.engine.kind == "msg":
            by = "MPI_Isend and MPI_Irecv"
        else:
            pushes = transfer.engine.owner.rank == transfer.source.rank
            by = "MPI_Put" if pushes else "MPI_Get"
        said = [f"between host memories, by {by}"]
        if self._shortest is not None and self._shortest < SLOW_CALLS:
            said.append(f"copies of less than {SLOW_CALLS * 1e6:g} us: {_BY_PYTHON}")
        return tuple(said)

    def allocate(self, command: Allocate) -> Allocated:
        mine = command.memory.rank == self._rank
        what = f"allocate {approximate_size(command.size)} of {command.memory}"
        if command.engine.kind == "rma":
            with mpi_errors(what):
                comm = self._comm_of(command.parties)
                window = self._mpi.Win.Allocate(command.size if mine else 0, 1, comm=comm)
                window.Lock_all()
            address = self._mpi.Get_address(window.tomemory()) if mine else 0
            block = _Block(address, command.size, window=window, ranks=command.parties)
            self._blocks[command.number] = block
            return self._touched(command, address) if mine else _ELSEWHERE
        pages, allocated = self._host.allocate(command)
        self._blocks[command.number] = _Block(pages.address, command.size, pages)
        return allocated

    def _comm_of(self, ranks: tuple[int, ...]) -> Any:
        """The communicator of these ranks, which all call this."""
        if len(ranks) in (0, self._comm.size):
            return self._comm
        if ranks not in self._pairs:
            group = self._comm.Get_group().Incl(ranks)
            self._pairs[ranks] = self._comm.Create_group(group)
        return self._pairs[ranks]

    def _touched(self, command: Allocate, address: int) -> Allocated:
        """A part of a window, whose pages this process touches first."""
        size = command.size
        native.fill(address, size, Pattern.CONSTANT, 0, inverted=False, cpus=self._cpus)
        placement = Placement(str(command.memory), size, native.node_of(address, size))
        memory = Memory("host", self._host.node.index)
        return Allocated(placement, tuple(native.misplaced(memory, placement)), b"")

    def free(self, number: int) -> None:
        block = self._blocks.pop(number, None)
        if block is None:
            return
        if block.pages is not None:
            block.pages.close()
        if block.window is not None:
            with mpi_errors("MPI_Win_free"):
                block.window.Unlock_all()
                block.window.Free()

    def fill(self, number: int, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        native.fill(self._own(number).address, size, pattern, seed, inverted, self._cpus)
        self._settle(number)

    def first_mismatch(self, number: int, size: int, pattern: Pattern, seed: int) -> int | None:
        self._settle(number)
        return native.first_mismatch(self._own(number).address, size, pattern, seed, self._cpus)

    def checksum(self, number: int, size: int) -> int:
        self._settle(number)
        return native.checksum(self._own(number).address, size, self._cpus)

    def _settle(self, number: int) -> None:
        """Makes the window's private and public copy agree (MPI 4.1, 12.4: memory models)."""
        if (window := self._own(number).window) is not None:
            with mpi_errors("MPI_Win_sync"):
                window.Sync()

    def _own(self, number: int) -> _Block:
        if number not in self._blocks:
            raise BackendError("buffer", f"number {number} is not allocated here")
        return self._blocks[number]

    def prepare(
        self, copies: Sequence[SharedCopy], operation: OperationName, tokens: Sequence[bytes] = ()
    ) -> Prepared:
        self.close_group()
        self._copies, self._operation, self._shortest = copies, operation, None
        if named(operation).by_flags:
            check_alone(copies)  # type: ignore[arg-type]  # counts them
            self._flags = self._flag_side(copies[0])
            return Prepared(self._flags.pace if self._times(copies[0]) else None)
        if isinstance(operation, Collective):
            parts = [self._part(copy) for copy in copies]
            self._collective = MpiCollective(self._comms_of, operation, parts, self._cpus)
            return Prepared(self._collective.pace, self._collective.most_loops)
        does = named(operation)
        if not (does.is_copy or does.from_one):
            raise lacking("mpi", operation)
        if does.from_one:
            for root in sorted({copy.transfer.source.rank or 0 for copy in copies}):
                if root not in self._comms:
                    with mpi_errors("MPI_Comm_dup"):
                        self._comms[root] = self._comm.Dup()
        return Prepared(PACE if any(map(self._times, copies)) else None)

    def _part(self, copy: SharedCopy) -> RankPart:
        """A rank's part of a collective, with the addresses of its buffers if it is this one."""
        rank = copy.transfer.destination.rank or 0
        sent, received = (
            self._own(lent.number).address if lent and rank == self._rank else 0
            for lent in (copy.source, copy.destination)
        )
        return RankPart(rank, sent, received, copy.size, copy.seed)

    def _times(self, copy: SharedCopy) -> bool:
        return copy.transfer.engine.owner.rank == self._rank

    def _flag_side(self, copy: SharedCopy) -> FlagSide:
        if copy.source is None or copy.destination is None:
            raise Unsupported(f"{copy.transfer}: flags bounce between two memories")
        begins = copy.transfer.source.rank == self._rank
        ends = copy.source, copy.destination
        mine, theirs = ends if begins else ends[::-1]
        block, own = self._own(theirs.number), self._own(mine.number)
        other = block.place_of(theirs.memory.rank or 0)
        return FlagSide(self._mpi, own.address, block.window, other, begins=begins)

    def arm(self, loops: int, laps: int) -> None:
        self._loops = loops * laps
        if self._collective is not None:
            return
        if self._flags is not None:
            self._flags.arm(loops, laps)
        else:  # no part of the time
            self._ready = self._streams()

    def begin(self, command: Begin) -> Ended:
        opened = await_time(command.at)
        if self._flags is not None:
            return self._flags.bounce(opened)
        if self._collective is not None:
            return self._collective.run(self._loops)
        with mpi_errors("move bytes by MPI"):
            ends = self._one_sided() if named(self._operation).is_copy else {}
            ends |= run(self._mpi, self._ready)
        seconds = {place: end - opened for place, end in ends.items()}
        if seconds:
            self._shortest = min(seconds.values()) / self._loops
        return Ended(opened, seconds)

    def _one_sided(self) -> dict[int, float]:
        """Puts or gets what this rank carries out; when each copy had ended, by its place."""
        ends: dict[int, float] = {}
        for place, copy in enumerate(self._copies):
            if copy.transfer.engine.kind != "rma" or not self._times(copy):
                continue
            source, destination = copy.source, copy.destination
            if source is None or destination is None:
                raise Unsupported(f"{copy.transfer}: moves nothing between ranks")
            puts = copy.transfer.source.rank == self._rank
            near, far = (source, destination) if puts else (destination, source)
            block = self._own(far.number)
            window, target = block.window, block.place_of(far.memory.rank or 0)
            origin = self._memory(near.number, copy.size)
            call = partial(window.Put if puts else window.Get, origin, target)
            for _ in range(self._loops):
                call()
            window.Flush(target)
            ends[place] = time.monotonic()
        return ends

    def _memory(self, number: int, size: int) -> list[Any]:
        """The first bytes of a buffer, as mpi4py takes them."""
        address = self._own(number).address
        return [self._mpi.memory.fromaddress(address, size), self._mpi.BYTE]

    def _streams(self) -> list[Stream]:
        """This rank's part of the messages; beside one-sided copies, the word of their end."""
        part = Part(self._comm, self._rank, self._loops, self._memory)
        if named(self._operation).from_one:
            return broadcast_streams(part, self._comms, self._copies)
        made = (message_stream(part, place, copy) for place, copy in enumerate(self._copies))
        return [stream for stream in made if stream is not None]

    def iterate(self, count: int) -> tuple[float, ...]:
        return self._prepared_collective().iterations(count)

    def check(self) -> Wrong:
        return self._prepared_collective().check()

    def _prepared_collective(self) -> MpiCollective:
        if self._collective is None:
            raise BackendError("collective", "none is prepared")
        return self._collective

    def close_group(self) -> None:
        self._copies, self._flags, self._collective = (), None, None

    def close(self) -> None:
        """Frees windows with all other ranks, in the order in which all have them."""
        self.close_group()
        for number in sorted(self._blocks):
            self.free(number)
        for root in sorted(self._comms):
            with mpi_errors("MPI_Comm_free"):
                self._comms.pop(root).Free()
        for ranks in sorted(self._pairs):
            with mpi_errors("MPI_Comm_free"):
                self._pairs.pop(ranks).Free()
        self._comms_of.close()


def open_mpi(launch: Launch) -> MpiMember:
    """Raises InputError where there is no MPI."""
    return MpiMember(launch, world(launch))
