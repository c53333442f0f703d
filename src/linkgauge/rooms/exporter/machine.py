"""Reads the state of a machine in threads, because a reading may hang. Keeps the last values."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from linkgauge.backends.sim.backend import SimBackend, simulate
from linkgauge.machine.host import read_host
from linkgauge.machine.interfaces import read_interfaces
from linkgauge.machine.network_counters import CounterReader
from linkgauge.machine.pci import read_functions
from linkgauge.machine.tree import ROOT, Root
from linkgauge.model.errors import Unsupported
from linkgauge.model.hardware.live import InventoryReading, LinkTraffic, LiveDevice
from linkgauge.model.settings import EngineSettings, Simulation

if TYPE_CHECKING:
    from linkgauge.backends.cuda.nvml.cards import LiveGpus

T = TypeVar("T")
DEADLINE_SECONDS = 0.5
"""The seconds that a scrape waits for readings in progress. A reading that has taken longer is no
longer waited for."""
HANGS = 5.0
"""Seconds after which a reading that does not return makes its source stale."""
FORGET = 300.0
"""The seconds after which a reading is no longer shown, as in Prometheus."""


class TimedReading(NamedTuple, Generic[T]):
    """A reading. `age` is in seconds. `value` is None if the reading is too old. `stale` is true if
    a later reading failed or hangs. `version` rises when `value` changes."""

    value: T | None
    age: float | None
    stale: bool
    version: int


class PeriodicReader(Generic[T]):
    """Calls `read` at most once in `period` seconds, in a thread, because it may hang."""

    def __init__(self, name: str, read: Callable[[], T], period: float, say: Say) -> None:
        self.name = name
        self._read, self._period, self._say = read, period, say
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._value: T | None = None
        self._taken: float | None = None
        self._began: float | None = None
        self._under_way = False
        self._failure: str | None = None
        self._version = 0

    def ask(self) -> None:
        with self._lock:
            now = time.monotonic()
            is_due = self._began is None or now >= self._began + self._period
            if self._under_way or not is_due:
                return
            self._under_way, self._began = True, now
            self._over.clear()
        # A driver that never answers must not keep the process from ending.
        threading.Thread(target=self._take, name=self.name, daemon=True).start()

    def wait(self, until: float, deadline: float) -> None:
        """Waits for the current reading until `until`, unless it has taken over `deadline` s."""
        began, now = self._began, time.monotonic()
        if self._under_way and began is not None and now <= began + deadline:
            self._over.wait(max(0.0, until - now))

    def taken(self) -> TimedReading[T]:
        with self._lock:
            now = time.monotonic()
            age = None if self._taken is None else now - self._taken
            hangs = self._under_way and self._began is not None and now > self._began + HANGS
            if age is not None and age > FORGET and self._value is not None:
                self._value = None
                self._version += 1
            stale = hangs or self._failure is not None
            return TimedReading(self._value, age, stale, self._version)

    def _take(self) -> None:
        value, failure = self._value, None
        try:
            value = self._read()
        except Exception as error:  # noqa: BLE001  # whatever a library does, scrapes go on
            failure = " ".join((str(error) or type(error).__name__).split())
        with self._lock:
            news = failure is not None and failure != self._failure
            self._failure = failure
            if failure is None:
                self._taken = time.monotonic()
                self._version += value is not self._value
                self._value = value
            self._under_way = False
        self._over.set()
        if news:
            self._say(f"{self.name}: {failure}")


# Where the live state of a machine comes from: this machine's files and its management library,
# or a simulation. Nothing here opens a device for computing.


RETRY = 60.0
"""The seconds after which a missing management library is searched for again."""
Say = Callable[[str], object]


class ThisMachine:
    """Reads this machine. Each GPU has its own reader, so that a hung GPU does not block others."""

    simulated = False

    def __init__(self, period: float, say: Say, root: Root = ROOT) -> None:
        self.host = read_host(root).hostname or "unknown"
        self._period, self._say = period, say
        self._library = PeriodicReader[InventoryReading]("nvml", self._open, RETRY, say)
        self._pci = PeriodicReader[InventoryReading]("pci", partial(_functions, root), period, say)
        network = partial(_network, CounterReader(read_interfaces(root), root))
        self._network = PeriodicReader[InventoryReading]("network", network, period, say)
        self._gpus: list[PeriodicReader[InventoryReading]] = []

    def readers(self) -> list[PeriodicReader[InventoryReading]]:
        return [self._pci, self._network, self._library, *self._gpus]

    def _open(self) -> InventoryReading:
        if not self._gpus:
            from linkgauge.backends.cuda.nvml.cards import LiveGpus

            try:
                gpus = LiveGpus()
            except Unsupported:  # no such GPU, or none of its drivers
                return InventoryReading()
            self._gpus = [
                PeriodicReader(f"gpu {n}", partial(_device, gpus, n), self._period, self._say)
                for n in range(gpus.count)
            ]
        return InventoryReading()


def _functions(root: Root) -> InventoryReading:
    return InventoryReading(functions=tuple(read_functions(root)[0]))


def _network(reader: CounterReader) -> InventoryReading:
    return InventoryReading(counters=reader.read())


def _device(gpus: LiveGpus, number: int) -> InventoryReading:
    return InventoryReading(devices=(gpus.read(number),))


class SimulatedMachine:
    simulated = True

    def __init__(self, simulation: Simulation, period: float, say: Say) -> None:
        self.host = simulation.machine
        backend = simulate(simulation, EngineSettings())
        self._readers = [PeriodicReader("simulation", partial(_simulated, backend), period, say)]

    def readers(self) -> list[PeriodicReader[InventoryReading]]:
        return list(self._readers)


MachineSource = ThisMachine | SimulatedMachine


def _simulated(backend: SimBackend) -> InventoryReading:
    found = backend.look()
    devices = (
        LiveDevice(
            number=number,
            accelerator=accelerator,
            traffic=tuple(LinkTraffic(link.index, link.kind) for link in accelerator.links),
        )
        for number, accelerator in enumerate(found.accelerators)
    )
    return InventoryReading(found.pci, tuple(devices), backend.network_counters())
