"""All ranks of a launch find rank 0; who does not fit or appear ends the run, and nobody else."""

import socket
import threading
import time
from contextlib import ExitStack

import pytest

import linkgauge
from command_kit import called
from linkgauge.engine.ranks.commands import Admitted, Card, EndRun, Ping, Pong, decode_command
from linkgauge.machine.processes.channel import Channel, encode
from ranks_kit import LONG

TOKEN = "a-long-secret"
CARD_BYTES = 1 << 16
"""The most that a card may be."""


def card(number, **more):
    known = {"host": "box", "process": 100 + number, "version": linkgauge.__version__}
    return Card(number, **known | {"token": TOKEN.encode()} | more)


class Repetitions:
    """Those who come to rank 0, one after another, and what each hears until rank 0 leaves it."""

    def __init__(self, held):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._held, self.visitors = held, []

    def repetition(self, sent):
        """Waits for the first answer, or until it is sent away."""
        end = self.connected()
        visitor = Channel(end)
        self._held.callback(visitor.close, 0.0)
        end.sendall(sent) if isinstance(sent, bytes) else visitor.send(encode(sent))
        self.visitors.append(visitor)
        visitor.said = self._heard(visitor)
        return visitor

    def connected(self):
        until = time.monotonic() + LONG
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port), LONG)
            except OSError:
                assert time.monotonic() < until, "rank 0 does not listen"
                time.sleep(0.01)

    def _heard(self, visitor):
        try:
            return [decode_command(visitor.receive())]
        except (EOFError, OSError):
            return []

    def last_words(self, visitor):
        return (self._heard(visitor) or visitor.said)[-1]


@pytest.fixture(autouse=True)
def _ends(monkeypatch):
    """Closes ends of links that a process would close with its own end."""
    made, pair, accept = [], socket.socketpair, socket.socket.accept

    def of_pair():
        made.extend(both := pair())
        return both

    def accepted(listening):
        found = accept(listening)
        made.append(found[0])
        return found

    monkeypatch.setattr(socket, "socketpair", of_pair)
    monkeypatch.setattr(socket.socket, "accept", accepted)
    yield
    for end in made:
        end.close()


@pytest.fixture
def gathered(tmp_path):
    """`gathered(come, size)`: what rank 0 of so many says, to which come those whom
    `come(repetitions)` lets repetition."""
    with ExitStack() as held:

        def rank_0(come, size, *words):
            repetitions = Repetitions(held)
            coming = threading.Thread(target=come, args=(repetitions,))
            coming.start()
            done = called(
                *(words or ("run", "multinode_bisect_write_ce", "--out", tmp_path)),
                "--machine", "ppu-2x2",
                LINKGAUGE_RANK=0, LINKGAUGE_RANKS=size, LINKGAUGE_TOKEN=TOKEN,
                LINKGAUGE_FIRST=f"127.0.0.1:{repetitions.port}",
            )  # fmt: skip
            coming.join()
            return done, repetitions

        yield rank_0


@pytest.mark.parametrize(
    ("cards", "size", "says"),
    [
        (
            [card(1), card(2, version="0.0.7")], 3,
            f"rank 2 (box, process 102) has linkgauge 0.0.7, rank 0 has {linkgauge.__version__}: ",
        ),
        (
            [card(1), card(2, protocol=1, commit="0123456789ab" + 28 * "c")], 3,
            f" has linkgauge {linkgauge.__version__} of commit 0123456789ab, rank 0 has ",
        ),
        (
            [card(1), card(1, process=7), card(2)], 3,
            "rank 1 (box, process 7) appears twice: rank 1 (box, process 101) came first",
        ),
        ([card(3)], 2, "rank 3 (box, process 103) is beyond the 2 ranks of this launch"),
        ([card(-1)], 2, "rank -1 (box, process 99) is beyond the 2 ranks of this launch"),
    ],
)  # fmt: skip
def test_who_does_not_fit_is_named_and_all_are_told_that_it_is_over(gathered, cards, size, says):
    done, repetitions = gathered(lambda to: [to.repetition(one) for one in cards], size)
    assert done.returncode == 2
    assert says in done.stderr.splitlines()[-1]
    fits = len(cards) > 1
    assert all(isinstance(one.said[0], Admitted) for one in repetitions.visitors[:fits])
    assert all(one.said == [EndRun(lost=True)] for one in repetitions.visitors[fits:])
    assert {repetitions.last_words(one) for one in repetitions.visitors} == {EndRun(lost=True)}


def test_who_ends_before_all_are_there_is_named(gathered):
    def come(repetitions):
        stays = repetitions.repetition(card(2))
        stays.send(encode(Ping()))
        assert repetitions.last_words(stays) == Pong()
        with repetitions.connected():  # and says nothing
            repetitions.repetition(card(1)).close(0.0)
            assert repetitions.last_words(stays) == EndRun(lost=True)
        assert repetitions.repetition(card(3)).said == [EndRun(lost=True)]

    done, _ = gathered(come, 4, "copy", "sim:0@0 -> sim:1@1 by sim:0@0.ce")
    assert done.returncode == 3
    assert "rank 1 (box, process 101) ended while joining" in done.stdout + done.stderr


def test_who_does_not_appear_is_named_and_hears_later_that_it_comes_to_nothing(
    gathered, monkeypatch
):
    real, ahead = time.monotonic, [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: real() + ahead[0])

    def come(repetitions):
        first = repetitions.repetition(card(1))
        ahead[0] = 3600.0
        assert repetitions.last_words(first) == EndRun(lost=True)
        late = repetitions.repetition(card(2))
        assert late.said == [EndRun(lost=True)]

    done, _ = gathered(come, 3)
    assert done.returncode == 3
    assert "rank 2 did not appear within " in done.stdout + done.stderr


STRANGERS = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x10\x00\x00\x00not msgpack at all",
    (CARD_BYTES + 1).to_bytes(4, "little") + bytes(CARD_BYTES + 1),
    b"\xff\xff\xff\xff",
    Pong(),
    EndRun(),
    card(1, token=b"", process=666),
    card(1, token=b"guessed-by-one-else", process=666),
]


def test_strangers_are_not_admitted_and_harm_nothing(gathered):
    def come(repetitions):
        for stranger in STRANGERS:
            repetitions.repetition(stranger)
        repetitions.repetition(card(1)).close(0.0)

    done, repetitions = gathered(come, 2)
    *strangers, rank = repetitions.visitors
    assert [stranger.said for stranger in strangers] == [[]] * len(STRANGERS)
    assert isinstance(rank.said[0], Admitted)
    assert "rank 1 (box, process 101) ended while " in done.stdout + done.stderr
