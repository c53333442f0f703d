"""Takes turns on a device: what drifts there affects all the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import NamedTuple

from linkgauge.backends.cuda.backend import CudaBackend
from linkgauge.backends.protocol import Group, run
from linkgauge.engine.measuring.telemetry import sensing
from linkgauge.model.hardware.inventory import Reading
from linkgauge.model.memory import Memory
from linkgauge.model.stats.summary import median_interval

DEVICE = Memory("cuda", 0)
_SEED = 16


class Ratio(NamedTuple):
    """Of two neighbours in time: the median over all pairs, and its interval."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.middle:.4f} [{self.low:.4f}, {self.high:.4f}]"


def take_turns(runs: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """What each returns in each round, in varying order."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    order = list(runs)
    shuffle = random.Random(_SEED).shuffle
    for _ in range(rounds):
        shuffle(order)
        for name in order:
            taken[name].append(runs[name]())
    return taken


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Of our rates to theirs, round by round."""
    ratios = sorted(own / their for own, their in zip(ours, theirs, strict=True))
    low, high = median_interval(ratios) or (ratios[0], ratios[-1])
    return Ratio(median(ratios), low, high)


def seconds(group: Group, loops: int, batches: int = 1) -> float:
    """Of all loops of a group's first work."""
    return run(group, loops, batches).seconds[0]


@contextmanager
def watched(backend: CudaBackend, said: list[str]) -> Iterator[None]:
    """Appends what the device's clock, power and throttling were meanwhile."""
    with sensing({DEVICE: backend}, threaded=True) as sensed:
        yield
    (reading,) = sensed.readings([DEVICE])
    said.append(state(reading))


def state(reading: Reading) -> str:
    """`1740 to 1980 MHz, at most 699 W, throttled: power cap`."""
    parts = []
    if reading.clock_min and reading.clock_max:
        ends = dict.fromkeys((f"{reading.clock_min / 1e6:.0f}", f"{reading.clock_max / 1e6:.0f}"))
        parts.append(f"{' to '.join(ends)} MHz")
    if reading.power_max is not None:
        parts.append(f"at most {reading.power_max:.0f} W")
    if reading.throttled:
        parts.append(f"throttled: {', '.join(reading.throttled)}")
    return ", ".join(parts) or "no readings"
