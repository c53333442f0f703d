"""Groups of transfers on a simulated machine. Bytes really move, but the time is simulated."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkgauge.backends.protocol import Copy, Gated, Pace, Pattern, Timing
from linkgauge.model.hardware.motion import Movement

from .memory import SimBuffer, compute, exchange, move
from .noise import Noise
from .run_position import RunPosition

StallSeconds = Callable[[int, int], float]
"""A function that returns the delay of a copy in seconds. Its arguments are the copy's index and
the sample's number."""


class SimGroup(Gated):
    """Copies on a simulated machine. `movements` and `sigmas` have the progress and the noise of
    each copy. `stall` returns the delay of a copy in a sample. `makes` is the pattern that
    an operation on numbers writes."""

    def __init__(
        self,
        copies: Sequence[Copy],
        movements: Sequence[Movement],
        sigmas: Sequence[Noise],
        course: RunPosition,
        stall: StallSeconds | None = None,
        pace: Pace = Pace(),  # noqa: B008
        makes: Pattern | None = None,
    ) -> None:
        self._copies = copies
        self._paces = list(zip(movements, sigmas, strict=True))
        self._course = course
        self._stall = stall
        self.pace = pace
        self._makes = makes
        self._ends: Sequence[Sequence[float]] = ()
        """When each copy ends each lap, as if all laps were one loop."""

    def arm(self, loops: int, laps: int = 1) -> None:
        super().arm(loops, laps)
        if not self._ends or len(self._ends[0]) != laps:  # most samples have the same laps
            self._ends = [
                [*(movement.at(lap / laps) for lap in range(1, laps)), movement.end]
                for movement, _ in self._paces
            ]

    def open(self) -> None:
        super().open()
        for copy in self._copies:
            _carry_out(copy, self._makes)

    def wait(self) -> Timing:
        loops, laps = self.pass_gate()
        course = self._course
        progress = tuple(
            self._progress(number, movement, loops * laps * course.noise(number, sigma))
            for number, (movement, sigma) in enumerate(self._paces)
        )
        # Counted from the common start: kernels of one device wait for each other.
        seconds = tuple(times[-1] for times in progress)
        course.pass_by(max(seconds))
        return Timing(seconds, max(seconds), tuple(map(_checksum, self._copies)), progress)

    def _progress(self, number: int, movement: Movement, loops: float) -> tuple[float, ...]:
        """Returns the start and the end of each lap of a copy, in seconds. `number` is the copy's
        index."""
        stall = self._stall(number, self._course.sample) if self._stall is not None else 0.0
        return (movement.turn * loops, *[end * loops + stall for end in self._ends[number]])


def _carry_out(copy: Copy, makes: Pattern | None) -> None:
    """Moves the bytes of a copy once. Further loops would move the same bytes."""
    source, destination = copy.source, copy.destination
    if not isinstance(destination, SimBuffer):
        return
    if not isinstance(source, SimBuffer):
        destination.fill(copy.size, Pattern.CONSTANT, copy.seed, inverted=False)
    elif makes is not None:
        compute(source, destination, copy.size, makes, copy.seed)
    elif copy.transfer.both_ways:
        exchange(source, destination, copy.size)
    else:
        move(source, destination, copy.size)


def _checksum(copy: Copy) -> int | None:
    if copy.destination is None and isinstance(copy.source, SimBuffer):
        return copy.source.checksum(copy.size)
    return None
