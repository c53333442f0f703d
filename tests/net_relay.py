"""Passes frames from one interface to another, both ways, each later by so many seconds:

    python net_relay.py INTERFACE INTERFACE SECONDS

netem does the same in kernels that have it. Runs until it is killed."""

import heapq
import itertools
import select
import socket
import sys
import time

ALL = 0x0003
"""Frames of all protocols (Linux' ETH_P_ALL)."""
OUTGOING = 4
"""Of a frame that this machine sends: a relay would pass its own frames on for ever."""
LONGEST = 1 << 16


def main(one: str, other: str, seconds: float) -> None:
    ends = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL)) for _ in range(2)]
    for end, name in zip(ends, (one, other), strict=True):
        end.bind((name, ALL))
    late: list[tuple[float, int, socket.socket, bytes]] = []
    number = itertools.count()
    while True:
        wait = max(0.0, late[0][0] - time.monotonic()) if late else None
        for end in select.select(ends, [], [], wait)[0]:
            frame, origin = end.recvfrom(LONGEST)
            if origin[2] != OUTGOING:
                to = ends[1 - ends.index(end)]
                heapq.heappush(late, (time.monotonic() + seconds, next(number), to, frame))
        while late and late[0][0] <= time.monotonic():
            _, _, to, frame = heapq.heappop(late)
            to.send(frame)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
