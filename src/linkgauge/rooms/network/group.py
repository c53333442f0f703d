"""Carries out one rank's part in copies over network interfaces."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

from linkgauge.backends.protocol import Gated, SamplingPolicy, Timing
from linkgauge.backends.rank import await_time

from .streams import TcpConnection, carry_out
from .ucx_copies import Copies, UcxPart

POLICY = SamplingPolicy(seconds=0.02, loops=2)


@dataclass(eq=False)
class NetGroup(Gated):
    """A rank's copies, which fail after `silent` seconds without progress."""

    policy = POLICY

    streams: Sequence[TcpConnection]
    parts: Sequence[UcxPart]
    silent: float
    enter: Callable[[], None]
    made: ExitStack
    _at: float | None = None
    _began: float = 0.0

    def open(self) -> None:
        self.open_at(None)

    def open_at(self, at: float | None) -> float:
        """Lets threads start at the monotonic time `at`, or now. Returns the start time."""
        super().open()
        self._at, self._began = at, max(time.monotonic(), at or 0.0)
        return self._began

    def wait(self) -> Timing:
        loops = math.prod(self.pass_gate())
        try:
            begun, ends = self._move(loops)
        except BaseException:
            self.made.close()  # so that the other ends notice
            raise
        places, begin = sorted(ends), begun - self._began
        return Timing(
            seconds=tuple(ends[place] - begun for place in places),
            span=max(ends.values(), default=begun) - begun,
            progress=tuple((begin, ends[place] - self._began) for place in places),
        )

    def _move(self, loops: int) -> tuple[float, dict[int, float]]:
        """Returns when the first copy began, and the ends of timed copies by number in the cell."""
        if not self.parts:
            return carry_out(self.streams, loops, self._at)
        self.enter()
        copies = Copies(self.parts, loops, self.silent)
        if not self.streams:
            return await_time(self._at), copies.run()
        with ThreadPoolExecutor(1) as beside:
            by_tcp = beside.submit(carry_out, self.streams, loops, self._at)
            opened = await_time(self._at)
            ends = copies.run()
            begun, others = by_tcp.result()
            return min(opened, begun), ends | others

    def close(self) -> None:
        super().close()
        self.made.close()
