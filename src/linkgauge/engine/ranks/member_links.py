"""Rank 0's links to the members. Rank 0 sends commands by them and notices which ranks are gone.

While rank 0 waits for answers, it watches all links. If a member's answer is late, rank 0 sends it
a `Ping`. A member answers with a `Pong` even during work; a member that does not is lost. A `Pong`
says how many seconds the member has waited for CPUs. They extend the deadline.

The members watch rank 0 in the same way. While rank 0 waits for answers, it sends a `Pong` only
after a `Ping`. At all other times, it sends one every second."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import TypeVar

import msgspec

from linkgauge.engine.workers.messages import Deadlines, Heartbeat
from linkgauge.engine.workers.outcomes import DOING
from linkgauge.machine.processes.channel import (
    Broke,
    Channel,
    Done,
    Reason,
    Refused,
    encode,
    error_of,
)
from linkgauge.model.errors import BackendError, LinkgaugeError, OutcomeKind, Phase
from linkgauge.model.ranks import Rank, RankLost, lost_rank

from .commands import Command, EndRun, Meet, Ping, Pong, decode_reply

NO_SIGN = "gives no sign of life"
BEAT_SECONDS = 1.0
"""The interval of rank 0's signs of life."""
_A = TypeVar("_A")


class Links:
    """Rank 0's links to all ranks. `doing` says what the run does. `lost` is the loss that ended
    the run. If `goes_on` is true, only the loss of rank 0 ends it: other lost ranks are in `gone`,
    and commands to them fail."""

    goes_on = False

    def __init__(
        self,
        channels: Mapping[int, Channel],
        ranks: Iterable[Rank],
        deadlines: Deadlines = Deadlines(),  # noqa: B008
    ) -> None:
        self.channels = dict(channels)
        self.ranks = {rank.number: rank for rank in ranks}
        self.doing = "starting"
        self.phase: Phase = "allocate"
        """The phase of the measured cell."""
        self.lost: RankLost | None = None
        self.gone: dict[int, RankLost] = {}
        self._broken_off = False
        self.deadlines = deadlines
        self._speaking = threading.RLock()
        """The lock that is held while rank 0 asks or sends. Signs of life must not be sent while a
        clock runs, and messages must not mix."""
        self._next_signs = 0.0
        self._closed = threading.Event()
        self._poller = select.poll()
        self._rank_of = {}
        for number, channel in self.channels.items():
            self._rank_of[channel.fileno()] = number
            self._poller.register(channel.fileno(), select.POLLIN)

    @property
    def is_over(self) -> bool:
        """Whether rank 0 can send no more commands: a loss or an interruption ended the run."""
        return self._broken_off or self.lost is not None

    @property
    def all(self) -> tuple[int, ...]:
        return tuple(sorted(self.channels))

    def one(self, rank: int, command: Command, kind: type[_A]) -> _A:
        return self.ask((rank,), command, kind)[rank]

    def ask(self, ranks: Collection[int], command: Command, kind: type[_A]) -> dict[int, _A]:
        """Sends a command and returns the answers of `ranks`. Raises RankLost if a rank ends or is
        silent. If a rank answers with an error, raises it after all ranks have answered."""
        if self.lost is not None:
            raise self.lost
        if self.is_over:
            raise BackendError("ask the ranks", "the run is over")
        self.check_there(ranks)
        replies = self.round(dict.fromkeys(ranks, command))
        self.check_there(ranks)
        for rank, reply in replies.items():
            if isinstance(reply, Refused):
                raise self.refusal(rank, reply.reason)
        return {rank: reply.of(kind) for rank, reply in replies.items() if isinstance(reply, Done)}

    def round(
        self, commands: Mapping[int, object], moved: int = 0
    ) -> dict[int, Done | Refused | Meet]:
        """Sends each rank its command, and returns the next message of each rank that is not gone.
        `moved` is the bytes that commands move. Raises RankLost if a loss ends the run."""
        with self._speaking:
            try:
                # The member of this process last: it would keep the others from being asked.
                for rank in sorted(commands, reverse=True):
                    self._send(rank, commands[rank])
                replies = self._gather(commands.keys(), self.deadlines.of_answer(moved))
            except BaseException:
                self._broken_off = True  # who waits next would take a late answer for its own
                raise
            if time.monotonic() >= self._next_signs:
                self._give_signs()
        return dict(sorted(replies.items()))

    def show_life(self) -> None:
        """Starts a thread that gives members signs of life while rank 0 waits for no answer."""
        threading.Thread(target=self._show_life, daemon=True).start()

    def _show_life(self) -> None:
        while not self._closed.wait(BEAT_SECONDS):
            if self._speaking.acquire(blocking=False):
                try:
                    if not self._closed.is_set():  # else the channels may be closed, too
                        self._give_signs()
                finally:
                    self._speaking.release()

    def _give_signs(self) -> None:
        self._next_signs = time.monotonic() + BEAT_SECONDS
        for rank, channel in self.channels.items():
            with suppress(OSError):  # who is gone is noticed at the next question
                if rank and channel.has_room:
                    channel.send(encode(Pong()))

    def check_there(self, ranks: Iterable[int]) -> None:
        """Raises RankLost for the first of these ranks that is gone."""
        for rank in ranks:
            if rank in self.gone:
                raise self.gone[rank]

    def there(self, ranks: Iterable[int]) -> set[int]:
        return {rank for rank in ranks if rank not in self.gone}

    def _send(self, rank: int, command: object) -> None:
        try:
            self.channels[rank].send(encode(command))
        except OSError:
            self._lose(rank, "ended")

    def _gather(self, ranks: Collection[int], seconds: float) -> dict[int, Done | Refused | Meet]:
        """Returns an answer of each rank that is not gone. Answers are due in `seconds`. If a rank
        is lost, the ranks that wait for it get more time. If a rank waited for CPUs, all get more
        time, because the others may wait for that rank."""
        replies: dict[int, Done | Refused | Meet] = {}
        waited: dict[int, float] = {}
        began, limit = time.monotonic(), seconds
        deadline, asked = began + limit, False
        while waiting := self.there(ranks) - replies.keys():
            for rank in self._readable(deadline - time.monotonic()):
                reply = self._receive(rank, deadline)
                if reply is None:
                    began, limit = time.monotonic(), self.deadlines.of_settling
                    deadline, asked = began + limit, False
                elif isinstance(reply, (Ping, Pong, Heartbeat)):
                    self._hear(rank, reply, waited)
                elif rank in waiting:
                    waiting.remove(rank)
                    replies[rank] = reply
            if not waiting or time.monotonic() < deadline:
                continue
            if not asked:
                waited.clear()
                for rank in self.there(ranks):
                    self._send(rank, Ping())
                deadline, asked = time.monotonic() + self.deadlines.of_sign, True
                continue
            deadline, asked = began + limit + max(waited.values(), default=0.0), False
            if waiting - waited.keys() or time.monotonic() >= deadline:
                self._lose_late(waiting, waited, seconds)
                began, limit = time.monotonic(), self.deadlines.of_settling
                deadline = began + limit
        return replies

    def _hear(self, rank: int, said: Ping | Pong | Heartbeat, waited: dict[int, float]) -> None:
        match said:
            case Ping():
                self._send(rank, Pong())
            case Pong():
                waited[rank] = said.waited
            case Heartbeat():
                self.phase, self.doing = said.phase, DOING[said.phase]

    def _lose_late(self, waiting: set[int], alive: Collection[int], seconds: float) -> None:
        """Declares ranks lost: the `waiting` ranks that are not `alive` or, if all of them are, all
        `waiting` ranks. Unless `goes_on` is true, only the first one is lost."""
        silent = waiting.difference(alive)
        late = sorted(silent or waiting)
        how = NO_SIGN if silent else "is stuck"
        for rank in late if self.goes_on else late[:1]:
            self._lose(rank, f"{how} after {seconds:.3g} s", "timeout")

    def _readable(self, seconds: float) -> list[int]:
        unread = [rank for rank, channel in self.channels.items() if channel.has_unread]
        if unread:
            return unread
        return [self._rank_of[at] for at, _ in self._poller.poll(max(0.0, seconds) * 1e3)]

    def _receive(
        self, rank: int, deadline: float
    ) -> Done | Refused | Meet | Heartbeat | Ping | Pong | None:
        how: str
        kind: OutcomeKind
        try:
            reply = decode_reply(self.channels[rank].receive(deadline))
        except TimeoutError:
            how, kind = "stopped in the middle of an answer", "timeout"
        except (EOFError, OSError):
            how, kind = "ended", "crash"
        except msgspec.DecodeError as error:
            how, kind = f"sent an unreadable message ({error})", "call"
        else:
            if isinstance(reply, (Done, Refused, Meet, Heartbeat, Ping, Pong)):
                return reply
            how, kind = "connected again", "call"
            if isinstance(reply, Broke):
                how, kind = f"failed ({reply.reason})", "exit"
        self._lose(rank, how, kind)
        return None

    def _lose(self, rank: int, how: str, kind: OutcomeKind = "crash") -> None:
        lost = RankLost(lost_rank(rank, how, self.doing, self.ranks.get(rank)), kind)
        if not self.goes_on or not rank:
            self.lost = lost
            raise lost from None
        self.gone[rank] = lost
        channel = self.channels.pop(rank)
        self._poller.unregister(channel.fileno())
        del self._rank_of[channel.fileno()]
        channel.close(0.0)

    def refusal(self, rank: int, reason: Reason) -> LinkgaugeError:
        if reason.kind in ("set-aside", "interrupted"):
            reason = Reason(reason.kind, f"{self.ranks[rank]}: {reason.text}")
        return error_of(reason, f"rank {rank}")

    def close(self) -> None:
        """Ends all members: at last this process's own member, which waits for the others."""
        self._closed.set()
        with self._speaking:
            for rank in reversed(self.all):
                with suppress(OSError):
                    self.channels[rank].send(encode(EndRun(self.is_over)))

    def await_ends(self, seconds: float) -> None:
        """Waits until the other ranks end, because a launcher kills them when rank 0 ends."""
        deadline = time.monotonic() + seconds
        left = set(self.all) - {0}
        with suppress(KeyError):  # that of this process has ended
            self._poller.unregister(self.channels[0].fileno())
        while left and (now := time.monotonic()) < deadline:
            for rank in left & set(self._readable(deadline - now)):
                try:
                    self.channels[rank].receive(deadline)
                except (EOFError, OSError):
                    left.discard(rank)
                    self._poller.unregister(self.channels[rank].fileno())
