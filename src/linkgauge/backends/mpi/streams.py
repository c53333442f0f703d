"""How a process carries out concurrent streams of MPI messages, with a few messages in flight."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from linkgauge.backends.protocol import Buffer, Copy

WINDOW = 16
"""The largest number of messages of one stream that are under way at once."""
_DATA, _WORD = 1, 2
"""The kinds of messages: data, and empty messages that begin or end the data."""
_TAGS = 4
"""The number of tags for one copy. A tag is the copy's index times this number, plus a kind."""

Memory = Callable[[Buffer | None, int], list[Any]]
"""A function that returns the first bytes of a buffer in the form that mpi4py accepts. Its
arguments are the buffer and the number of bytes."""
Step = tuple[int, Callable[[], Any]]
"""A number of messages, and a function that starts one message and returns its request."""


class StreamPart(NamedTuple):
    comm: Any
    rank: int
    loops: int
    memory: Memory


class StepStream:
    """A stream of messages in steps. The copies with indices `timed` end when the stream ends."""

    def __init__(self, timed: Sequence[int], steps: Sequence[Step]) -> None:
        self.timed = timed
        self.ended = 0.0
        self._steps = list(steps)
        self._left, self._begin = 0, steps[0][1]
        self._under_way = 0
        self._next()

    def _next(self) -> None:
        if self._steps:
            self._left, self._begin = self._steps.pop(0)

    def more(self) -> list[Any]:
        begun = []
        while self._left and self._under_way < WINDOW:
            begun.append(self._begin())
            self._left -= 1
            self._under_way += 1
        return begun

    def done_one(self) -> None:
        """Counts an ended message. A step must end before the next step begins."""
        self._under_way -= 1
        if self._left or self._under_way:
            return
        if self._steps:
            self._next()
        else:
            self.ended = time.monotonic()


def run(mpi: Any, streams: Sequence[StepStream]) -> dict[int, float]:
    """Carries out all streams. Returns each timed copy's end (monotonic clock), by its index."""
    requests: list[Any] = []
    owners: list[StepStream] = []

    def begin(stream: StepStream) -> None:
        for request in stream.more():
            requests.append(request)
            owners.append(stream)

    for stream in streams:
        begin(stream)
    while requests:
        done = mpi.Request.Waitsome(requests) or ()
        moved = [owners[at] for at in done]
        for at in sorted(done, reverse=True):
            del requests[at], owners[at]
        for stream in moved:
            stream.done_one()
        for stream in dict.fromkeys(moved):
            begin(stream)
    return {place: stream.ended for stream in streams for place in stream.timed}


def message_stream(part: StreamPart, place: int, copy: Copy) -> StepStream | None:
    """Returns this rank's messages for a copy, or None if the rank takes no part."""
    comm, rank, transfer = part.comm, part.rank, copy.transfer
    source, destination = transfer.source.rank or 0, transfer.destination.rank or 0
    owner = transfer.engine.owner.rank
    data, word = place * _TAGS + _DATA, place * _TAGS + _WORD
    if rank not in (source, destination):
        return None
    other = destination if rank == source else source
    say: Step = (1, lambda: comm.Isend([b"", 0], other, word))
    hear: Step = (1, lambda: comm.Irecv([bytearray(1), 0], other, word))
    if transfer.engine.kind == "rma":
        # The message reports the end of the copy. Waiting for it lets MPI work on the target.
        return StepStream((), (say if rank == owner else hear,))
    payload = part.memory(copy.source if rank == source else copy.destination, copy.size)
    if rank == source:
        move: Step = (part.loops, lambda: comm.Isend(payload, other, data))
        steps = (move, hear) if rank == owner else (hear, move)
    else:
        move = (part.loops, lambda: comm.Irecv(payload, other, data))
        steps = (say, move) if rank == owner else (move, say)
    return StepStream((place,) if rank == owner else (), steps)


def broadcast_streams(
    part: StreamPart, comms: Mapping[int, Any], copies: Sequence[Copy]
) -> list[StepStream]:
    """Returns a stream for each rank that broadcasts. A stream has its own communicator, since all
    ranks must make the calls of a communicator in the same order."""
    rank = part.rank
    streams = []
    roots = dict.fromkeys(copy.transfer.source.rank or 0 for copy in copies)
    for root in roots:
        own = [(n, copy) for n, copy in enumerate(copies) if copy.transfer.source.rank == root]
        timed = [place for place, _ in own] if rank == root else ()
        mine = next((c for _, c in own if c.transfer.destination.rank == rank), own[0][1])
        payload = part.memory(mine.source if rank == root else mine.destination, mine.size)

        def send(payload: list[Any] = payload, root: int = root) -> Any:
            return comms[root].Ibcast(payload, root)

        streams.append(StepStream(timed, ((part.loops, send), (1, comms[root].Ibarrier))))
    return streams
