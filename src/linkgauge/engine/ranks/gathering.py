"""Connects the ranks of a launch: rank 0 listens, and the others connect to it.

On one machine, the ranks connect by the name of a socket and do not need MPI. On several machines,
MPI sends rank 0's address to the other ranks, unless the launcher gave it to all of them."""

from __future__ import annotations

import hmac
import os
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from linkgauge import __version__
from linkgauge.backends.mpi.world import leave, mpi_errors, world
from linkgauge.engine.workers.messages import Deadlines
from linkgauge.machine.processes.channel import Channel, encode
from linkgauge.machine.processes.launch import Launch, host_name, ranks_per_cpu
from linkgauge.machine.processes.wire import (
    NotReached,
    accepted,
    connect_at,
    connect_here,
    connect_there,
    is_ours,
    listen_anywhere,
    listen_at,
    listen_here,
)
from linkgauge.machine.source import commit
from linkgauge.model.errors import InputError, LinkgaugeError
from linkgauge.model.ranks import LostRank, Oversubscription, Rank, RankLost, lost_rank

from .commands import PROTOCOL, Admitted, Card, EndRun, Ping, Pong, decode_reply
from .member_links import Links
from .member_loop import Agent
from .started import JOINING, LOOK_SECONDS, Processes

JOIN_SECONDS = 60.0
"""The seconds in which all ranks must appear; longer if they share CPUs."""
LEAVE_SECONDS = 10.0
"""The seconds in which all members must leave."""
LATE_SECONDS = 5.0
"""The seconds in which ranks must learn that the run does not start."""
CARD_SECONDS, CARD_BYTES = 5.0, 1 << 16
"""The seconds in which a card must arrive after its first byte, and its largest size in bytes,
which suffices for all CPUs of the largest machine."""
MOMENT_SECONDS = 1.0
"""The seconds to wait for a member's thread after a run that was broken off. Most samples take
less."""


def join_seconds(launch: Launch, limit: float | None) -> float:
    return max(limit or 0.0, JOIN_SECONDS * Deadlines.shared(ranks_per_cpu(launch)).slow)


def card_of(launch: Launch, token: bytes = b"") -> Card:
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    own = commit(Path(__file__))
    return Card(launch.rank, host_name(), os.getpid(), __version__, PROTOCOL, token, cpus, own)


def _unlike(card: Card) -> str:
    own, its = __version__, card.version
    if own == its:
        ours = commit(Path(__file__))
        its += f" of commit {card.commit[:12]}" if card.commit else f", messages {card.protocol}"
        own += f" of commit {ours[:12]}" if ours and card.commit else f", messages {PROTOCOL}"
    return f"{_rank(card)} has linkgauge {its}, rank 0 has {own}"


def serve_as_rank(
    launch: Launch, limit: float | None, left: Callable[[LostRank | None], None]
) -> None:
    """Connects to rank 0 and serves it until the run is over. `limit` may extend the deadlines.
    Calls `left` if a rank is lost. Raises RankLost if rank 0 cannot be reached."""
    seconds = join_seconds(launch, limit)
    processes = Processes(launch)
    token = b""

    def look() -> None:
        if (lost := processes.ended((0,))) is not None:
            raise RankLost(lost)

    try:
        if launch.first is not None:
            end, token = connect_at(launch.first, seconds, look), launch.token.encode()
        elif launch.on_one_machine:
            end = connect_here(launch, seconds, look)
        else:
            host, port, token = _exchanged(launch, None)
            end = connect_there(host, port, seconds)
    except NotReached as error:
        raise RankLost(lost_rank(0, str(error), JOINING), "timeout") from error
    with end:
        channel = Channel(end)
        channel.send(encode(card_of(launch, token)))
        deadlines = Deadlines.shared(ranks_per_cpu(launch), seconds)
        Agent(channel, launch, left, deadlines).serve()


def _exchanged(launch: Launch, address: tuple[str, int, bytes] | None) -> tuple[str, int, bytes]:
    mpi = world(launch)
    with mpi_errors("MPI_Bcast"):
        heard: tuple[str, int, bytes] = mpi.COMM_WORLD.bcast(address, root=0)
    return heard


class Gathering:
    """Rank 0's connections to all ranks, in `links`. Rank 0's own member runs in a thread."""

    def __init__(self, launch: Launch, limit: float | None) -> None:
        self._launch = launch
        self._token = b""
        self._problem: LinkgaugeError | None = None
        address = None
        if launch.first is not None:
            self._listening, self._token = listen_at(launch.first), launch.token.encode()
        elif launch.on_one_machine:
            self._listening = listen_here(launch)
        else:
            self._listening, address = listen_anywhere()
            self._token = address[2]
        ours, theirs = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, args=(theirs, address), daemon=True)
        self._thread.start()
        self._channels = {0: Channel(ours)}
        self._strangers: dict[int, Channel] = {}
        """Connections that have not yet identified themselves, by their file descriptor."""
        self._gone = 0
        """The number of ranks that ended before they appeared."""
        self._cards = {0: card_of(launch)}
        try:
            self._await_all(join_seconds(launch, limit))
        except BaseException:
            self._send_away()
            raise
        finally:
            self._listening.close()
            for stranger in self._strangers.values():
                stranger.close(0.0)
        ranks = [_rank(card) for card in self._cards.values()]
        self.links = Links(self._channels, ranks, Deadlines.shared(ranks_per_cpu(launch), limit))
        self.links.show_life()

    def _serve(self, end: socket.socket, address: tuple[str, int, bytes] | None) -> None:
        with end:
            try:
                if address is not None:
                    _exchanged(self._launch, address)
            except LinkgaugeError as error:
                self._problem = error
                return  # the end is closed, which the other thread notices
            Agent(Channel(end), self._launch, lambda _: None).serve()
            leave(self._launch)

    def _await_all(self, seconds: float) -> None:
        """Awaits all ranks. Raises RankLost for a missing one, InputError if versions differ."""
        deadline = time.monotonic() + seconds
        processes = Processes(self._launch)
        poller = select.poll()
        poller.register(self._listening, select.POLLIN)
        rank_of = {self._channels[0].fileno(): 0}
        poller.register(self._channels[0].fileno(), select.POLLIN)
        while len(self._cards) < self._launch.size:
            left = deadline - time.monotonic()
            ready = poller.poll(min(max(0.0, left), LOOK_SECONDS) * 1e3)
            if not ready:
                self._look_for_missing(processes, seconds, is_late=left <= 0)
            for at, _ in ready:
                if at in rank_of:
                    self._hear(rank_of[at])
                    continue
                if at == self._listening.fileno():
                    end = accepted(self._listening)
                    self._strangers[end.fileno()] = Channel(end)
                    poller.register(end, select.POLLIN)
                    continue
                poller.unregister(at)
                if (rank := self._admit(self._strangers.pop(at))) is not None:
                    rank_of[at] = rank
                    poller.register(at, select.POLLIN)

    def _look_for_missing(self, processes: Processes, seconds: float, *, is_late: bool) -> None:
        missing = sorted(set(range(self._launch.size)) - set(self._cards))
        if (lost := processes.ended(missing)) is not None:
            self._gone += 1
            raise RankLost(lost)
        if is_late:
            how = f"did not appear within {seconds:g} s"
            raise RankLost(lost_rank(missing[0], how, JOINING), "timeout")

    def _hear(self, rank: int) -> None:
        channel = self._channels[rank]
        try:
            said = decode_reply(channel.receive(time.monotonic() + CARD_SECONDS))
        except (EOFError, OSError, msgspec.DecodeError):
            said = None
        if not isinstance(said, Ping):
            lost = lost_rank(rank, "ended", JOINING, _rank(self._cards[rank]))
            raise self._problem or RankLost(lost)
        with suppress(OSError):
            channel.send(encode(Pong()))

    def _send_away(self) -> None:
        for rank in set(self._channels) - {0}:  # the member of this process ends with it
            _send_end(self._channels[rank])
        deadline = time.monotonic() + LATE_SECONDS
        left = self._launch.size - len(self._channels) - self._gone
        for stranger in self._strangers.values():
            left -= _dismiss(stranger, time.monotonic())
        while left > 0 and (seconds := deadline - time.monotonic()) > 0:
            self._listening.settimeout(seconds)
            try:
                late = Channel(self._listening.accept()[0])
            except OSError:
                return
            left -= _dismiss(late, deadline)

    def _admit(self, channel: Channel) -> int | None:
        try:
            card = decode_reply(channel.receive(time.monotonic() + CARD_SECONDS, CARD_BYTES))
        except (EOFError, OSError, msgspec.DecodeError):
            card = None
        if not isinstance(card, Card) or not self._is_of_this_launch(channel, card):
            channel.close(0.0)
            return None
        if card.rank in self._channels:
            _send_end(channel)
        self._channels.setdefault(card.rank, channel)
        self._check(card)
        self._cards[card.rank] = card
        with suppress(OSError):  # if it is gone, that is noticed next
            channel.send(encode(Admitted(_rank(self._cards[0]))))
        return card.rank

    def _is_of_this_launch(self, channel: Channel, card: Card) -> bool:
        if self._launch.by_name:
            return is_ours(channel.socket)
        return hmac.compare_digest(card.token, self._token)

    def _check(self, card: Card) -> None:
        if (card.version, card.protocol) != (__version__, PROTOCOL):
            raise InputError(f"{_unlike(card)}: install the same version everywhere")
        if not 0 <= card.rank < self._launch.size:
            raise InputError(
                f"{_rank(card)} is beyond the {self._launch.size} ranks of this launch"
            )
        if card.rank in self._cards:
            raise InputError(
                f"{_rank(card)} appears twice: {_rank(self._cards[card.rank])} came first"
            )

    @property
    def oversubscription(self) -> Oversubscription | None:
        """The machine with the most ranks per CPU if its ranks outnumber its CPUs, else None."""
        cpus: dict[str, set[int]] = {}
        for card in self._cards.values():
            cpus.setdefault(card.host, set()).update(card.cpus)
        ranks = Counter(card.host for card in self._cards.values())
        host = max(ranks, key=lambda host: ranks[host] / max(1, len(cpus[host])))
        oversubscription = Oversubscription(host, ranks[host], len(cpus[host]))
        return oversubscription if oversubscription.ranks > oversubscription.cpus else None

    def close(self, grace: float = LEAVE_SECONDS) -> None:
        """Ends all members. Waits at most `grace` seconds for this process's own member."""
        deadline = time.monotonic() + grace
        self.links.close()
        self._thread.join(MOMENT_SECONDS if self.links.is_over else grace)
        if not self.links.is_over:
            self.links.await_ends(deadline - time.monotonic())


def _send_end(channel: Channel) -> None:
    with suppress(OSError):
        channel.send(encode(EndRun(lost=True)))
    channel.close(0.0)


def _dismiss(late: Channel, deadline: float) -> bool:
    said = False
    with suppress(EOFError, OSError):
        said = bool(late.receive(deadline, CARD_BYTES))
    _send_end(late)
    return said


def _rank(card: Card) -> Rank:
    return Rank(card.rank, card.host, card.process)
