"""The backend `mpi`, in which MPI moves bytes between the host memories of several ranks. The rank
that owns the engine times a copy from before the first call until all bytes have arrived. With the
engine `rma`, this rank writes (MPI_Put) or reads (MPI_Get) a window of the other rank's memory, and
flushes. The engine `msg` sends messages (MPI_Isend, MPI_Irecv). If the destination owns the engine,
the destination first requests the messages, else it acknowledges the last message."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from mmap import PAGESIZE
from pathlib import Path
from typing import Any

from linkgauge.backends import ACROSS_RANKS, native
from linkgauge.backends.host_memory import HostRank
from linkgauge.backends.protocol import Buffer, Copy, Group, Pattern
from linkgauge.backends.rank import RankBackend, held
from linkgauge.backends.rules import check_alone, lacking, of_part, refused
from linkgauge.machine.host import read_host
from linkgauge.machine.processes.launch import Launch
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.operation import OperationName, named
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Engine, Transfer
from linkgauge.model.units import approximate_size

from .collectives import Communicators, MpiCollective
from .flags import FlagSide
from .group import MpiGroup, address_in
from .window import Window, WindowPart
from .world import mpi_errors, world

WINDOW_SHARE = 0.25
"""The share of the available memory in which windows are kept for later cells."""
SLOW_CALLS = 50e-6
"""Copies that take fewer seconds than this get a remark, because calls from Python affect their
figures."""
_BY_PYTHON = "Python's time to call MPI is part of theirs"


class MpiRank(HostRank, RankBackend):
    """A rank's host memory. Others wait, as MPI may move bytes only in calls (MPI 4.1, 2.9)."""

    name = ACROSS_RANKS
    others_wait = True

    def __init__(self, launch: Launch, mpi: Any) -> None:
        library = mpi.Get_library_version().split(",")[0].splitlines()[0]
        super().__init__(launch.rank, " ".join(library.split())[:80])
        self._mpi = mpi
        self._comms = Communicators(mpi)
        self._window: Window | None = None
        """The window of the cell's ranks, if it is freed after the repetition."""
        self._kept: dict[tuple[int, ...], Window] = {}
        """The windows that are kept for later cells, by the ranks that share them."""
        self._largest: dict[tuple[int, ...], Mapping[int, int]] = {}
        """The largest parts of kept windows so far, which later passes need again."""
        self._room = _room() / (launch.local_size or 1)
        self._group: MpiGroup | MpiCollective | None = None
        """The group that was prepared last, unless it works on flags."""

    def make_progress(self) -> None:
        with suppress(BackendError), mpi_errors("MPI_Iprobe"):  # the next call fails, too
            self._mpi.COMM_WORLD.Iprobe()

    def refusal(self, transfer: Transfer) -> str | Unsupported | None:
        kind, ends = transfer.engine.kind, transfer.memories
        pinned = all(memory.is_host and not memory.kind for memory in ends)
        if kind == "ccl":
            hosts = f"{transfer}: collectives by MPI are between pinned host memories"
            return refused((of_part(transfer), (not pinned, hosts)))
        one_way = f"{transfer}: between hosts, MPI moves bytes one way, by rma or msg"
        return refused(
            (
                (kind not in ("rma", "msg") or transfer.both_ways, one_way),
                (not pinned, f"{transfer}: MPI moves bytes between pinned host memories"),
                (len({*ends}) < 2, f"{transfer}: MPI moves bytes between two ranks"),
            )
        )

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
        return memory, self.is_window(engine)  # only one-sided access needs a window

    def is_window(self, engine: Engine) -> bool:
        return engine.kind == "rma"

    def windows(
        self, asked: Sequence[Buffer], ranks: tuple[int, ...], repetition: int
    ) -> list[WindowPart]:
        """Puts all buffers into one window. The window has room for the largest buffers of these
        ranks so far, so that later cells can use it. Each repetition number needs another window,
        because memory's speed partly depends on addresses."""
        sizes = dict.fromkeys(ranks, 0)
        offsets = []
        for one in asked:
            rank = one.memory.rank or 0
            offsets.append(sizes[rank])
            sizes[rank] += -(-one.size // PAGESIZE) * PAGESIZE
        before = self._largest.get(ranks, sizes)
        sizes = {rank: max(size, before[rank]) for rank, size in sizes.items()}
        window = self._kept.get(ranks)
        if window is None or not window.serves(sizes, repetition):
            if window is not None:
                self._kept.pop(ranks).free()
            window = self._allocate(sizes, ranks, repetition)
        parts = []
        for one, offset in zip(asked, offsets, strict=True):
            target = ranks.index(one.memory.rank or 0)
            own = window.base if one.memory.rank == self.rank else None
            parts.append(WindowPart(window.handle, one, target, offset, own, self))
        return parts

    def _allocate(
        self, sizes: Mapping[int, int], ranks: tuple[int, ...], repetition: int
    ) -> Window:
        # The window is kept for later cells if all of its ranks have room for their parts.
        size = sizes[self.rank]
        here = self.home if size else f"ranks {ranks}"
        with mpi_errors(f"allocate {approximate_size(size or sum(sizes.values()))} of {here}"):
            comm = self._comms.of_some(ranks)
            handle = self._mpi.Win.Allocate(size, 1, comm=comm)
            handle.Lock_all()
            base = int(self._mpi.Get_address(handle.tomemory())) if size else 0
            window = Window(handle, sizes, base, repetition)
            used = sum(one.sizes[self.rank] for one in self._kept.values())
            if comm.allreduce(int(used + size <= self._room), op=self._mpi.MIN):
                self._kept[ranks], self._largest[ranks] = window, sizes
            else:
                self._largest.pop(ranks, None)
                self._window = window
        if size:
            native.fill(base, size, Pattern.CONSTANT, 0, inverted=False, cpus=self.cpus)
        return window

    def leave(self) -> None:
        window, self._window = self._window, None
        if window is not None:
            window.free()

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
        there = held(theirs)
        if not isinstance(there, WindowPart):
            raise Unsupported(f"{copy.transfer}: flags bounce between two memories")
        at = there.target, there.offset
        return FlagSide(self._mpi, address_in(mine), there.window, at, begins=begins)

    def close(self) -> None:
        for ranks in sorted(self._kept):  # in the same order everywhere
            self._kept.pop(ranks).free()
        self._comms.close()


def _room() -> float:
    # MPI's shared memory may limit the windows, too.
    shared = Path("/dev/shm")  # noqa: S108
    free = shutil.disk_usage(shared).free if shared.is_dir() else math.inf
    return min(read_host().memory_available or 0, free) * WINDOW_SHARE


def create(launch: Launch, settings: Settings, hosts: Sequence[str], *, with_gpu: bool) -> MpiRank:
    """Opens one rank's backend. Raises InputError if there is no MPI."""
    return MpiRank(launch, world(launch))
