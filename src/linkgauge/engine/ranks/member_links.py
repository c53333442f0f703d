"""Rank 0's links to the members. They send commands, receive answers, and notice which ranks are
gone.

While rank 0 waits for an answer, it watches all links and notices the end of any rank. If a rank
does not answer in time, rank 0 asks for a sign of life. A member gives a sign even during other
work, so a member that gives none is lost. A sign says how long the member has waited for CPUs: that
time does not count.

The members watch rank 0 in the same way. While rank 0 waits for answers, it gives a sign of life to
a member that asks. Measurements run only while rank 0 waits. At all other times rank 0 gives signs
without being asked: between two questions, and from a thread while it has other work.

For a rank that is gone, RankLost is raised. `engine/controller.py` records the loss in the journal
as `Run.lost`, and `report/words/worst.py` shows it."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import TypeVar

import msgspec

from linkgauge.engine.workers.deadlines import Deadlines
from linkgauge.engine.workers.messages import DOING, Heartbeat
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
    """Rank 0's links to all ranks. `ranks` has the ranks by number. `doing` says in words what the
    run does. `lost` is the rank that ended the run. `goes_on` lets the run continue if another rank
    than 0 is lost. Questions to a rank in `gone` then fail."""

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
        """Whether the links can no longer be used. This is so if a rank is lost or a question was
        broken off."""
        return self._broken_off or self.lost is not None

    @property
    def all(self) -> tuple[int, ...]:
        return tuple(sorted(self.channels))

    def one(self, rank: int, command: Command, kind: type[_A]) -> _A:
        """Sends a command to one rank and returns its answer."""
        return self.ask((rank,), command, kind)[rank]

    def ask(self, ranks: Collection[int], command: Command, kind: type[_A]) -> dict[int, _A]:
        """Sends a command to several ranks, which work on it at the same time. Returns their
        answers.

        Raises RankLost if any rank ends or does not answer. Otherwise, once all have answered,
        raises the error of the first rank that refused."""
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
        """Sends each rank its own command, and returns the next message of each rank. Ranks that
        are gone are left out. `moved` is the number of bytes that the commands move. Raises
        RankLost if the loss of a rank ends the run."""
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
        """Starts a thread that regularly sends signs of life to all members while rank 0 waits for
        no answer."""
        threading.Thread(target=self._show_life, daemon=True).start()

    def _show_life(self) -> None:
        while not self._closed.wait(BEAT_SECONDS):
            if self._speaking.acquire(blocking=False):
                try:
                    self._give_signs()
                finally:
                    self._speaking.release()

    def _give_signs(self) -> None:
        """Sends a sign of life to all other ranks. Ranks that do not read their messages are left
        out."""
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
        """Returns the ranks that are not gone."""
        return {rank for rank in ranks if rank not in self.gone}

    def _send(self, rank: int, command: object) -> None:
        try:
            self.channels[rank].send(encode(command))
        except OSError:
            self._lose(rank, "ended")

    def _gather(self, ranks: Collection[int], seconds: float) -> dict[int, Done | Refused | Meet]:
        """Returns one answer from each rank, within this many seconds. Ranks that are gone are left
        out. Ranks that wait for a lost rank get some more time, and so do all ranks if one of them
        waited for CPUs: the others may wait for that one."""
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
        """Declares ranks lost that did not answer in time. If some gave no sign of life, only these
        are lost."""
        silent = waiting.difference(alive)
        late = sorted(silent or waiting)
        how = NO_SIGN if silent else "is stuck"
        for rank in late if self.goes_on else late[:1]:
            self._lose(rank, f"{how} after {seconds:.3g} s", "timeout")

    def _readable(self, seconds: float) -> list[int]:
        """Returns the ranks whose link has something to read or is closed."""
        unread = [rank for rank, channel in self.channels.items() if channel.has_unread]
        if unread:
            return unread
        return [self._rank_of[at] for at, _ in self._poller.poll(max(0.0, seconds) * 1e3)]

    def _receive(
        self, rank: int, deadline: float
    ) -> Done | Refused | Meet | Heartbeat | Ping | Pong | None:
        """Returns a message from a rank. Returns None if the rank is gone and the run continues
        without it."""
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
        """Declares a rank lost. Raises RankLost if that ends the run."""
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
        """Returns the error for the `reason` that a rank gave for its refusal."""
        if reason.kind in ("set-aside", "interrupted"):
            reason = Reason(reason.kind, f"{self.ranks[rank]}: {reason.text}")
        return error_of(reason, f"rank {rank}")

    def close(self) -> None:
        """Ends all members. The member of this process ends last, because it waits for the
        others."""
        self._closed.set()
        with self._speaking:
            for rank in reversed(self.all):
                with suppress(OSError):
                    self.channels[rank].send(encode(EndRun(self.is_over)))

    def await_ends(self, seconds: float) -> None:
        """Waits at most this many seconds for the other ranks to end, because a launcher kills them
        when rank 0 ends."""
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
