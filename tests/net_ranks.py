"""Two ranks that move bytes over network interfaces and by UCX, in two threads of one process."""

from concurrent.futures import ThreadPoolExecutor

from linkgauge.backends.member import Allocate, Begin, Lent, SharedCopy
from linkgauge.backends.net import member as net
from linkgauge.backends.net import ucx
from linkgauge.backends.protocol import Pattern
from linkgauge.machine.interfaces import read_interfaces
from linkgauge.machine.launch import Launch
from linkgauge.model.errors import Unsupported
from linkgauge.model.notation import parse_transfer

SIZE = 100_003
"""Bytes: no stream's part is like another's."""
WORDS = Pattern.WORDS


class Pair:
    """Two members, whose calls run at the same time."""

    def __init__(self, silent=15.0, gpus=(None, None)):
        nics = read_interfaces()
        self.members = [net.NetMember(Launch(rank, 2), nics, silent, gpus[rank]) for rank in (0, 1)]
        # UCX is used by one thread of a member alone.
        self._threads = [ThreadPoolExecutor(1) for _ in self.members]
        self._number = 0

    def by(self, rank, call, *arguments):
        """A call by the member's thread."""
        return self._threads[rank].submit(call, *arguments).result()

    def both(self, call):
        """What each member's call gives, or raises."""
        futures = [
            thread.submit(call, member)
            for thread, member in zip(self._threads, self.members, strict=True)
        ]
        return [future.exception() or future.result() for future in futures]

    def copy(self, text, seed=7):
        transfer = parse_transfer(text)
        lent = []
        for memory, inverted in ((transfer.source, False), (transfer.destination, True)):
            self._number += 1
            owner = self.members[memory.rank]
            asked = Allocate(self._number, memory, SIZE, transfer.engine)
            allocated = self.by(memory.rank, owner.allocate, asked)
            owner.fill(self._number, SIZE, WORDS, seed, inverted)
            lent.append(Lent(self._number, memory, SIZE, allocated.handle))
        return SharedCopy(transfer, *lent, SIZE, seed)

    def mismatch(self, copy):
        there = copy.destination
        owner = self.members[there.memory.rank]
        return owner.first_mismatch(there.number, SIZE, WORDS, copy.seed)

    def close(self):
        self.both(lambda member: member.close())
        for thread in self._threads:
            thread.shutdown()


def run(pair, copies, operation="copy", loops=3):
    prepared = pair.both(lambda member: member.prepare(copies, operation))
    assert not any(isinstance(one, Exception) for one in prepared), prepared
    pair.both(lambda member: member.arm(loops, 1))
    return prepared, pair.both(lambda member: member.begin(Begin()))


def without_ucx():
    try:
        ucx.library()
    except Unsupported as missing:
        return str(missing)
    return ""
