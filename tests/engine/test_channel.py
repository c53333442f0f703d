"""Messages arrive whole and in their order, and who is gone is noticed."""

import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.engine.channel import Channel


@pytest.fixture
def ends():
    ours, theirs = map(Channel, socket.socketpair())
    yield ours, theirs
    for end in (ours, theirs):
        end.close(0.01)


@given(st.lists(st.binary(max_size=100), min_size=1))
def test_messages_arrive_whole_and_in_their_order(messages):
    ours, theirs = map(Channel, socket.socketpair())
    for message in messages:
        ours.send(message)
    for message in messages:
        assert theirs.poll(0)
        assert theirs.receive() == message
    assert not theirs.poll(0)
    theirs.close(0)
    ours.close(0)


def test_the_other_ends_end_is_noticed(ends):
    ours, theirs = ends
    ours.send(b"the last")
    ours.close(0)
    assert theirs.receive() == b"the last"
    with pytest.raises(EOFError):
        theirs.receive()
    with pytest.raises(OSError, match="Broken pipe"):
        theirs.send(b"nobody reads this")


def test_closing_waits_until_the_other_end_is_gone(ends):
    ours, theirs = ends
    theirs.send(b"never read")
    gone = []
    ending = threading.Timer(0.05, lambda: (gone.append(True), theirs.close(0)))
    ending.start()
    ours.close(30)
    assert gone
    ending.join()
