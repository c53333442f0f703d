"""All ranks of a launch find rank 0; who does not fit or appear ends the run, and nobody else."""

import os
import socket
import threading
from contextlib import contextmanager

import pytest

from linkgauge.cluster import gathering as module
from linkgauge.cluster.gathering import (
    CARD_BYTES,
    Gathering,
    serve_as_rank,
)
from linkgauge.cluster.messages import (
    Card,
    Clock,
    End,
    Pong,
    Told,
    decode_command,
    encode,
)
from linkgauge.cluster.wire import connect_here, listen_here
from linkgauge.engine.channel import Channel
from linkgauge.model.errors import InputError
from linkgauge.model.ranks import Crowd, LostRank, Rank, RankLost
from ranks_kit import LONG, SOON, job, launch

HERE = socket.gethostname()


@pytest.fixture(autouse=True)
def _ends(monkeypatch):
    """Ends of links that a process would close with its own end."""
    made = []
    pair = socket.socketpair
    monkeypatch.setattr(socket, "socketpair", lambda: made.append(pair()) or made[-1])
    monkeypatch.setattr(module, "LATE_SECONDS", SOON)
    monkeypatch.setattr(module, "JOIN_SECONDS", SOON)
    yield
    for end in (end for ends in made for end in ends):
        end.close()


class Visitor:
    """Somebody who connects to rank 0, and says this."""

    def __init__(self, end, *sent):
        self.channel = Channel(end)
        for message in sent:
            end.sendall(message) if isinstance(message, bytes) else self.channel.send(
                encode(message)
            )

    def hears(self):
        """All that is said to it before rank 0 leaves it."""
        said = []
        try:
            while True:
                said.append(decode_command(self.channel.receive()))
        except (EOFError, OSError):
            self.channel.close(0.0)
        return said


@pytest.fixture
def door(monkeypatch):
    """Visitors come before rank 0 looks: no test depends on who is fast."""

    class Door:
        name = job()
        visitors = ()

        def __init__(self):
            self.listening = listen_here(launch(name=self.name))
            monkeypatch.setattr(module, "listen_here", lambda of: self.listening)

        def visit(self, *sent):
            visitor = Visitor(connect_here(launch(name=self.name), LONG), *sent)
            self.visitors = (*self.visitors, visitor)
            return visitor

        def gather(self, size, limit=LONG):
            return Gathering(launch(0, size, name=self.name), limit)

    made = Door()
    yield made
    made.listening.close()
    for visitor in made.visitors:
        visitor.channel.close(0.0)


def card(number, **more):
    return Card(
        number, **{"host": HERE, "process": 100 + number, "version": module.__version__, **more}
    )


@contextmanager
def served(*launches):
    """Ranks as threads, which serve until the run is over; what each was told, and how it left."""
    agents, lefts = {}, {}

    def serve(own):
        agent = serve_as_rank(own, LONG, lambda _, how: lefts.update({own.rank: how}))
        agents[own.rank] = agent
        agent._channel.close(0.0)

    threads = [threading.Thread(target=serve, args=(own,)) for own in launches]
    for thread in threads:
        thread.start()
    yield agents, lefts
    for thread in threads:
        thread.join()


def close(gathered, patience=SOON):
    """Visitors do not leave when they are told to."""
    gathered.close(patience)
    for channel in gathered.links.channels.values():
        channel.close(0.0)


class TestAll:
    def test_appear_and_answer(self):
        name = job()
        with served(*(launch(n, 4, name=name) for n in (3, 1, 2))) as (agents, lefts):
            gathered = Gathering(launch(0, 4, name=name), LONG)
            links = gathered.links
            assert links.all == (0, 1, 2, 3)
            assert links.ranks == {n: Rank(n, HERE, os.getpid()) for n in range(4)}
            clocks = links.ask(links.all, Clock(), float)
            assert list(clocks) == [0, 1, 2, 3]
            close(gathered, LONG)
        assert lefts == {}, "all left in peace"
        assert all(agent.introduction.first == links.ranks[0] for agent in agents.values())

    def test_after_a_loss_all_hear_that(self):
        name = job()
        with served(launch(1, 2, name=name)) as (_, lefts):
            gathered = Gathering(launch(0, 2, name=name), LONG)
            gathered.links.lost = RankLost(LostRank(1, "ended", "measuring"))
            close(gathered, LONG)
        assert lefts == {1: None}

    @pytest.mark.parametrize(
        ("others", "crowd"),
        [
            ([("node7", {0, 1}), ("node7", {2, 3})], None),
            ([("node7", {0}), ("node7", {1})], None),
            ([("node7", {0}), ("node7", {0})], Crowd("node7", 2, 1)),
            ([("node7", {0, 1}), ("node8", {5}), ("node8", {5}), ("node8", {5, 6})],
             Crowd("node8", 3, 2)),
            ([("node7", {0}), ("node7", {0}), ("node8", {5}), ("node8", {5}), ("node8", {5})],
             Crowd("node8", 3, 1)),
            ([("node7", ())] * 3, Crowd("node7", 3, 0)),
        ],
    )  # fmt: skip
    def test_that_have_to_share_cpus_are_found(self, door, others, crowd):
        """On the machine where most share the fewest."""
        for number, (host, cpus) in enumerate(others, start=1):
            door.visit(card(number, host=host, cpus=tuple(cpus)))
        gathered = door.gather(1 + len(others))
        assert gathered.crowd == crowd
        close(gathered)


class TestMissing:
    def test_who_never_appears_is_named(self, door, monkeypatch):
        monkeypatch.setattr(os, "cpu_count", lambda: 4)
        here = [door.visit(card(n)) for n in (1, 3)]
        with pytest.raises(RankLost) as caught:
            door.gather(4, SOON)
        assert caught.value.kind == "timeout"
        said = f"rank 2 ({HERE}) did not appear within 0.05 s while joining"
        assert str(caught.value) == said
        for visitor in here:
            assert visitor.hears() == [Told(Rank(0, HERE, os.getpid())), End(lost=True)]

    def test_who_ends_before_all_are_there_is_named(self, door):
        door.visit(card(1)).channel.close(0.0)
        stays = door.visit(card(2))
        with pytest.raises(RankLost) as caught:
            door.gather(4)
        assert caught.value.lost == LostRank(1, "ended", "joining", HERE, 101)
        assert caught.value.kind == "crash"
        assert stays.hears()[-1] == End(lost=True)

    @pytest.mark.parametrize("first", [None, "127.0.0.1:1"])
    def test_nor_a_rank_0_whose_process_has_ended(self, monkeypatch, first):
        lost = LostRank(0, "ended", "joining", HERE, 100)
        monkeypatch.setattr(module.Processes, "ended", lambda self, missing: lost)
        own = launch(1, 2, name=job())._replace(first=first)
        with pytest.raises(RankLost) as caught:
            serve_as_rank(own, LONG, lambda *_: None)
        assert caught.value.lost == lost


class TestMisfits:
    def refused(self, door, size=3):
        with pytest.raises(InputError) as caught:
            door.gather(size)
        for visitor in door.visitors:
            assert visitor.hears()[-1] == End(lost=True)
        return str(caught.value)

    def test_another_version(self, door):
        door.visit(card(1))
        door.visit(card(2, version="0.0.7"))
        assert self.refused(door) == (
            f"rank 2 ({HERE}, process 102) has linkgauge 0.0.7, rank 0 has {module.__version__}: "
            "install the same version everywhere"
        )

    def test_the_same_rank_twice(self, door):
        door.visit(card(1))
        door.visit(card(1, process=7))
        assert self.refused(door) == (
            f"rank 1 ({HERE}, process 7) appears twice: rank 1 ({HERE}, process 101) came first"
        )

    @pytest.mark.parametrize("number", [3, -1])
    def test_a_rank_beyond_the_last(self, door, number):
        door.visit(card(number))
        assert self.refused(door).endswith(") is beyond the 3 ranks of this launch")


GARBAGE = [
    (b"GET / HTTP/1.1\r\n\r\n",),
    (b"\x10\x00\x00\x00not msgpack at all",),
    ((CARD_BYTES + 1).to_bytes(4, "little") + bytes(CARD_BYTES + 1),),
    (b"\xff\xff\xff\xff",),
    (Pong(),),
    (End(),),
    (b"",),
]


class TestStrangers:
    @pytest.mark.parametrize("sent", GARBAGE)
    def test_are_not_admitted_and_harm_nothing(self, door, sent):
        stranger = door.visit(*sent)
        door.visit(card(1))
        gathered = door.gather(2)
        assert gathered.links.all == (0, 1)
        assert gathered.links.one(0, Clock(), float) > 0
        stranger.channel.close(0.0)
        close(gathered)

    def test_of_other_users_are_no_ranks(self, door, monkeypatch):
        own = iter((False, True))
        monkeypatch.setattr(module, "is_ours", lambda end: next(own))
        intruder = door.visit(card(1, process=666))
        door.visit(card(1))
        gathered = door.gather(2)
        assert gathered.links.ranks[1].process == 101
        assert intruder.hears() == []
        close(gathered)
