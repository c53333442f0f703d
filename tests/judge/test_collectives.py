"""Collectives of healthy simulated machines are never low, whatever their size."""

import pytest

from linkgauge.backends.protocol import Copy
from linkgauge.backends.sim.backend import SimBackend
from linkgauge.backends.sim.description import load, parse_description
from linkgauge.backends.sim.machine import parts_of
from linkgauge.benchmarks.collectives import cell_of
from linkgauge.engine.workers.worker import LocalWorker
from linkgauge.judge.verdict import judge
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.operations.collective import (
    COLLECTIVE_NAMES,
    Collective,
    has_root,
    no_hypercube,
    reduces,
)
from linkgauge.model.settings import Settings, Simulation
from linkgauge.model.stats.summary import summarize
from machine_kit import SHIPPED

SIZES = (8, 32 << 10, 1 << 20, 32 << 20, 1 << 30)
MOST = 32
"""Devices of a machine that take part; of a machine of nodes, those of one rail."""
UNKNOWN = {"pcie-tree-8", "ppu-2x2", "vm-degraded"}
"""Machines of which no collective is judged: they have one device, or a link of unknown rate."""


def _judged(name):
    text = load(name)[1]
    settings = Settings((1,), simulation=Simulation(name, text))
    machine = LocalWorker(settings).survey(["sim"])
    backend = SimBackend(parts_of(parse_description(text)))
    devices = [one for one in backend.devices() if one.rail == backend.devices()[0].rail][:MOST]
    works = [
        Collective(one, "float", "sum" if reduces(one) else None, root=0 if has_root(one) else None)
        for one in COLLECTIVE_NAMES
        if no_hypercube(one, len(devices)) is None
    ]
    cells = [_measured(backend, work, devices, size) for work in works for size in SIZES]
    result = Result(
        benchmark="all", title="all", backend="sim", size=1, unit="us", better="lower",
        sweep=True, status="pass", cells=tuple(cells),
    )  # fmt: skip
    run = Run(
        id="1", label="l", command=(), started="s", finished="f", machine=machine,
        settings=settings, results=(result,),
    )  # fmt: skip
    return judge(run).results[0].cells


def _measured(backend, work, devices, size):
    cell = cell_of(work, devices, size, work.collective, str(size))
    group = backend.prepare([Copy(one, None, None, size, 1) for one in cell.transfers], work)
    group.arm(1)
    group.open()
    return CellResult(
        cell.row, cell.column, cell.transfers, cell.report, "pass", operation=work,
        bytes=work.bytes_counted(size, len(devices)),
        summary=summarize([max(group.wait().seconds)] * 6, "lower"),
    )  # fmt: skip


@pytest.mark.parametrize("name", SHIPPED)
def test_nothing_is_low_and_what_is_not_judged_has_a_reason(name):
    cells = _judged(name)
    found = {(cell.row, cell.column): (cell.verdict, cell.not_judged) for cell in cells}
    assert {verdict for verdict, _ in found.values()} <= {"ok", "not judged"}, found
    assert all((verdict == "ok") == (why is None) for verdict, why in found.values()), found
    assert {cell.not_judged for cell in cells if int(cell.column) <= 32 << 10} <= {
        "start", "path", "no-limit", "no-figure"
    }  # fmt: skip
    largest = {cell.row for cell in cells if cell.verdict == "ok" and int(cell.column) == SIZES[-1]}
    assert bool(largest) == (name not in UNKNOWN)
