"""Copies to or from pageable host memory, which the driver stages on the calling thread: such a
call may return only once its bytes have arrived."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkgauge.backends.threaded import ThreadedGroup

from .group import streams_of
from .work import StreamWork


class PageableGroup(ThreadedGroup):
    """Copies that are each driven by a host thread, because a call may block until it is done."""

    def __init__(self, works: Sequence[StreamWork]) -> None:
        super().__init__([_Blocking(*each) for each in zip(works, streams_of(works), strict=True)])


class _Blocking:
    """A work on its streams, to its end."""

    def __init__(self, work: StreamWork, streams: Sequence[Any]) -> None:
        self._work, self._streams = work, streams

    def enter(self) -> None:
        self._work.device.enter()

    def run(self, loops: int) -> None:
        self._work.enqueue(self._streams, loops)
        self._work.device.driver.call("cuStreamSynchronize", self._streams[0])

    def checksum(self) -> int | None:
        return self._work.checksum()

    def close(self) -> None:
        self._work.close()
