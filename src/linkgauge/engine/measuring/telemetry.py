"""Reads the state of accelerators while they are measured: links, clocks and throttling.

A thread queries their libraries; the measuring thread only starts and stops it. A simulated machine
is queried once and without a thread, because its time is not wall time."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from statistics import median_low
from typing import Any

from msgspec.structs import asdict

from linkgauge.backends.protocol import HasTelemetry
from linkgauge.model.hardware.inventory import Reading, Telemetry
from linkgauge.model.memory import Memory

PERIOD = 0.05
"""Seconds from one reading to the next: 20 a second."""
WAIT_SECONDS = 0.003
"""Seconds that the end of a cell waits for a reading in progress."""
FIRST_WAIT_SECONDS = 0.05
"""The seconds that the end of a cell waits if there is no reading yet. Even a cell that is shorter
than a reading should have one."""

TelemetrySources = Mapping[Memory, HasTelemetry]


@contextmanager
def sensing(devices: TelemetrySources, threaded: bool) -> Iterator[Sensing]:
    """Queries the devices during this block; without `threaded`, only once at its start."""
    found = Sensing(devices)
    if not (threaded and devices):
        found.take()
        yield found
        return
    over = threading.Event()
    # A driver that never answers must not keep the process from ending.
    thread = threading.Thread(target=found.ask, args=(over,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join(WAIT_SECONDS if found.taken else FIRST_WAIT_SECONDS)


class Sensing:
    def __init__(self, devices: TelemetrySources) -> None:
        self._asked: defaultdict[HasTelemetry, list[Memory]] = defaultdict(list)
        for memory, backend in devices.items():
            self._asked[backend].append(memory)
        self.taken: list[tuple[float, dict[str, Telemetry]]] = []

    def ask(self, over: threading.Event) -> None:
        self.take()
        while not over.wait(PERIOD):
            self.take()

    def take(self) -> None:
        now = time.monotonic()
        senses: dict[str, Telemetry] = {}
        for backend, devices in self._asked.items():
            try:
                senses |= {sense.memory: sense for sense in backend.sense(devices)}
            except Exception:  # noqa: BLE001, S112  # whatever a library does, no cell is lost by it
                continue
        self.taken.append((now, senses))

    def reading(self, memory: str) -> Reading:
        times: list[float] = []
        replays: list[int | None] = []
        reported: defaultdict[str, list[Any]] = defaultdict(list)
        for at, senses in self.taken.copy():  # a slow driver may still add one
            if memory in senses:
                times.append(at)
                replays.append(senses[memory].pcie_replays)
                for field, value in asdict(senses[memory]).items():
                    if value is not None:
                        reported[field].append(value)
        if not times:
            return Reading(memory=memory, count=0)
        speeds, widths, clocks = reported["link_speed"], reported["link_width"], reported["clock"]
        first, last = replays[0], replays[-1]  # a single reading cannot show new replays
        rose = None if len(times) < 2 or first is None or last is None else last - first
        return Reading(
            memory=memory,
            count=len(times),
            seconds=times[-1] - times[0],
            link_speed=median_low(speeds) if speeds else None,
            link_width=median_low(widths) if widths else None,
            clock_min=min(clocks, default=None),
            clock_max=max(clocks, default=None),
            temperature_max=max(reported["temperature"], default=None),
            power_max=max(reported["power"], default=None),
            throttled=tuple(dict.fromkeys(chain.from_iterable(reported["throttled"]))),
            pcie_replays=rose,
        )
