"""Ranks of a launch in one process: threads at the other ends of links."""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from contextlib import ExitStack, contextmanager, suppress

import msgspec

from linkgauge.backends.member import Allocate, Allocated, Begin, Ended, Prepared
from linkgauge.backends.protocol import Copy, Pace
from linkgauge.engine.ranks import messages
from linkgauge.engine.ranks.links import Links
from linkgauge.engine.ranks.messages import Doing, End, Ping, Pong, Told, decode_command
from linkgauge.engine.ranks.patience import Patience
from linkgauge.machine.channel import Channel, Done, Reason, Refused, encode
from linkgauge.machine.launch import Launch
from linkgauge.model.ranks import Rank
from linkgauge.model.result import Placement

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
                elif isinstance(command, End):
                    break
                elif not isinstance(command, (Told, Doing, Pong)):
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
        yield Links(channels, ranks, Patience(limit=limit))


def _shut(end):
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


class Ranks:
    """Members that answer as real ones do; `special` answers come first, by rank and command."""

    def __init__(self, count=3):
        self.special = {}
        self.ended = {}
        """What a rank answers at the end of a sample, given when it was to begin."""
        self.fakes = [Fake(lambda command, n=n: self.answer(n, command)) for n in range(count)]

    def answer(self, number, command):
        kind = type(command)
        if (number, kind) in self.special:
            return self.special[number, kind]
        if kind is Allocate:
            placement = Placement(f"of rank {number}", command.size)
            return done(Allocated(placement, (f"warned by {number}",), b"handle %d" % number))
        if kind is messages.Prepare:
            return done(Prepared(Pace(), 100 + number))
        if kind is Begin:
            return done(self.ended[number](command.at) if number in self.ended else Ended(0.0, {}))
        answers = {messages.Checksum: 99, messages.Mismatch: 7, messages.Remarks: ("by it",)}
        return done(answers.get(kind))

    def of(self, kind):
        """Who was asked this, and what exactly."""
        return {n: fake.of(kind) for n, fake in enumerate(self.fakes) if fake.of(kind)}


def allocated(backend, transfer):
    return [backend.allocate(memory, SIZE, transfer.engine) for memory in transfer.memories]


def copies(backend, *transfers):
    return [Copy(one, *allocated(backend, one), SIZE, 7) for one in transfers]


def measured(group, loops=1):
    group.arm(loops)
    group.open()
    return group.wait()
