"""Transfers of a cell that share a staging buffer: what it holds, who writes it, and which are
endless.

All of them move the same content, so that every byte can be compared although they use the buffer
concurrently: two writers write the same. Data read before anybody has written is still poison, so
one more loop after the samples makes what was read comparable, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.backends.protocol import Backend, Buffer, Pattern
from linkgauge.model.errors import Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import Transfer

from .pool import BufferPool


class Staging:
    """The staging buffers of a cell of `size` bytes; false if it has none.

    `written` are those that a transfer writes, `pattern` is the content that all of them end up
    with.
    """

    def __init__(self, transfers: Sequence[Transfer], size: int) -> None:
        self._transfers = transfers
        self._users = [transfer for transfer in transfers if touches(transfer)]
        self._size = size
        self.written = frozenset(t.destination for t in self._users if t.destination.is_staging)
        # A pure write stores one word everywhere: then all of them move that word.
        constant = any(transfer.source.is_null for transfer in self._users)
        self.pattern = Pattern.CONSTANT if constant else Pattern.WORDS

    def __bool__(self) -> bool:
        return bool(self._users)

    def lend(
        self, pool: BufferPool, backends: Sequence[Backend], visit: int
    ) -> dict[Memory, Buffer]:
        """The shared buffers by name, each allocated for one of its transfers; `backends` are those
        of the cell's transfers. Host threads can access what an accelerator's backend allocates,
        but not vice versa. Raises Unsupported for transfers that cannot share."""
        self._check()
        lent: dict[Memory, Buffer] = {}
        owned = list(zip(self._transfers, backends, strict=True))
        owned.sort(key=lambda pair: not pair[0].engine.owner.is_device)
        for transfer, backend in owned:
            for memory in transfer.memories:
                if memory.is_staging and memory not in lent:
                    size = self._bytes_of(memory)
                    lent[memory] = pool.lend(backend, memory, size, transfer.engine, visit)
        return lent

    def _bytes_of(self, memory: Memory) -> int:
        """The size that the largest of its transfers needs."""
        return max(t.bytes_moved(self._size) for t in self._users if memory in t.memories)

    def is_endless(self, transfer: Transfer) -> bool:
        """Whether it runs until others have ended, or alone for a while: host threads that only
        read or write the buffer."""
        return touches(transfer) and transfer.engine.kind == "cpu" and len(transfer.memories) == 1

    def _check(self) -> None:
        """Raises Unsupported if these transfers cannot share their buffers."""
        if any(transfer.both_ways for transfer in self._users):
            why = "'<->' would overwrite the staging buffer that it reads: join two with '&'"
            raise Unsupported(why)
        if any(t.source.is_staging and t.destination.is_staging for t in self._users):
            why = "a staging buffer is one end of a transfer: give another memory for the other"
            raise Unsupported(why)


def touches(transfer: Transfer) -> bool:
    """Whether an end of the transfer is a staging buffer."""
    return transfer.source.is_staging or transfer.destination.is_staging
