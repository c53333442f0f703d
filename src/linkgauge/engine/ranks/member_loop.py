"""The command loop of a rank. A thread reads, so that work does not stop signs of life."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

import msgspec

from linkgauge.backends import open_rank
from linkgauge.backends.rank import RankBackend
from linkgauge.engine.locks import hold
from linkgauge.engine.measuring.adapter_counters import AdapterCounters
from linkgauge.engine.measuring.pool import BufferPool
from linkgauge.engine.workers.messages import Deadlines, Signs
from linkgauge.engine.workers.process import CpuWaits
from linkgauge.engine.workers.worker import POOL_SHARE, LocalWorker
from linkgauge.machine.host import read_host
from linkgauge.machine.processes.channel import Channel, Done, carry_out, encode
from linkgauge.machine.processes.launch import Launch
from linkgauge.model.errors import BackendError, InputError, Phase, Unsupported
from linkgauge.model.ranks import LostRank, Rank, lost_rank

from . import commands as messages
from .commands import Command, PartTaken, Present, decode_command
from .meeting import Meeting
from .member_links import NO_SIGN
from .spanning import SimSpanningBackend, SpanningBackend
from .started import JOINING

LEAST_PAUSE, MOST_PAUSE = 1e-4, 2e-2
"""The shortest and the longest pause, in seconds, after which an idle member advances
communication."""


class Agent:
    """Serves rank 0 over a channel. Calls `left` if a rank is lost and this process must end: with
    the loss if rank 0 is lost, with None if another rank is lost."""

    def __init__(
        self,
        channel: Channel,
        launch: Launch,
        left: Callable[[LostRank | None], None],
        deadlines: Deadlines | None = None,
    ) -> None:
        self._first: Rank | None = None
        """Rank 0, once it has admitted this member."""
        self._waits = CpuWaits(os.getpid())
        """How long this process has waited for CPUs since its work began."""
        self._channel = channel
        self._launch = launch
        self._left = left
        self._deadlines = deadlines
        self._silence = 0.0
        """The seconds for which rank 0 may now be silent."""
        self._sending = threading.Lock()
        self._commands: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._made = ExitStack()
        self._opened: tuple[SpanningBackend, LocalWorker] | None = None
        self._counters: AdapterCounters | None = None
        self._leads = False
        self._signs = Signs(lambda at: self._send(encode(at)))

    def serve(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()
        with self._made:
            while (command := self._next()) is not None:
                carry_out(command, self._carry_out, self._send)

    def _next(self) -> Command | None:
        if self._opened is None or not self._own.others_wait:
            return self._commands.get()
        pause = LEAST_PAUSE
        while True:
            try:
                return self._commands.get(timeout=pause)
            except queue.Empty:
                self._own.make_progress()
                pause = min(2 * pause, MOST_PAUSE)

    def _read(self) -> None:
        try:
            while not isinstance(command := decode_command(self._heard()), messages.EndRun):
                self._hear(command)
            if command.lost:
                self._left(None)
            self._commands.put(None)
        except TimeoutError:
            self._lose(f"{NO_SIGN} after {self._silence:.3g} s")
        except (EOFError, OSError, msgspec.DecodeError):
            self._lose("ended")

    def _hear(self, command: Command) -> None:
        match command:
            case messages.Ping():
                self._send(encode(messages.Pong(self._waits.seconds)))
            case messages.ReadClock():
                self._send(encode(Done(msgspec.Raw(encode(time.monotonic())))))
            case messages.Pong():
                pass
            case messages.Admitted(first):
                self._first = first
            case _:
                self._take(command)

    def _take(self, command: Command) -> None:
        if self._deadlines and isinstance(command, messages.Open):
            self._deadlines = self._deadlines._replace(limit=command.settings.timeout)
        if not isinstance(command, (messages.Met, messages.PartyLeft)):  # which continue a work
            self._waits = CpuWaits(os.getpid())
        self._commands.put(command)

    def _lose(self, how: str) -> None:
        doing = JOINING if self._first is None else "controlling the run"
        self._left(lost_rank(0, how, doing, self._first))
        self._commands.put(None)

    def _heard(self) -> bytes:
        if self._deadlines is None:
            return self._channel.receive()
        self._silence = self._deadlines.of_answer()
        if not self._channel.poll(self._silence):
            self._ask_for_sign()
            if not self._channel.poll(self._deadlines.of_sign):
                raise TimeoutError
        return self._channel.receive(time.monotonic() + self._silence)

    def _ask_for_sign(self) -> None:
        """Asks rank 0 for a sign of life, without blocking: rank 0 may no longer read."""
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
    def _open(self) -> tuple[SpanningBackend, LocalWorker]:
        if self._opened is None:
            raise BackendError("member", "nothing is open")
        return self._opened

    @property
    def _own(self) -> RankBackend:
        return self._open[0].own

    def _carry_out(self, command: Command) -> object:
        match command:
            case messages.Open():
                return self.open(command)
            case messages.Hold():
                self.hold()
                return None
            case messages.ReadAccelerators():
                return self._own.look()
            case messages.TakePart():
                return self.measure(command)
        raise TypeError(f"unexpected {command!r}")

    def open(self, command: messages.Open) -> Present:
        try:
            own = open_rank(
                command.backend,
                self._launch,
                command.settings,
                command.hosts,
                with_gpu=command.with_gpu,
            )
        except (Unsupported, InputError) as problem:
            return Present(None, str(problem))
        self._made.callback(own.close)
        self._span(command, own)
        (device,) = own.devices()
        return Present(device, nics=tuple(own.nics), gpu=own.gpu, lacks_gpu=own.lacks_gpu)

    def _span(self, command: messages.Open, own: RankBackend) -> None:
        kind = SpanningBackend if command.settings.simulation is None else SimSpanningBackend
        span = kind(command.backend, own, self._launch.rank, command.hosts)
        worker = LocalWorker(command.settings, self._enter)
        self._opened = span, worker
        available = read_host().memory_available if command.settings.simulation is None else None
        share = POOL_SHARE / (self._launch.local_size or 1)
        budget = None if available is None else int(available * share)
        worker.measure_with(span, BufferPool(budget))
        self._made.callback(worker.release)
        if command.settings.simulation is None:
            self._counters = AdapterCounters(self._launch.rank, command.hosts, own.nics)

    def measure(self, part: messages.TakePart) -> PartTaken:
        """Measures this rank's part. Returns results if this rank is the first or a cell failed."""
        (span, worker), cells = self._open, part.work.cells
        span.meeting = Meeting(self._launch.rank, part.parties, self.meet)
        span.repetition = part.work.repetition.number
        span.shared, span.failed = frozenset(part.shared), None
        worker.leads = self._leads = part.parties[0] == self._launch.rank
        if part.anew:
            worker.forget(cells, part.work.size)
        if self._counters is not None:
            self._counters.begin(cells)
        found = worker.measure(cells, part.work.size, part.work.repetition)
        rises = self._counters.end(self._own.counted()) if self._counters is not None else ()
        is_sent = self._leads or any(cell.status != "pass" for cell in found)
        return PartTaken(found if is_sent else (), rises)

    def meet(self, said: messages.Meet) -> messages.Met | messages.PartyLeft:
        """Sends a value to rank 0, and returns its answer once all ranks have sent theirs."""
        self._send(encode(said))
        answer = self._next()
        if answer is None:
            self._commands.put(None)
            raise BackendError("the ranks", "the run is over")
        if not isinstance(answer, (messages.Met, messages.PartyLeft)):
            raise TypeError(f"unexpected {answer!r}")
        return answer

    def _enter(self, phase: Phase) -> None:
        if self._leads:
            self._signs.enter(phase)

    def hold(self) -> None:
        """Reserves this rank's device. Raises DeviceBusy if another run holds it."""
        device = self._own.gpu or self._own.devices()[0]
        key = device.pci or device.uuid
        if key:
            self._made.enter_context(hold({key: device.memory}))
