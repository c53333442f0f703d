"""Streams of copies over TCP: what is timed where threads do not run at once."""

import ctypes
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from linkgauge.cluster import nic_streams
from linkgauge.cluster.nic_streams import Stream, carry_out
from linkgauge.model.notation import parse_transfer

COPY = parse_transfer("host:0@0 -> host:0@1 by nic:0.tcp")
SIZE = 4096
LATE = 0.1
"""Seconds that the first stream's thread is not running."""


def test_a_stream_that_ends_before_another_has_begun_took_its_time_all_the_same(monkeypatch):
    first = threading.get_ident()

    def await_time(at):
        if threading.get_ident() == first:
            time.sleep(LATE)
        return time.monotonic()

    monkeypatch.setattr(nic_streams, "await_time", await_time)
    ends = [socket.socketpair() for _ in range(2)]
    memory = [ctypes.create_string_buffer(SIZE) for _ in range(4)]

    def streams(side):
        return [
            Stream(place, COPY, pair[side], ctypes.addressof(memory[2 * side + place]), SIZE,
                   sends=side == 0, times=side == 0)
            for place, pair in enumerate(ends)
        ]  # fmt: skip

    with ThreadPoolExecutor(1) as there:
        other = there.submit(carry_out, streams(1), 1, None)
        opened, ended = carry_out(streams(0), 1, None)
        assert other.result()[1] == {}
    assert ended[1] - opened > 0
    assert ended[0] - opened >= LATE / 2
    for pair in ends:
        for one in pair:
            one.close()
