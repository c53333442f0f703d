"""Members watch rank 0 as it watches them: it gives signs of life, but while a clock runs only to
who asks."""

import itertools
import socket
import time
from unittest.mock import Mock

import pytest

from linkgauge.engine.ranks import member_links as module
from linkgauge.engine.ranks.commands import Pong, ReadClock
from linkgauge.engine.workers import messages
from linkgauge.machine.processes.channel import Channel
from ranks_kit import SOON, Fake, done, linked


@pytest.fixture
def beats(monkeypatch):
    """Signs of rank 0 come at short intervals."""
    monkeypatch.setattr(module, "BEAT_SECONDS", SOON)


def says(value):
    return Fake(lambda command: done(value))


def silent():
    return Fake(lambda command: None)


def test_signs_are_not_given_unasked_while_it_waits_for_an_answer(beats):
    """A clock may run."""
    other = silent()

    def at_work(command):
        before = len(other.of(Pong))
        time.sleep(20 * SOON)
        return done(len(other.of(Pong)) - before)

    with linked(says(0), Fake(at_work), other) as links:
        links.show_life()
        other.await_some(Pong)
        assert links.one(1, ReadClock(), int) <= 1, "one may have been on its way"
        links.close()


def test_signs_wait_for_no_rank_that_reads_nothing(beats):
    ours, theirs = socket.socketpair()
    with theirs, linked(says(0), says(1)) as links:
        full = Channel(ours)
        while full.has_room:
            ours.send(bytes(1 << 12), socket.MSG_DONTWAIT)
        links.channels = {2: full, **links.channels}
        links._give_signs()
        assert links.one(1, ReadClock(), int) == 1
        full.close(0.0)


def test_no_signs_are_given_once_the_links_are_closed(beats):
    """The thread may have waited for its turn just then."""
    with linked(says(0)) as links:
        links._closed = Mock(wait=Mock(side_effect=[False, True]), is_set=lambda: True)
        links._give_signs = Mock()
        links._show_life()
        links._give_signs.assert_not_called()


def test_a_worker_that_takes_samples_gives_signs_in_time(monkeypatch):
    """Each is far within the time after which a rank without a sign counts as lost."""
    now, sent = [100.0], []
    monkeypatch.setattr(messages.time, "monotonic", lambda: now[0])
    signs = messages.Signs(lambda beat: sent.append(now[0]))
    for phase in ("allocate", "warm up", *["measure"] * 1000):
        signs.enter(phase)
        now[0] += 0.01
    gaps = [after - before for before, after in itertools.pairwise(sent)]
    assert 0.05 < max(gaps[2:]) < messages.SIGN_SECONDS / 4
