"""Staging buffers that transfers of a cell share: what they hold, and who writes them."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.backends.protocol import Backend, Buffer, Pattern
from linkgauge.model.errors import Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import Transfer

from .pool import BufferPool, touches

# All transfers move the same content, so that every byte can be compared although they use the
# buffer concurrently: two writers write the same. Data read before anybody has written is still
# poison, so one more loop after the samples makes what was read comparable, too.


class Staging:
    """The staging buffers that transfers of a cell share. `written` are the buffers that transfers
    write, `pattern` is the content of these buffers afterwards."""

    def __init__(self, transfers: Sequence[Transfer], size: int) -> None:
        self._transfers = transfers
        self._users = [transfer for transfer in transfers if touches(transfer)]
        self._size = size
        self.written = frozenset(t.destination for t in self._users if t.destination.is_staging)
        # A pure write stores one word everywhere: then all of them move that word.
        constant = any(transfer.source.is_null for transfer in self._users)
        self.pattern = Pattern.CONSTANT if constant else Pattern.WORDS

    def lend(
        self, pool: BufferPool, backends: Sequence[Backend], repetition: int
    ) -> dict[Memory, Buffer]:
        """Returns the shared buffers by memory. Raises Unsupported if a buffer cannot be shared."""
        self._check()
        lent: dict[Memory, Buffer] = {}
        owned = list(zip(self._transfers, backends, strict=True))
        # Accelerators' backends come first: accelerators cannot access buffers of host threads.
        owned.sort(key=lambda pair: not pair[0].engine.owner.is_device)
        for transfer, backend in owned:
            for memory in transfer.memories:
                if memory.is_staging and memory not in lent:
                    size = self._bytes_of(memory)
                    lent[memory] = pool.lend(backend, memory, size, transfer.engine, repetition)
        return lent

    def _bytes_of(self, memory: Memory) -> int:
        return max(t.bytes_moved(self._size) for t in self._users if memory in t.memories)

    def _check(self) -> None:
        if any(transfer.both_ways for transfer in self._users):
            why = "'<->' would overwrite the staging buffer that it reads: join two with '&'"
            raise Unsupported(why)
        if any(t.source.is_staging and t.destination.is_staging for t in self._users):
            why = "a staging buffer is one end of a transfer: give another memory for the other"
            raise Unsupported(why)
