"""Backend `mpi`: the memories of the hosts of several ranks, between which MPI moves bytes.

`rma` is one-sided: the engine's owner puts (MPI_Put, if it has the source) or gets (MPI_Get) into
or from a window of the other rank, and flushes. `msg` are messages (MPI_Isend, MPI_Irecv); with the
destination's engine they are asked for, with the source's the last is acknowledged. A broadcast is
MPI's. Time is taken by the engine's owner, from before the first call until everything is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from linkgauge.backends import ACROSS_RANKS, native
from linkgauge.backends.host_memory import ByThreads
from linkgauge.backends.host_rank import HostRank
from linkgauge.backends.protocol import Copy, Group, Pattern
from linkgauge.backends.rank import RankBackend, held
from linkgauge.backends.rules import check_alone, lacking
from linkgauge.machine.launch import Launch
from linkgauge.model.collective import Collective
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.operation import OperationName, named
from linkgauge.model.result import Placement
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Engine, Transfer
from linkgauge.model.units import approximate_size

from .collectives import Communicators, MpiCollective, part_refusal
from .flags import FlagSide
from .group import MpiGroup, address_in
from .world import mpi_errors, world

SLOW_CALLS = 50e-6
"""Seconds of a copy below which the calls that Python makes are part of its figure."""
_BY_PYTHON = "Python's time to call MPI is part of theirs"


class Window(ByThreads):
    """A window of these `ranks` (none: all), to which one of them gives memory: at `address` if it
    is this one, else 0."""

    warnings: tuple[str, ...]

    def __init__(
        self, window: Any, memory: Memory, size: int, ranks: tuple[int, ...], by: MpiRank
    ) -> None:
        self.window, self.memory, self.size, self._ranks = window, memory, size, ranks
        self.address, self.cpus = 0, by.cpus
        self.placed, self.warnings = Placement("", 0), ()
        if memory.rank == by.rank:  # which touches its pages first
            self.address = by.address_of(window)
            native.fill(self.address, size, Pattern.CONSTANT, 0, inverted=False, cpus=self.cpus)
            self.placed = Placement(str(memory), size, native.node_of(self.address, size))
            self.warnings = tuple(native.misplaced(by.home, self.placed))

    def placement(self) -> Placement:
        return self.placed

    def place_of(self, rank: int) -> int:
        """The rank's number among those that have the window."""
        return self._ranks.index(rank) if self._ranks else rank

    @contextmanager
    def at(self) -> Iterator[int]:
        """The window's private and public copy agree (MPI 4.1, 12.4: memory models)."""
        self._sync()
        yield self.address
        self._sync()

    def _sync(self) -> None:
        with mpi_errors("MPI_Win_sync"):
            self.window.Sync()

    def free(self) -> None:
        with mpi_errors("MPI_Win_free"):
            self.window.Unlock_all()
            self.window.Free()


class MpiRank(HostRank, RankBackend):
    """This process and its host's memory. MPI moves others' bytes, and ends their collective calls,
    only while it is called (MPI 4.1, 2.9: progress)."""

    name = ACROSS_RANKS
    others_wait = True

    def __init__(self, launch: Launch, mpi: Any) -> None:
        library = mpi.Get_library_version().split(",")[0].splitlines()[0]
        super().__init__(launch.rank, " ".join(library.split())[:80])
        self._mpi = mpi
        self._comms = Communicators(mpi)
        self._group: MpiGroup | MpiCollective | None = None
        """What was prepared last, but for flags."""

    def make_progress(self) -> None:
        with suppress(BackendError), mpi_errors("MPI_Iprobe"):  # the next call fails, too
            self._mpi.COMM_WORLD.Iprobe()

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
        group = self._group
        if isinstance(group, MpiCollective):
            return group.remarks
        if group is not None and group.from_one:
            by = "MPI_Ibcast"
        elif transfer.engine.kind == "msg":
            by = "MPI_Isend and MPI_Irecv"
        else:
            pushes = transfer.engine.owner.rank == transfer.source.rank
            by = "MPI_Put" if pushes else "MPI_Get"
        said = [f"between host memories, by {by}"]
        if group is not None and group.shortest is not None and group.shortest < SLOW_CALLS:
            said.append(f"copies of less than {SLOW_CALLS * 1e6:g} us: {_BY_PYTHON}")
        return tuple(said)

    def reach(self, memory: Memory, engine: Engine) -> object:
        """One-sided accesses need memory that MPI knows."""
        return memory, self.is_window(engine)

    def is_window(self, engine: Engine) -> bool:
        return engine.kind == "rma"

    def window(self, memory: Memory, size: int, ranks: tuple[int, ...]) -> Window:
        own = size if memory.rank == self.rank else 0
        with mpi_errors(f"allocate {approximate_size(size)} of {memory}"):
            window = self._mpi.Win.Allocate(own, 1, comm=self._comms.of_some(ranks))
            window.Lock_all()
        return Window(window, memory, size, ranks, self)

    def address_of(self, window: Any) -> int:
        """Where this rank's part of it begins."""
        return int(self._mpi.Get_address(window.tomemory()))

    def prepare(self, copies: Sequence[Copy], operation: OperationName = "copy") -> Group:
        self._group = None
        does = named(operation)
        if does.by_flags:
            check_alone(copies)
            return self._flag_side(copies[0])
        if isinstance(operation, Collective):
            self._group = MpiCollective(self._comms, operation, copies, self.cpus)
            return self._group
        if not (does.is_copy or does.from_one):
            raise lacking(self.name, operation)
        roots = {copy.transfer.source.rank or 0 for copy in copies} if does.from_one else ()
        comms = {root: self._comms.of_root(root) for root in sorted(roots)}
        self._group = MpiGroup(self._mpi, self.rank, copies, comms)
        return self._group

    def _flag_side(self, copy: Copy) -> FlagSide:
        begins = copy.transfer.source.rank == self.rank
        ends = copy.source, copy.destination
        mine, theirs = ends if begins else ends[::-1]
        window = held(theirs)
        if theirs is None or not isinstance(window, Window):
            raise Unsupported(f"{copy.transfer}: flags bounce between two memories")
        other = window.place_of(theirs.memory.rank or 0)
        return FlagSide(self._mpi, address_in(mine), window.window, other, begins=begins)

    def close(self) -> None:
        """Together with all other ranks."""
        self._comms.close()


def create(launch: Launch, settings: Settings, hosts: Sequence[str], *, with_gpu: bool) -> MpiRank:
    """Raises InputError where there is no MPI."""
    return MpiRank(launch, world(launch))
