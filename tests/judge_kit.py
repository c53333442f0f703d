"""Runs of simulated machines without a process or a command line, for whoever judges them."""

from __future__ import annotations

from msgspec.structs import replace

from linkgauge.benchmarks.catalog import select
from linkgauge.engine.controller import execute
from linkgauge.engine.journal import Opened
from linkgauge.engine.plan import fabrics, lay_out, make_plan
from linkgauge.engine.worker import LocalWorker
from linkgauge.judge.dram import Ceilings
from linkgauge.judge.expect import Expectations
from linkgauge.model.settings import Settings, Simulation
from linkgauge.model.units import BANDWIDTH
from sim_kit import Silent


def run_of(
    name, text, *benchmarks, size=1 << 29, devices=(), faults=(), samples=6, pairs=False,
    settings=None, draw=0,
):  # fmt: skip
    """What a run of these benchmarks (all where none is named) on a simulated machine leaves; with
    `pairs`, disjoint pairs are measured at the same time."""
    settings = replace(
        settings or Settings((size,), samples=samples, loops=2),
        simulation=Simulation(name, text, tuple(faults), draw),
    )
    worker = LocalWorker(settings)
    machine = worker.survey(["sim"])
    plan = make_plan(
        lay_out(select(benchmarks, ()), fabrics(machine, devices), machine.host.nodes),
        machine,
        settings.sizes,
        parallel_pairs=pairs,
    )
    opened = Opened(
        id="1", label="l", simulated=True, command=(), started="s", machine=machine,
        settings=settings, plan=plan,
    )  # fmt: skip
    return execute((opened,), worker, lambda record: None, Silent())


def expect(cell, size, of, ceilings=None, unit=BANDWIDTH.symbol):
    """What one cell of the machine `of` should reach, in `unit`."""
    return Expectations(of, ceilings or Ceilings()).of(cell, size, unit).expected
