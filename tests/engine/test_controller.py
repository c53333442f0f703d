"""The controller hands over whole cells, keeps each before the next, and survives Ctrl-C."""

import signal

import pytest

from fakes import FakeBackend, device, machine
from linkgauge.benchmarks.catalog import select
from linkgauge.engine.controller import Observer, execute
from linkgauge.engine.kept.journal import (
    Again,
    Closed,
    Logged,
    MeasuredRepetition,
    Opened,
    assemble,
)
from linkgauge.engine.plan import fabrics, lay_out, make_plan
from linkgauge.engine.repetitions import CellAt
from linkgauge.engine.workers.worker import LocalWorker
from linkgauge.model.kernel_log import KernelLog, LogLine
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Place

HERE = machine([device(0), device(1)])
SETTINGS = Settings((4096,), samples=6)


class Silent(Observer):
    def __init__(self):
        self.reported = []

    def started(self, table, cell):
        self.reported.append((table.benchmark, cell.row, cell.column))

    def finished(self, cell):
        self.reported.append(cell.status)

    def say(self, line):
        self.reported.append(line)

    def completed(self, result):
        self.reported.append(result.benchmark)


def begun(*names):
    """The records of a run that has its plan and nothing more."""
    plan = make_plan(
        lay_out(select(names, ()), fabrics(HERE, ()), HERE.host.nodes), HERE, SETTINGS.sizes
    )
    return (
        Opened(
            id="1", label="l", command=(), started="s", machine=HERE, settings=SETTINGS, plan=plan
        ),
    )


def worker_with(backend):
    worker = LocalWorker()
    worker._backends["fake"] = backend
    return worker


class Log:
    """A kernel's log that has these lines to tell, one each time it is asked."""

    def __init__(self, *texts):
        self._news = [text and KernelLog((LogLine(1.0, text, "xid"),)) for text in texts]

    def new(self):
        return self._news.pop(0) if self._news else None


def interrupted_once_it_has_measured(records):
    """A backend that Ctrl-C strikes as soon as there is one record."""
    backend = FakeBackend()

    def interrupt(group):
        if len(records) == 1:
            raise KeyboardInterrupt

    backend.on_sample = interrupt
    return backend


def test_ctrl_c_loses_nothing_that_the_kernel_logged():
    records = []
    backend = interrupted_once_it_has_measured(records)
    run = execute(
        begun("device_to_device_memcpy_read_ce"), worker_with(backend), records.append, Silent(),
        log=Log(None, "just before"),
    )  # fmt: skip
    assert [type(record) for record in records] == [MeasuredRepetition, Logged]
    assert (run.finished, run.kernel_log.lines[0].text) == (None, "just before")


def test_ctrl_c_while_a_cell_is_kept_keeps_it():
    kept = []

    def interrupted(record):
        signal.raise_signal(signal.SIGINT)
        kept.append(record)

    plan = begun("device_to_device_memcpy_read_ce")
    run = execute(plan, worker_with(FakeBackend()), interrupted, Silent())
    assert len(kept) == 1
    assert run == assemble((*plan, *kept))
    assert run.finished is None


@pytest.mark.parametrize("done", [0, 3, 6])
def test_a_run_that_broke_off_measures_what_is_left_and_nothing_twice(done):
    plan = begun("device_to_device_memcpy_read_ce", "device_local_copy", "host_device_latency_sm")
    first, observer, rest = [], Silent(), []
    whole = execute(plan, worker_with(FakeBackend()), first.append, Silent())
    known = (*plan, *first[:done])
    run = execute(known, worker_with(FakeBackend()), rest.append, observer)
    assert len(first) == 6 + 1
    assert [(r.table, r.cell.row, r.cell.column) for r in rest[:-1]] == [
        (r.table, r.cell.row, r.cell.column) for r in first[done:-1]
    ]
    assert assemble((*known, *rest)) == run
    assert [[cell.transfers for cell in result.cells] for result in run.results] == [
        [cell.transfers for cell in result.cells] for result in whole.results
    ]
    completed = [one for one in observer.reported if one in {r.benchmark for r in whole.results}]
    assert completed == [result.benchmark for result in whole.results]


class Doubting(Silent):
    """Doubts the cell in the second row, whenever it is asked."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def doubts(self, run):
        self.asked.append(run)
        return [CellAt(0, Place("1", "0"))]


def test_what_is_in_doubt_is_measured_once_more_before_the_run_ends():
    plan, observer, records = begun("device_to_device_memcpy_read_ce"), Doubting(), []
    worker = worker_with(FakeBackend())
    run = execute(plan, worker, records.append, observer, observer.doubts)
    assert [type(record) for record in records] == [
        MeasuredRepetition,
        MeasuredRepetition,
        Again,
        MeasuredRepetition,
        Closed,
    ]
    assert [len(cell.samples) for cell in run.results[0].cells] == [5, 10]
    assert "measuring 1 cell once more, to be sure" in observer.reported
    assert [len(asked.results[0].cells) for asked in observer.asked] == [2]
    assert assemble((*plan, *records)) == run


@pytest.mark.parametrize(("kept", "asked"), [(2, 1), (3, 0), (4, 0)])
def test_a_run_that_broke_off_is_not_in_doubt_twice(kept, asked):
    plan, observer, records = begun("device_to_device_memcpy_read_ce"), Doubting(), []
    execute(plan, worker_with(FakeBackend()), records.append, observer, observer.doubts)
    again, rest = Doubting(), []
    known = (*plan, *records[:kept])
    run = execute(known, worker_with(FakeBackend()), rest.append, again, again.doubts)
    assert len(again.asked) == asked
    assert [type(record) for record in rest] == [type(record) for record in records[kept:]]
    assert [len(cell.samples) for cell in run.results[0].cells] == [5, 10]
