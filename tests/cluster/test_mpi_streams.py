"""Messages of a copy begin and end as its engine's side says, a few of them under way at once."""

import itertools
import threading
from collections import Counter

import pytest

from linkgauge.backends.mpi.streams import (
    WINDOW,
    StreamPart,
    broadcast_streams,
    message_stream,
    run,
)
from linkgauge.backends.protocol import Copy
from linkgauge.model.notation import parse_transfer
from ranks_kit import LONG

SIZE = 64
PUSH = parse_transfer("host:0@0 -> host:0@1 by msg")
PULL = parse_transfer("host:0@0 -> host:0@1 by host:0@1.msg")
PUT = parse_transfer("host:0@0 -> host:0@1 by rma")
GET = parse_transfer("host:0@0 -> host:0@1 by host:0@1.rma")


def copy(transfer, source=10, destination=20):
    """Numbers stand for its buffers."""
    return Copy(transfer, source, destination, SIZE, 7)


class Net:
    """MPI between threads: a send and a receive of the same pair and tag end together, in order,
    and a collective call of all ranks when all have made it."""

    def __init__(self, size):
        self.size = size
        self.changed = threading.Condition()
        self.begun = Counter()
        self.log = []
        self.names = itertools.count()

    def comm(self, rank, name="world"):
        return Comm(self, rank, name)

    def run(self, part):
        """What each rank's `run` returns, its streams given by `part(rank)`."""
        found, errors = {}, []

        def one(rank):
            try:
                found[rank] = run(Mpi(self), part(rank))
            except Exception as error:  # noqa: BLE001  # whatever it is
                errors.append(error)

        threads = [threading.Thread(target=one, args=(n,), daemon=True) for n in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG)
        assert not errors, errors
        assert len(found) == self.size, "a rank waits for ever"
        return found


class Call:
    """A request: it has ended when each of `parties` has begun as many as this one is."""

    def __init__(self, net, own, parties):
        self.parties = parties
        with net.changed:
            net.begun[own] += 1
            self.number = net.begun[own]
            net.log.append(own)
            net.changed.notify_all()

    def has_ended(self, begun):
        return all(begun[party] >= self.number for party in self.parties)


class Mpi:
    def __init__(self, net):
        self.net = net
        self.Request = self

    def Waitsome(self, requests):  # noqa: N802
        def ended():
            return [n for n, one in enumerate(requests) if one.has_ended(self.net.begun)]

        with self.net.changed:
            assert self.net.changed.wait_for(ended, LONG), "waits for ever"
            return ended()


class Comm:
    def __init__(self, net, rank, name):
        self.net, self.rank, self.name = net, rank, name

    def Isend(self, payload, other, tag):  # noqa: N802
        ends = ("send", self.rank, other, tag), ("receive", self.rank, other, tag)
        return Call(self.net, ends[0], ends[1:])

    def Irecv(self, payload, other, tag):  # noqa: N802
        ends = ("receive", other, self.rank, tag), ("send", other, self.rank, tag)
        return Call(self.net, ends[0], ends[1:])

    def Ibcast(self, payload, root):  # noqa: N802
        return self._all(("bcast", root, payload[0] if self.rank != root else "root"))

    def Ibarrier(self):  # noqa: N802
        return self._all(("barrier",))

    def _all(self, what):
        """Collective calls of one communicator match in their order, whatever they are."""
        with self.net.changed:
            self.net.log.append((self.name, self.rank, *what))
        own = [(self.name, rank) for rank in range(self.net.size)]
        return Call(self.net, own[self.rank], own)


def memory(number, size):
    return [number, size]


def parts(net, loops, *copies):
    """Each rank's streams of these copies."""

    def of(rank):
        part = StreamPart(net.comm(rank), rank, loops, memory)
        made = (message_stream(part, place, one) for place, one in enumerate(copies))
        return [stream for stream in made if stream is not None]

    return of


class TestMessages:
    @pytest.mark.parametrize("loops", [1, WINDOW, 3 * WINDOW + 1])
    @pytest.mark.parametrize(("transfer", "owner"), [(PUSH, 0), (PULL, 1)])
    def test_each_loop_is_one_and_the_owner_times(self, transfer, owner, loops):
        net = Net(2)
        ends = net.run(parts(net, loops, copy(transfer)))
        assert {rank: list(timed) for rank, timed in ends.items()} == {owner: [0], 1 - owner: []}
        assert sorted(Counter(net.log).values()) == sorted((1, 1, loops, loops)), "and one word"

    @pytest.mark.parametrize(
        ("transfer", "rank", "log"),
        [
            (PUSH, 0, [("send", 0, 1), ("send", 0, 1), ("receive", 1, 0)]),
            (PUSH, 1, [("receive", 0, 1), ("receive", 0, 1), ("send", 1, 0)]),
            (PULL, 1, [("send", 1, 0), ("receive", 0, 1), ("receive", 0, 1)]),
            (PULL, 0, [("receive", 1, 0), ("send", 0, 1), ("send", 0, 1)]),
            (PUT, 0, [("send", 0, 1)]),
            (PUT, 1, [("receive", 0, 1)]),
            (GET, 1, [("send", 1, 0)]),
            (GET, 0, [("receive", 1, 0)]),
        ],
    )
    def test_are_in_this_order(self, transfer, rank, log):
        """A push ends with a word that all is there, a pull begins with one that asks for it. After
        one-sided accesses the owner says that they have ended."""
        net = Net(2)
        net.run(parts(net, 2, copy(transfer)))
        own = {("send", rank), ("receive", 1 - rank)}
        seen = [one[:3] for one in net.log if (one[0], one[1]) in own]
        assert seen == log


def to_all(roots, size, first=100):
    numbers = itertools.count(first)
    return [
        copy(parse_transfer(f"host:0@{root} -> host:0@{other} by msg"), root, next(numbers))
        for root in roots
        for other in range(size)
        if other != root
    ]


class TestBroadcast:
    def broadcast(self, size, loops, copies):
        net = Net(size)
        roots = {one.transfer.source.rank for one in copies}

        def of(rank):
            comms = {root: net.comm(rank, f"of {root}") for root in roots}
            return broadcast_streams(StreamPart(net.comm(rank), rank, loops, memory), comms, copies)

        return net, net.run(of)

    def test_is_one_call_of_all_ranks_a_loop(self):
        copies = to_all([1], 3)
        net, ends = self.broadcast(3, 4, copies)
        assert {rank: sorted(timed) for rank, timed in ends.items()} == {0: [], 1: [0, 1], 2: []}
        calls = Counter(entry[1:4] for entry in net.log if len(entry) > 2)
        assert calls == {(n, "bcast", 1): 4 for n in range(3)} | {
            (n, "barrier"): 1 for n in range(3)
        }

    def test_of_all_ranks_at_once_has_a_communicator_for_each_root(self):
        copies = to_all(range(4), 4)
        net, ends = self.broadcast(4, WINDOW + 3, copies)
        assert {rank: sorted(timed) for rank, timed in ends.items()} == {
            rank: [3 * rank, 3 * rank + 1, 3 * rank + 2] for rank in range(4)
        }
        roots = {(entry[0], entry[3]) for entry in net.log if "bcast" in entry}
        assert roots == {(f"of {root}", root) for root in range(4)}
