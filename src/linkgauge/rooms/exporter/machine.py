"""Where the live state of a machine comes from: this machine's files and its management library, or
a simulation. Nothing here opens a device for computing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from linkgauge.backends.sim import SimBackend, simulate
from linkgauge.machine.host import read_host
from linkgauge.machine.pci import read_functions
from linkgauge.machine.tree import ROOT, Root
from linkgauge.model.errors import Unsupported
from linkgauge.model.inventory import LinkTraffic, LiveDevice, Seen
from linkgauge.model.settings import EngineSettings, Simulation

from .reader import Reader

RETRY = 60.0
"""Seconds after which a management library that was not there is looked for again."""
Say = Callable[[str], object]


class Source(Protocol):
    """A machine to look at: its name, whether it is simulated, and its readers, of which more may
    appear."""

    host: str
    simulated: bool

    def readers(self) -> list[Reader[Seen]]: ...


class Gpus(Protocol):
    """A management library's devices (`LiveGpus`)."""

    @property
    def count(self) -> int: ...

    def read(self, number: int) -> LiveDevice: ...


class ThisMachine:
    """PCI functions by sysfs, and each of NVIDIA's GPUs by a reader of its own: one that hangs
    makes no other stale."""

    simulated = False

    def __init__(self, period: float, say: Say, root: Root = ROOT) -> None:
        self.host = read_host(root).hostname or "unknown"
        self._period, self._say = period, say
        self._library = Reader[Seen]("nvml", self._open, RETRY, say)
        self._pci = Reader[Seen]("pci", partial(_functions, root), period, say)
        self._gpus: list[Reader[Seen]] = []

    def readers(self) -> list[Reader[Seen]]:
        return [self._pci, self._library, *self._gpus]

    def _open(self) -> Seen:
        if not self._gpus:
            try:
                gpus = open_gpus()
            except Unsupported:  # no such GPU, or none of its drivers
                return Seen()
            self._gpus = [
                Reader(f"gpu {n}", partial(_device, gpus, n), self._period, self._say)
                for n in range(gpus.count)
            ]
        return Seen()


def open_gpus() -> Gpus:
    """Raises Unsupported where there is no management library."""
    from linkgauge.backends.cuda.nvml_live import LiveGpus

    return LiveGpus()


def _functions(root: Root) -> Seen:
    return Seen(functions=tuple(read_functions(root)[0]))


def _device(gpus: Gpus, number: int) -> Seen:
    return Seen(devices=(gpus.read(number),))


class SimulatedMachine:
    """A described machine, with the faults that it has from the start."""

    simulated = True

    def __init__(self, simulation: Simulation, period: float, say: Say) -> None:
        self.host = simulation.machine
        backend = simulate(simulation, EngineSettings())
        self._readers = [Reader("simulation", partial(_simulated, backend), period, say)]

    def readers(self) -> list[Reader[Seen]]:
        return list(self._readers)


def _simulated(backend: SimBackend) -> Seen:
    found = backend.look()
    devices = (
        LiveDevice(
            number=number,
            accelerator=accelerator,
            traffic=tuple(LinkTraffic(link.index, link.kind) for link in accelerator.links),
        )
        for number, accelerator in enumerate(found.accelerators)
    )
    return Seen(functions=found.pci, devices=tuple(devices))
