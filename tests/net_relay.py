"""Passes frames from one interface to another, both ways, each later by so many seconds:

    python net_relay.py INTERFACE INTERFACE SECONDS [lose|double|swap EVERY]

Every so many long frames, one is lost, comes twice, or comes 2 ms later than those behind it. netem
does the same in kernels that have it. Runs until it is killed."""

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
DATA = 512
"""Frames of so many bytes hold data, and others are answers."""
BEHIND = 0.002


def main(one: str, other: str, seconds: float, fault: str = "", every: int = 0) -> None:
    ends = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL)) for _ in range(2)]
    for end, name in zip(ends, (one, other), strict=True):
        end.bind((name, ALL))
    late: list[tuple[float, int, socket.socket, bytes]] = []
    number, long = itertools.count(), itertools.count(1)
    while True:
        wait = max(0.0, late[0][0] - time.monotonic()) if late else None
        for end in select.select(ends, [], [], wait)[0]:
            frame, origin = end.recvfrom(LONGEST)
            if origin[2] != OUTGOING:
                to = ends[1 - ends.index(end)]
                struck = every and len(frame) >= DATA and not next(long) % every
                times = {"lose": 0, "double": 2}.get(fault, 1) if struck else 1
                at = time.monotonic() + seconds + (BEHIND if struck and fault == "swap" else 0.0)
                for _ in range(times):
                    heapq.heappush(late, (at, next(number), to, frame))
        while late and late[0][0] <= time.monotonic():
            _, _, to, frame = heapq.heappop(late)
            to.send(frame)


if __name__ == "__main__":
    main(*sys.argv[1:3], float(sys.argv[3]), *sys.argv[4:5], *map(int, sys.argv[5:6]))
