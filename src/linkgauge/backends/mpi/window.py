"""How ranks let other ranks access their memory, in MPI's windows (MPI 4.1, 12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from linkgauge.backends import native
from linkgauge.backends.host_memory import ByThreads, HostRank
from linkgauge.backends.protocol import Buffer
from linkgauge.model.documents.result import Placement

from .world import mpi_errors


class Window(NamedTuple):
    """An MPI window of several ranks. `sizes` is the bytes of each rank's part; `base` is the
    address of this rank's part. Only repetitions with this number, `repetition`, use the window."""

    handle: Any
    sizes: Mapping[int, int]
    base: int
    repetition: int

    def serves(self, sizes: Mapping[int, int], repetition: int) -> bool:
        """Whether the window is large enough and has the same `repetition`."""
        return repetition == self.repetition and all(
            self.sizes[rank] >= sizes[rank] for rank in sizes
        )

    def free(self) -> None:
        with mpi_errors("MPI_Win_free"):
            self.handle.Unlock_all()
            self.handle.Free()


class WindowPart(ByThreads):
    """A buffer in an MPI window of several ranks. The buffer begins `offset` bytes after the start
    of rank `target`'s part. `base` is the address of this part; None on other ranks."""

    def __init__(
        self, window: Any, like: Buffer, target: int, offset: int, base: int | None, host: HostRank
    ) -> None:
        self.window, self.target, self.offset = window, target, offset
        self.memory, self.size = like.memory, like.size
        self.address, self.cpus = 0, host.cpus
        self.warnings: tuple[str, ...] = ()
        self._placed = Placement("", 0)
        if base is not None:
            self.address = base + offset
            node = native.node_of(self.address, self.size)
            self._placed = Placement(str(self.memory), self.size, node)
            self.warnings = tuple(native.misplaced(host.home, self._placed))

    def placement(self) -> Placement:
        return self._placed

    @contextmanager
    def at(self) -> Iterator[int]:
        """Yields the buffer's address. Synchronizes the window before and after its use."""
        # Makes the window's private and public copy equal (MPI 4.1, 12.4: memory models).
        self._sync()
        yield self.address
        self._sync()

    def _sync(self) -> None:
        with mpi_errors("MPI_Win_sync"):
            self.window.Sync()

    def free(self) -> None:
        """Does nothing. All ranks free the window together later."""
