"""Two ranks that move bytes over network interfaces and by UCX, in two threads of one process."""

from concurrent.futures import ThreadPoolExecutor

from linkgauge.backends.protocol import Copy, Pattern
from linkgauge.backends.rank import SpannedBuffer, open_at
from linkgauge.machine.interfaces import read_interfaces
from linkgauge.machine.processes.launch import Launch
from linkgauge.model.errors import Unsupported
from linkgauge.model.notation import parse_transfer
from linkgauge.rooms.network import rank as net
from linkgauge.rooms.network import ucx

SIZE = 100_003
"""Bytes: no stream's part is like another's."""
WORDS = Pattern.WORDS


class Pair:
    """What two ranks measure with, whose calls run at the same time."""

    def __init__(self, silent=15.0, gpus=(None, None)):
        nics = read_interfaces()
        self.members = [net.NetRank(Launch(rank, 2), nics, silent, gpus[rank]) for rank in (0, 1)]
        self.made = []
        # UCX is used by one thread of a member alone.
        self._threads = [ThreadPoolExecutor(1) for _ in self.members]

    def by(self, rank, call, *arguments):
        """A call by the member's thread."""
        return self._threads[rank].submit(call, *arguments).result()

    def both(self, call, of=None):
        """What the call gives with each member, or raises; or with each of these."""
        pairs = zip(self._threads, of or self.members, strict=True)
        futures = [thread.submit(call, one) for thread, one in pairs]
        return [future.exception() or future.result() for future in futures]

    def copy(self, text, seed=7):
        transfer = parse_transfer(text)
        ends = []
        for memory, inverted in ((transfer.source, False), (transfer.destination, True)):
            owner, lent = self.members[memory.rank], SpannedBuffer(memory, SIZE, transfer.engine)
            lent.here = self.by(memory.rank, owner.allocate, memory, SIZE, transfer.engine)
            lent.handle = owner.handle(lent.here)
            owner.fill(lent.here, SIZE, WORDS, seed, inverted)
            ends.append(lent)
        return Copy(transfer, *ends, SIZE, seed)

    def mismatch(self, copy):
        there = copy.destination
        owner = self.members[there.memory.rank]
        return owner.first_mismatch(there.here, SIZE, WORDS, copy.seed)

    def prepared(self, *copies, operation="copy"):
        """The groups of both."""
        made = self.both(lambda member: member.prepare(copies, operation))
        assert not any(isinstance(one, Exception) for one in made), made
        self.made += made
        return made

    def close(self):
        for group in self.made:
            group.close()
        self.both(lambda member: member.close())
        for thread in self._threads:
            thread.shutdown()


def run(pair, copies, operation="copy", loops=3):
    groups = pair.prepared(*copies, operation=operation)
    for group in groups:
        group.arm(loops, 1)
    return pair.both(began, groups)


def began(group):
    open_at(group, None)
    return group.wait()


def without_ucx():
    try:
        ucx.library()
    except Unsupported as missing:
        return str(missing)
    return ""
