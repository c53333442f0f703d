"""Rank 0's links to the members: commands out, answers back, and who is gone.

Every answer is waited for beside a look at all other links, so that the end of any rank is noticed
while others are being asked. A rank that does not answer in time is asked for a sign of life, which
a member gives whatever it is at: one that gives none is the culprit, not those that wait for it.

The members watch rank 0 in the same way. While it waits for answers, it gives a sign of life to a
member that asks for one. A clock may run only then, so all other signs come of themselves: between
two questions, and from a thread while rank 0 has other work.
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import TypeVar

import msgspec

from linkgauge.engine.workers.messages import DOING, Heartbeat
from linkgauge.engine.workers.patience import Patience
from linkgauge.machine.channel import Broke, Channel, Done, Reason, Refused, encode, error_of
from linkgauge.model.errors import BackendError, LinkgaugeError, OutcomeKind, Phase
from linkgauge.model.ranks import LostRank, Rank, RankLost

from .commands import Command, EndRun, Meet, Ping, Pong, ShowProgress, Told, decode_reply

NO_SIGN = "gives no sign of life"
BEAT_SECONDS = 1.0
"""Interval of the signs of life that rank 0 gives of itself."""
_A = TypeVar("_A")


class Links:
    """Links to all ranks, `ranks` by number. `doing` is what the run is at, in words. `lost` is
    the rank that ended the run. Where it `goes_on` without a rank, other than 0, only those
    questions fail that ask one of those that are `gone`."""

    goes_on = False

    def __init__(
        self,
        channels: Mapping[int, Channel],
        ranks: Iterable[Rank],
        patience: Patience = Patience(),  # noqa: B008
    ) -> None:
        self.channels = dict(channels)
        self.ranks = {rank.number: rank for rank in ranks}
        self._doing = "starting"
        self.phase: Phase = "allocate"
        """What the cell is at that is measured."""
        self.lost: RankLost | None = None
        self.gone: dict[int, RankLost] = {}
        self._broken_off = False
        self.patience = patience
        self._speaking = threading.RLock()
        """Held while rank 0 asks or tells something: a clock may run, and messages may not mix."""
        self._next_signs = 0.0
        self._closed = threading.Event()
        self._poller = select.poll()
        self._rank_of = {}
        for number, channel in self.channels.items():
            self._rank_of[channel.fileno()] = number
            self._poller.register(channel.fileno(), select.POLLIN)

    @property
    def doing(self) -> str:
        return self._doing

    @doing.setter
    def doing(self, words: str) -> None:
        """All ranks know, should one have to write it down."""
        if words != self._doing:
            self._doing = words
            self.tell(ShowProgress(words))

    @property
    def is_over(self) -> bool:
        """Whether nothing can be asked any more: a rank is lost, or a question was broken off."""
        return self._broken_off or self.lost is not None

    @property
    def all(self) -> tuple[int, ...]:
        return tuple(sorted(self.channels))

    def one(self, rank: int, command: Command, kind: type[_A]) -> _A:
        """The answer of one rank."""
        return self.ask((rank,), command, kind)[rank]

    def ask(self, ranks: Collection[int], command: Command, kind: type[_A]) -> dict[int, _A]:
        """The answers of several ranks, which work on the command at the same time.

        Raises RankLost if a rank ends or does not answer, whichever it is; else the first refusal,
        once all have answered.
        """
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
        """What those ranks say next that are asked this, in order, but for any that is gone; it
        moves so many bytes. Raises RankLost if the run ends with it."""
        with self._speaking:
            try:
                # The member of this process last: it would keep the others from being asked.
                for rank in sorted(commands, reverse=True):
                    self._send(rank, commands[rank])
                replies = self._gather(set(commands), self.patience.of_answer(moved))
            except BaseException:
                self._broken_off = True  # who waits next would take a late answer for its own
                raise
            if time.monotonic() >= self._next_signs:
                self._give_signs()
        return dict(sorted(replies.items()))

    def show_life(self) -> None:
        """From here on until it is closed, all members hear at short intervals that rank 0 lives,
        but for the time in which it waits for answers."""
        threading.Thread(target=self._show_life, daemon=True).start()

    def _show_life(self) -> None:
        while not self._closed.wait(BEAT_SECONDS):
            if self._speaking.acquire(blocking=False):
                try:
                    self._give_signs()
                finally:
                    self._speaking.release()

    def _give_signs(self) -> None:
        """To all others; one that reads nothing needs none."""
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
        """Those that are not gone."""
        return {rank for rank in ranks if rank not in self.gone}

    def tell(self, command: Told | ShowProgress) -> None:
        """A command without an answer, to all. Whoever is gone is noticed at the next question."""
        with self._speaking:
            for rank in self.all:
                with suppress(OSError):
                    self.channels[rank].send(encode(command))

    def _send(self, rank: int, command: object) -> None:
        try:
            self.channels[rank].send(encode(command))
        except OSError:
            self._lose(rank, "ended")

    def _gather(self, waiting: set[int], seconds: float) -> dict[int, Done | Refused | Meet]:
        """One answer of each that is not gone, in at most so many seconds; those that wait for one
        that is gone have some more."""
        replies: dict[int, Done | Refused | Meet] = {}
        alive: set[int] = set()
        deadline, asked = time.monotonic() + seconds, False
        while waiting := self.there(waiting):
            for rank in self._readable(deadline - time.monotonic()):
                reply = self._receive(rank, deadline)
                if reply is None:
                    deadline, asked = time.monotonic() + self.patience.of_settling, False
                elif isinstance(reply, (Ping, Pong, Heartbeat)):
                    self._hear(rank, reply, alive)
                elif rank in waiting:
                    waiting.remove(rank)
                    replies[rank] = reply
            if not waiting or time.monotonic() < deadline:
                continue
            if asked:
                self._lose_late(waiting, alive, seconds)
                deadline, asked = time.monotonic() + self.patience.of_settling, False
                alive.clear()
                continue
            for rank in waiting:
                self._send(rank, Ping())
            deadline, asked = time.monotonic() + self.patience.of_sign, True
        return replies

    def _hear(self, rank: int, said: Ping | Pong | Heartbeat, alive: set[int]) -> None:
        match said:
            case Ping():
                self._send(rank, Pong())
            case Pong():
                alive.add(rank)
            case Heartbeat():
                self.phase, self.doing = said.phase, DOING[said.phase]

    def _lose_late(self, waiting: set[int], alive: set[int], seconds: float) -> None:
        """Those that have not answered in time: without a sign of life, if there are such."""
        late = sorted(waiting - alive) or sorted(waiting)
        how = NO_SIGN if waiting - alive else "is stuck"
        for rank in late if self.goes_on else late[:1]:
            self._lose(rank, f"{how} after {seconds:.3g} s", "timeout")

    def _readable(self, seconds: float) -> list[int]:
        """The ranks whose link has something to read, or is gone."""
        unread = [rank for rank, channel in self.channels.items() if channel.has_unread]
        if unread:
            return unread
        return [self._rank_of[at] for at, _ in self._poller.poll(max(0.0, seconds) * 1e3)]

    def _receive(
        self, rank: int, deadline: float
    ) -> Done | Refused | Meet | Heartbeat | Ping | Pong | None:
        """What it says; null if it is gone, and the run goes on."""
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
        """Raises RankLost, because the run ends here; or goes on without this rank."""
        lost = RankLost(lost_rank(self.ranks.get(rank), rank, how, self.doing), kind)
        if not self.goes_on or not rank:
            self.lost = lost
            raise lost from None
        self.gone[rank] = lost
        channel = self.channels.pop(rank)
        self._poller.unregister(channel.fileno())
        del self._rank_of[channel.fileno()]
        channel.close(0.0)

    def refusal(self, rank: int, reason: Reason) -> LinkgaugeError:
        """What the member raised."""
        if reason.kind in ("set-aside", "interrupted"):
            reason = Reason(reason.kind, f"{self.ranks[rank]}: {reason.text}")
        return error_of(reason, f"rank {rank}")

    def close(self) -> None:
        """Lets all members leave: that of this process last, for it then waits for the others."""
        self._closed.set()
        with self._speaking:
            for rank in reversed(self.all):
                with suppress(OSError):
                    self.channels[rank].send(encode(EndRun(self.is_over)))

    def await_ends(self, seconds: float) -> None:
        """Waits until the other ranks have ended, at most this long: a launcher ends those that are
        left when rank 0 does."""
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


def lost_rank(rank: Rank | None, number: int, how: str, doing: str) -> LostRank:
    """What is known of a rank that is gone."""
    if rank is None:
        return LostRank(number, how, doing)
    return LostRank(number, how, doing, rank.host, rank.process, rank.memory)
