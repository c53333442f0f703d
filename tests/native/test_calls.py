"""C functions called by their addresses: with these arguments, so often, until one fails."""

import ctypes
import errno
import socket
import struct
import threading
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkgauge._native import ENDED, NOTHING, RECEIVE_ALL, SEND_ALL, time_iterations

WORD = st.integers(0, 2**64 - 1)


class Function:
    """A C function of so many words, which notes its calls and fails at the last `allowed`."""

    def __init__(self, count, notes, allowed=1 << 30):
        self._notes = notes
        self._allowed = allowed
        self._kept = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_uint64] * count)(self._call)
        self.address = ctypes.cast(self._kept, ctypes.c_void_p).value

    def _call(self, *words):
        self._notes.append(words)
        return 0 if len(self._notes) < self._allowed else 700


@given(st.lists(st.lists(WORD, max_size=11), min_size=1, max_size=4), st.integers(1, 5))
@settings(max_examples=30)
def test_every_iteration_makes_all_calls_in_their_order(arguments, count):
    notes = []
    functions = [Function(len(words), notes) for words in arguments]
    calls = [(f.address, words) for f, words in zip(functions, arguments, strict=True)]
    ends, status, failed = time_iterations(calls, count)
    assert (notes, status, failed) == ([tuple(words) for words in arguments] * count, 0, 0)
    assert ends[0] == 0
    assert len(ends) == count + 1
    assert all(one < other for one, other in pairwise(ends))


@pytest.mark.parametrize(
    ("calls", "count"),
    [([(0, [])], 1), ([(1, [0] * 12)], 1), ([NOTHING], 0), ([], 1), ([NOTHING, (0, [])], 1)],
)
def test_what_cannot_be_called_is_refused(calls, count):
    with pytest.raises(ValueError, match=r"no function|too many|no calls"):
        time_iterations(calls, count)


class TestSockets:
    """Bytes that a socket takes in parts are sent and received as a whole."""

    SIZE = 3_000_001

    def ends(self):
        one, other = socket.socketpair()
        waits = struct.pack("@ll", 0, 50_000)
        for end in (one, other):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, waits)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, waits)
        return one, other

    def call(self, function, end, buffer):
        return function, (end.fileno(), ctypes.addressof(buffer), len(buffer))

    def test_all_of_it_arrives_each_time(self):
        one, other = self.ends()
        sent = ctypes.create_string_buffer(bytes(range(251)) * 11_000, self.SIZE)
        came = ctypes.create_string_buffer(self.SIZE)
        sending = threading.Thread(
            target=time_iterations, args=([self.call(SEND_ALL, one, sent)], 4)
        )
        with one, other:
            sending.start()
            _, status, _ = time_iterations([self.call(RECEIVE_ALL, other, came)], 4)
            sending.join()
        assert status == 0
        assert came.raw == sent.raw

    def test_an_end_that_is_closed_or_silent_is_told_apart(self):
        one, other = self.ends()
        came = ctypes.create_string_buffer(8)
        with one:
            receive = [self.call(RECEIVE_ALL, one, came)]
            assert time_iterations(receive, 1)[1] == errno.EAGAIN
            other.close()
            assert time_iterations(receive, 1)[1] == ENDED
            assert time_iterations([self.call(SEND_ALL, one, came)], 1)[1] == errno.EPIPE
