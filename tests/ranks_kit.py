"""Ranks of a launch in one process: threads at the other ends of links."""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from contextlib import ExitStack, contextmanager, suppress
from unittest.mock import Mock

import msgspec

from linkgauge.backends.protocol import Copy, SamplingPolicy, Timing, Wrong, run
from linkgauge.engine.ranks.commands import (
    Admitted,
    EndRun,
    Met,
    PartyLeft,
    Ping,
    Pong,
    decode_command,
)
from linkgauge.engine.ranks.meeting import Meeting
from linkgauge.engine.ranks.member_links import Deadlines, Links
from linkgauge.engine.ranks.spanning import SpanningBackend
from linkgauge.machine.processes.channel import Channel, Done, Reason, Refused, encode
from linkgauge.machine.processes.launch import Launch
from linkgauge.model.documents.result import Placement
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.ranks import Rank

SOON = 0.05
"""A limit that has to pass in a test."""
LONG = 60.0
"""A limit that never passes, and longer than any test."""

SIZE = 4096
"""Bytes of a buffer."""
ALIVE = (Pong(),)
GONE = object()
"""In place of an answer: the rank ends."""


def job():
    """The name of a launch that no other test has."""
    return f"test-{os.getpid()}-{uuid.uuid4().hex[:12]}"


def launch(rank=0, size=2, *, name="test", on_one_machine=True):
    return Launch(rank, size, rank, size if on_one_machine else 1, name)


def rank(number, host="box", **more):
    return Rank(number, host, 100 + number, **more)


def done(value):
    return Done(msgspec.Raw(encode(value)))


def refused(kind, text="no"):
    return Refused(Reason(kind, text))


class Fake:
    """The other end of a link. `answer(command)` is its reply: None is silence, GONE ends it, bytes
    are sent as they are. `on_ping` are its replies to a question for a sign of life; `heard` is
    what came. What is `ready` is sent before any question."""

    def __init__(self, answer=lambda command: done(None), *, on_ping=ALIVE, ready=()):
        self.answer = answer
        self.on_ping = on_ping
        self.heard = []
        self.ours, theirs = socket.socketpair()
        self.channel = Channel(theirs)
        for reply in ready:
            self._reply(reply)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        with suppress(EOFError, OSError):
            while True:
                command = decode_command(self.channel.receive())
                self.heard.append(command)
                self.hears(command)
                if isinstance(command, Ping):
                    for reply in self.on_ping:
                        self._reply(reply)
                elif isinstance(command, EndRun):
                    break
                elif not isinstance(command, (Admitted, Pong)):
                    self._reply(self.answer(command))
        self.channel.close(0.0)

    def _reply(self, reply):
        if reply is GONE:
            raise EOFError
        if isinstance(reply, bytes):
            self.channel.socket.sendall(reply)
        elif reply is not None:
            self.channel.send(encode(reply))

    def hears(self, command):
        """Called with each command that comes."""

    def await_some(self, kind):
        """Waits until it has heard one of this kind."""
        deadline = time.monotonic() + LONG
        while not self.of(kind):
            assert time.monotonic() < deadline, f"no {kind.__name__} came"
            time.sleep(SOON / 5)

    def end(self):
        """Its process is gone."""
        self.channel.socket.shutdown(socket.SHUT_RDWR)

    def of(self, kind):
        return [command for command in self.heard if isinstance(command, kind)]


@contextmanager
def linked(*fakes, hosts=(), limit=LONG):
    """Links to these ranks, by their order."""
    with ExitStack() as held:
        channels = {}
        for number, fake in enumerate(fakes):
            channels[number] = Channel(fake.ours)
            held.callback(fake.thread.join, LONG)
            held.callback(channels[number].close, 0.0)
            held.callback(_shut, fake.ours)
        names = hosts or ["box"] * len(fakes)
        ranks = [rank(number, host) for number, host in enumerate(names)]
        yield Links(channels, ranks, Deadlines(limit=limit))


def _shut(end):
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


def memory_of(rank, memory, size):
    """Some of a rank, or what it has opened."""
    placed = {"placement.return_value": Placement(f"of rank {rank}", size)}
    return Mock(memory=memory, size=size, warnings=(f"warned by {rank}",), **placed)


class Own:
    """What a rank measures with, and its part of a cell: answers as real ones do. `special` has
    its sampling policy and most loops, and `begin(at)`: when its gate has opened, and its
    seconds."""

    def __init__(self, rank, special):
        self.rank, self.special = rank, special
        self.allocate = lambda memory, size, engine: memory_of(rank, memory, size)
        self.apart = lambda copies: (None,) * len(copies)

    def prepare(self, copies, operation):
        for copy in copies:
            for end in (copy.source, copy.destination):
                if copy.transfer.engine.owner.rank == self.rank and end.here is None:
                    end.here = memory_of(self.rank, end.memory, SIZE)
        self.policy, self.most_loops = self.special.get(
            "policy", (SamplingPolicy(), 100 + self.rank)
        )
        return self

    def arm(self, *armed):
        self.special["armed"] = armed

    def open_at(self, at):
        opened, self.seconds = self.special.get("begin", lambda at: (at or 0.0, ()))(at)
        return opened

    def wait(self):
        return Timing(self.seconds, max(self.seconds, default=0.0))

    def close(self):
        self.special["closed"] = True

    def __getattr__(self, name):
        answers = {
            "checksum": 99, "first_mismatch": 7, "remarks": ("by it",), "handle": b"handle",
            "check": self.special.get("check", Wrong()), "token": b"token %d" % self.rank,
        }  # fmt: skip
        return lambda *given: answers.get(name)


class Recorded:
    """What a rank measures with, of which is known what it was asked; `special` answers come first,
    by call."""

    def __init__(self, member, special):
        self.member, self.special, self.heard = member, special, []

    def __getattr__(self, name):
        own = getattr(self.member, name)
        if not callable(own):
            return own

        def call(*given):
            self.heard.append((name, *given))
            found = self.special.get(name, own)
            if isinstance(found, Exception):
                raise found
            return found(*given) if callable(found) else found

        return call

    def clock(self):
        return 0.0

    def enter(self, *given):
        self.heard.append(("enter", *given))


class Ranks:
    """Ranks that carry out one cell together, as threads of this process; their clocks are `ahead`.
    `special` answers of members come first, by rank and call."""

    def __init__(self, name, count=3, hosts=None, members=None, kind=SpanningBackend):
        self.special = [{} for _ in range(count)]
        made = members or [Own(n, special) for n, special in enumerate(self.special)]
        self.members = [Recorded(one, self.special[n]) for n, one in enumerate(made)]
        self.backends = [
            kind(name, member, n, hosts or ["box"] * count) for n, member in enumerate(self.members)
        ]
        self.ahead = dict.fromkeys(range(count), 0.0)
        self.lates = []
        self._said, self._answer, self._changed = {}, None, threading.Condition()

    def each(self, call, *parties):
        """What this gives with the backend of each of these ranks (all), or raises."""
        here = set(parties or range(len(self.backends)))
        ranks, found = tuple(sorted(here)), {}

        def meet(rank, said):
            with self._changed:
                before, self._said[rank] = self._answer, said
                self._go_on(here, apart=len(here) < len(ranks))
                assert self._changed.wait_for(lambda: self._answer is not before, LONG)
                return self._answer[rank]

        def run(rank):
            self.backends[rank].meeting = Meeting(rank, ranks, lambda said: meet(rank, said))
            try:
                found[rank] = call(self.backends[rank])
            except LinkgaugeError as error:
                found[rank] = error
            with self._changed:
                here.discard(rank)
                self._go_on(here, apart=True)

        threads = [threading.Thread(target=run, args=(rank,)) for rank in ranks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG)
        return dict(sorted(found.items()))

    def _go_on(self, here, *, apart):
        """Once all that are here have said something."""
        if not self._said or set(self._said) != here:
            return
        said, self._said = self._said, {}
        at = 100.0 if any(one.start for one in said.values()) else None
        self.lates += [any(one.late for one in said.values())] if at else []
        words = {rank: one.said for rank, one in said.items()}
        self._answer = {
            rank: PartyLeft("another has left") if apart else Met(words, at, self.ahead[rank])
            for rank in said
        }
        self._changed.notify_all()

    def result(self, call, *parties):
        """The same of all; raises what all raise."""
        found = list(self.each(call, *parties).values())
        for one in found:
            if isinstance(one, Exception):
                assert {str(other) for other in found} == {str(one)}
                raise one
        assert all(one == found[0] for one in found)
        return found[0]

    def of(self, name):
        """Who was asked this, and what exactly."""
        asked = {
            n: [one[1:] for one in m.heard if one[0] == name] for n, m in enumerate(self.members)
        }
        return {n: words for n, words in asked.items() if words}


def copies(backend, *transfers, **how):
    return [
        Copy(one, *(backend.allocate(m, SIZE, one.engine) for m in one.memories), SIZE, 7, **how)
        for one in transfers
    ]


def measured(group, loops=1):
    return run(group, loops)
