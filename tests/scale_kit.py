"""`linkgauge scale` on simulated machines, in this process."""

from __future__ import annotations

from contextlib import closing, contextmanager

import pytest

from linkgauge.backends.sim.description import load
from linkgauge.cli.main import app
from linkgauge.engine.controller import Observer
from linkgauge.engine.request import RunRequest, Scaling
from linkgauge.engine.session import Session
from linkgauge.engine.worker import LocalWorker
from linkgauge.judge.verdict import judge
from linkgauge.model.settings import Settings, Simulation

SIZES = (8, 64 << 10, 512 << 20)


@contextmanager
def in_process(request, _first=None):
    with closing(LocalWorker(request.settings)) as worker:
        yield Session(request, worker)


def run_of(machine, *faults, collective="all_reduce", counts=(1, 2, 4, 8), sizes=SIZES):
    """A judged run, kept nowhere. `machine` is the name of a shipped one, or a description."""
    name, text = (machine, load(machine)[1]) if "\n" not in machine else ("test", machine)
    settings = Settings(sizes, samples=3, simulation=Simulation(name, text, faults))
    request = RunRequest(what=Scaling(collective, counts), settings=settings)
    with in_process(request) as session:
        observer = Observer()
        return judge(session.measure(session.plan(observer), observer))


def scale(*arguments):
    """The command in this process, workers included: its exit code."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("linkgauge.cli.scale_run.opened", in_process)
        return app(["scale", *map(str, arguments)], standalone_mode=False)
