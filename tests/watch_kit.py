"""Watches of a simulated machine in this process, on a clock that tests set."""

from __future__ import annotations

from contextlib import contextmanager

from linkgauge.engine.request import RunRequest, Selection
from linkgauge.engine.session import Session
from linkgauge.engine.workers.worker import LocalWorker
from linkgauge.model.settings import Settings, Simulation
from linkgauge.rooms.watch.probes import Asked, begin

READ = "device_to_device_memcpy_read_ce"


class StandingClock:
    """Time passes while it sleeps, and by `step` seconds each time it is read."""

    def __init__(self, step=0.01):
        self.at, self.step, self.slept = 100.0, step, []

    def now(self):
        self.at += self.step
        return self.at

    def sleep(self, seconds):
        assert seconds >= 0
        self.slept.append(seconds)
        self.at += seconds


@contextmanager
def opened_here(request, first=None):
    """A session whose worker is in this process."""
    worker = LocalWorker(request.settings)
    try:
        yield Session(request, worker)
    finally:
        worker.close()


def request(machine, *faults, names=(READ,), size=1 << 20, label="watch", **more):
    from linkgauge.backends.sim.description import load

    name, description = load(machine) if "\n" not in machine else ("test", machine)
    simulation = Simulation(name, description, faults)
    settings = Settings((size,), samples=3, profile="quick", max_time=0.3, simulation=simulation)
    return RunRequest(what=Selection(names), settings=settings, label=label, **more)


def watch(monkeypatch, machine, *faults, clock=None, every=10.0, budget=0.05, least=0.1,
          seconds=None, probes=None, **more):  # fmt: skip
    """The exit code, and the events."""
    monkeypatch.setattr("linkgauge.rooms.watch.probes.opened", opened_here)
    events = []
    asked = Asked(request(machine, *faults, **more), every, budget, least, seconds, probes)
    code = begin(asked, None, events.append, clock or StandingClock())
    return code, events
