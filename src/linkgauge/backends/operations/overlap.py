"""How copies and a computing kernel are timed: first each alone, then both at once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from linkgauge.backends.offering import Computing, Offering
from linkgauge.backends.protocol import Copy, Gated, Group, SamplingPolicy, Timing, run
from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.operation import Operation

FACTOR, SUMMAND = -1.0, 1.0
"""A step of the kernel computes x · FACTOR + SUMMAND. After an even number of steps, x has its
first value again."""
_SECONDS = 0.005
"""The shortest time in seconds for which copies are timed to choose the kernel's length."""
_CLOSE = 1.1
"""Two times are about equal if their ratio is below this."""
_GROWTH = 16.0
"""The largest factor by which a kernel is made longer in one step."""
_MOST_TRIES = 16
_LEAST = 1e-9


def launched(rounds: float, loops: int) -> int:
    return max(1, round(rounds * loops))


class OverlapGroup(Gated):
    """Times copies and a kernel. A sample runs `copies`, then the kernel (`computing`), then both
    (`together`). In its Timing, `seconds` has the times of the kernel and of each copy, one without
    the other; `span` is the time of `together`."""

    def __init__(
        self,
        copies: Group,
        computing: Group,
        together: Group,
        made: ExitStack,
        kernel: Computing | None = None,
    ) -> None:
        self._copies, self._computing, self._together = copies, computing, together
        self._made, self._kernel = made, kernel
        self.most_loops = together.most_loops
        self.policy = SamplingPolicy(copies.policy.seconds, loops=1)

    def wait(self) -> Timing:
        loops, batches = self.pass_gate()
        copies, computing, together = (
            run(group, loops * batches) for group in (self._copies, self._computing, self._together)
        )
        begin = min(own[0] for own in copies.progress)
        seconds = computing.span, *(own[-1] - begin for own in copies.progress)
        return Timing(
            seconds=seconds,
            span=together.span,
            checksums=(None,) * len(seconds),
            progress=tuple((0.0, own) for own in seconds),
        )

    def mismatch(self) -> str | None:
        return self._kernel.mismatch() if self._kernel is not None else None

    def close(self) -> None:
        super().close()
        self._made.close()


def overlap(on: Offering, copies: Sequence[Copy], does: Operation) -> OverlapGroup:
    """Returns a group of a kernel and copies. The first copy only names the kernel's device."""
    _check(copies)
    with ExitStack() as made:
        kernel, computing, copying, together = on.computing(copies, made)
        if kernel is not None:
            fit(kernel, computing, copying)
        return OverlapGroup(copying, computing, together, made.pop_all(), kernel)


def _check(copies: Sequence[Copy]) -> None:
    (first, *others), owner = copies, copies[0].transfer.engine.owner
    if not owner.is_device or first.transfer.engine.kind != "sm":
        raise Unsupported(f"{first.transfer}: what computes during copies is a kernel (sm)")
    if not others:
        raise Unsupported(f"{first.transfer}: no copy runs at the same time as it")
    for copy in others:
        if len(copy.transfer.memories) < 2 or copy.transfer.engine.owner != owner:
            raise Unsupported(
                f"{copy.transfer}: only a copy of its own can run during a kernel of {owner}"
            )


def fit(kernel: Computing, computing: Group, copies: Group) -> None:
    """Changes the kernel's rounds until the kernel lasts about as long as the copies."""
    run(copies, 1)  # the first one also pays for page tables
    loops, wanted = 1, run(copies, 1).span
    while wanted < _SECONDS and loops < copies.most_loops:
        loops = min(4 * loops, copies.most_loops)
        wanted = run(copies, loops).span
    for _ in range(_MOST_TRIES):
        ratio = wanted / max(run(computing, loops).span, _LEAST)
        if 1 / _CLOSE < ratio < _CLOSE:
            return
        kernel.rounds *= min(ratio, _GROWTH)
