"""Runs of simulated machines without a process or a command line, for whoever judges them."""

from __future__ import annotations

from msgspec.structs import replace

from linkgauge.benchmarks.catalog import select
from linkgauge.engine.controller import execute
from linkgauge.engine.kept.journal import Opened
from linkgauge.engine.plan import fabrics, lay_out, make_plan
from linkgauge.engine.workers.worker import LocalWorker
from linkgauge.judge.verdict import judge
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import Settings, Simulation
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Report
from linkgauge.model.units import BANDWIDTH
from sim_kit import Silent


def run_of(
    name, text, *benchmarks, size=1 << 29, devices=(), faults=(), samples=6, pairs=False,
    settings=None, draw=0, doubts=lambda run: (),
):  # fmt: skip
    """What a run of these benchmarks (all where none is named) on a simulated machine leaves; with
    `pairs`, disjoint pairs are measured at the same time. What `doubts` returns is measured once
    more."""
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
    return execute((opened,), worker, lambda record: None, Silent(), doubts)


LOCAL = {
    "read": "host:0/base -> null by cpu", "write": "null -> host:0/base by cpu",
    "copy": "host:0/base -> host:0/base by cpu",
}  # fmt: skip


def expect(cell, size, of, measured=None, unit=BANDWIDTH.symbol):
    """What one cell of the machine `of` should reach, in `unit`, in a run in which its node's
    threads reached these rates (`read`, `write`, `copy`)."""
    planned = CellResult(
        cell.row, cell.column, cell.transfers, cell.report, "pass", bytes=size,
        operation=cell.operation, readings=getattr(cell, "readings", ()),
    )  # fmt: skip
    threads = [
        CellResult(kind, "0", parse_transfers(LOCAL[kind]), Report.FIRST, "pass", bytes=size,
                   summary=summarize([rate] * 6))
        for kind, rate in (measured or {}).items()
    ]  # fmt: skip
    results = (_result("asked", unit, size, [planned]), _result("host", "B/s", size, threads))
    run = Run(
        id="1", label="l", command=(), started="s", finished="f", machine=of,
        settings=Settings((size,)), results=results,
    )  # fmt: skip
    return judge(run).results[0].cells[0].expected


def _result(name, unit, size, cells):
    return Result(
        benchmark=name, title=name, backend="host", size=size, unit=unit, better="higher",
        status="pass", cells=tuple(cells),
    )  # fmt: skip
