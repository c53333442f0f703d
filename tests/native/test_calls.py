"""Sockets that the native core sends and receives by, and calls that it refuses."""

import ctypes
import errno
import socket
import struct
import threading

import pytest

from linkgauge._native import ENDED, NOTHING, RECEIVE_ALL, SEND_ALL, time_iterations


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
