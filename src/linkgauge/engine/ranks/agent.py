"""The loop of a member: reads commands of rank 0, carries them out, answers.

A thread reads, so that a sign of life is given, and the end or the silence of rank 0 noticed,
whatever the member is at.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import Any

import msgspec

from linkgauge.backends.member import Allocate, Begin, HasInterfaces, Member
from linkgauge.backends.members import open_member
from linkgauge.backends.protocol import Pattern, Virtual, follows
from linkgauge.engine.locks import hold
from linkgauge.machine.channel import Channel, Reason, carry_out, encode
from linkgauge.machine.launch import Launch
from linkgauge.model.errors import BackendError, InputError, Unsupported
from linkgauge.model.machine import Device
from linkgauge.model.memory import NETWORK

from . import messages
from .messages import Command, Present, decode_command
from .patience import NO_SIGN, Patience

LEAST_PAUSE, MOST_PAUSE = 1e-4, 2e-2
"""Seconds between two moments in which an idle member makes progress."""
ENDED = "ended"
"""How rank 0 was lost that left without a word."""


class Agent:
    """Serves rank 0 over a channel. The reading thread calls `left` if a rank is gone and this
    process has to end, whatever it is doing: with the words for it if rank 0 `ENDED` without a
    word, or is silent; with None if rank 0 reports another rank. `patience` is that with a rank 0
    in another process, until its settings are known. `introduction` is what rank 0 said of itself.
    `doing` describes what the run does, in words."""

    def __init__(
        self,
        channel: Channel,
        launch: Launch,
        left: Callable[[str | None], None],
        patience: Patience | None = None,
    ) -> None:
        self.introduction: messages.Told | None = None
        self.doing = "joining"
        self._channel = channel
        self._launch = launch
        self._left = left
        self._patience = patience
        self._silence = 0.0
        """How long rank 0 may say nothing now (seconds)."""
        self._sending = threading.Lock()
        self._commands: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._made = ExitStack()
        self._opened: Member | None = None
        self._gpu: Device | None = None
        """What the member measures with beside network interfaces."""

    def serve(self) -> None:
        """Until rank 0 says that the run is over, or is gone."""
        threading.Thread(target=self._read, daemon=True).start()
        with self._made:
            while (command := self._next()) is not None:
                carry_out(command, self._carry_out, self._send)

    def _next(self) -> Command | None:
        """The next command. Meanwhile the member makes progress, if others depend on that: often at
        first, as they then most likely do."""
        if self._opened is None or not self._opened.others_wait:
            return self._commands.get()
        pause = LEAST_PAUSE
        while True:
            try:
                return self._commands.get(timeout=pause)
            except queue.Empty:
                self._opened.make_progress()
                pause = min(2 * pause, MOST_PAUSE)

    def _read(self) -> None:
        try:
            while True:
                command = decode_command(self._heard())
                match command:
                    case messages.Ping():
                        self._send(encode(messages.Pong()))
                    case messages.Pong():
                        pass
                    case messages.Told():
                        self.introduction = command
                    case messages.End(lost):
                        if lost:
                            self._left(None)
                        self._commands.put(None)
                        return
                    case messages.Doing(words):
                        self.doing = words
                    case _:
                        self._take(command)
        except TimeoutError:
            self._lose(f"{NO_SIGN} after {self._silence:.3g} s")
        except (EOFError, OSError, msgspec.DecodeError):
            self._lose(ENDED)

    def _take(self, command: Command) -> None:
        if self._patience and isinstance(command, messages.Open):
            self._patience = self._patience._replace(limit=command.settings.timeout)
        self._commands.put(command)

    def _lose(self, how: str) -> None:
        self._left(how)
        self._commands.put(None)

    def _heard(self) -> bytes:
        """What rank 0 says next. Raises TimeoutError if it is silent."""
        if self._patience is None:
            return self._channel.receive()
        self._silence = self._patience.of_answer()
        if not self._channel.poll(self._silence):
            self._ask_for_sign()
            if not self._channel.poll(self._patience.of_sign):
                raise TimeoutError
        return self._channel.receive(time.monotonic() + self._silence)

    def _ask_for_sign(self) -> None:
        """Without waiting: a rank 0 that reads nothing keeps what is sent to it from ending."""
        if self._sending.acquire(blocking=False):
            try:
                if self._channel.has_room:
                    self._channel.send(encode(messages.Ping()))
            finally:
                self._sending.release()

    def _send(self, reply: bytes) -> None:
        with suppress(OSError), self._sending:  # who is gone is noticed by the reading thread
            self._channel.send(reply)

    @property
    def _member(self) -> Member:
        if self._opened is None:
            raise BackendError("member", "nothing is open")
        return self._opened

    def _carry_out(self, command: Command) -> object:
        action = _ACTIONS.get(type(command))
        if action is not None:
            return action(self, command)
        return _OF_MEMBER[type(command)](self._member, command)

    def open(self, command: messages.Open) -> Present:
        try:
            member = open_member(
                command.backend, self._launch, command.settings, with_gpu=command.with_gpu
            )
        except (Unsupported, InputError) as problem:
            return Present(None, str(problem))
        self._made.callback(member.close)
        self._opened = member
        if command.backend == NETWORK and isinstance(member, HasInterfaces):
            self._gpu = member.gpu
            nics = tuple(member.nics)
            return Present(member.device(), nics=nics, gpu=member.gpu, lacks_gpu=member.lacks_gpu)
        return Present(member.device())

    def simulate(self, command: messages.Enter | messages.Virtual) -> float | None:
        member = self._member
        if not follows(member, Virtual):  # type: ignore[type-abstract]
            raise BackendError("simulate", "this member cannot simulate")
        if isinstance(command, messages.Virtual):
            return member.clock()
        member.enter(command.cells, command.phase, command.visit, command.taken)
        return None

    def hold(self, _: messages.Hold) -> None:
        """Raises DeviceBusy if another run holds the member's device."""
        device: Device = self._gpu or self._member.device()
        key = device.pci or device.uuid
        if key:
            self._made.enter_context(hold({key: device.memory}))


def _reason(found: str | Unsupported | None) -> Reason | None:
    if found is None:
        return None
    return Reason(found.kind if isinstance(found, Unsupported) else "unsupported", str(found))


_ACTIONS: Mapping[type, Callable[[Agent, Any], object]] = {
    messages.Open: Agent.open,
    messages.Hold: Agent.hold,
    messages.Clock: lambda agent, command: time.monotonic(),
    messages.Enter: Agent.simulate,
    messages.Virtual: Agent.simulate,
}
"""What the agent does itself."""
_OF_MEMBER: Mapping[type, Callable[[Member, Any], object]] = {
    messages.Look: lambda member, of: member.look(),
    messages.Refuses: lambda member, of: _reason(member.refusal(of.transfer)),
    messages.Remarks: lambda member, of: member.remarks(of.transfer),
    Allocate: lambda member, of: member.allocate(of),
    messages.Free: lambda member, of: member.free(of.number),
    messages.Fill: lambda member, of: member.fill(
        of.number, of.size, Pattern(of.pattern), of.seed, of.inverted
    ),
    messages.Mismatch: lambda member, of: member.first_mismatch(
        of.number, of.size, Pattern(of.pattern), of.seed
    ),
    messages.Checksum: lambda member, of: member.checksum(of.number, of.size),
    messages.Token: lambda member, of: member.token(),
    messages.Reach: lambda member, of: member.reach(of.copies),
    messages.Prepare: lambda member, of: member.prepare(of.copies, of.operation, of.tokens),
    messages.Arm: lambda member, of: member.arm(of.loops, of.laps),
    Begin: lambda member, of: member.begin(of),
    messages.Iterate: lambda member, of: member.iterate(of.count),
    messages.Check: lambda member, of: member.check(),
    messages.Close: lambda member, of: member.close_group(),
}
"""What its member does."""
