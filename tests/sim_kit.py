"""A simulated machine as small as can be, and runs on it without a command line."""

from __future__ import annotations

from contextlib import closing, contextmanager

from linkgauge.engine.controller import Observer
from linkgauge.engine.kept.journal import Opened
from linkgauge.engine.session import Session
from linkgauge.engine.workers.worker import LocalWorker
from linkgauge.model.documents.result import PlannedCell, PlannedTable
from linkgauge.model.notation import parse_transfer
from linkgauge.model.settings import Settings, Simulation
from linkgauge.model.transfer import Report

MACHINE = """
source: a test's
noise: 0%
host:
  cpu_model: Test CPU
  nodes: [{count: 2, cpus: 8, memory: 4G, rate: 100 GB/s}]
link_kinds:
  lane: {kind: fabric, rate: 50 GB/s}
  pcie: {kind: pcie, rate: 20 GB/s}
  upi: {kind: socket, rate: 30 GB/s}
devices:
  - {count: 4, model: Test Card, memory: 1G, memory_rate: 1 TB/s}
links:
  - {kind: lane, mesh: sim:0..3}
  - {kind: pcie, each: sim:0..3, to: host:0}
  - {kind: upi, pairs: [[host:0, host:1]], name: bridge}
"""
SIZE = 1 << 20


def settings(*faults, machine=MACHINE, samples=6, **more):
    return Settings(
        (SIZE,), samples=samples, simulation=Simulation("test", machine, faults), **more
    )


def planned(*transfers, number=0, report=Report.SUM):
    transfers = tuple(map(parse_transfer, transfers))
    return PlannedCell(str(number), "0", transfers, report, number=number)


def opened(cells, settings, machine):
    """The first record of a run of one table with these cells."""
    table = PlannedTable(
        benchmark="test", title="Test", backend="sim", size=SIZE, unit="B/s", better="higher",
        cells=tuple(cells),
    )  # fmt: skip
    return Opened(
        id="1", label="l", simulated=True, command=(), started="s", machine=machine,
        settings=settings, plan=(table,),
    )  # fmt: skip


class Silent(Observer):
    """Is told of a run's progress."""


@contextmanager
def in_process(request, _first=None):
    """A session whose worker is a part of this process."""
    with closing(LocalWorker(request.settings)) as worker:
        yield Session(request, worker)
