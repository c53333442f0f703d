"""What a run of hours keeps does not grow with the hours."""

from contextlib import closing

import pytest
from msgspec.structs import replace

from fakes import device, machine
from linkgauge.engine.journal import JOURNAL_FILE, Journal, Measured, Opened, Resumed
from linkgauge.engine.runs import read_run
from linkgauge.model.inventory import Reading
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import CellResult, PlannedCell, PlannedSheet
from linkgauge.model.settings import Settings
from linkgauge.model.soak import SLICES, Soaking
from linkgauge.model.transfer import Report

COPY = parse_transfers("host:0 -> fake:0 by ce")
CELL = PlannedCell("0", "0", COPY, Report.FIRST)
START = "2026-11-24T12:00:00.000Z"


def opened(*cells, seconds=100.0, most=None):
    sheet = PlannedSheet(
        benchmark="b", title="B", backend="fake", size=1000, unit="B/s", better="higher",
        cells=cells,
    )  # fmt: skip
    settings = Settings((1000,), soak=Soaking(seconds, most))
    return Opened(
        id="1", label="l", command=(), started=START, machine=machine([device(0)]),
        settings=settings, plan=(sheet,),
    )  # fmt: skip


def visit(number, at, *samples, cell=CELL, **more):
    values = {"status": "pass", "verified": True, "bytes": 1000, "seconds": 0.1, **more}
    found = CellResult(
        cell.row, cell.column, cell.transfers, cell.report, samples=samples,
        visits=((1,) * len(samples),) if samples else (), **values,
    )  # fmt: skip
    return Measured(0, found, number, at)


@pytest.fixture
def run_of(tmp_path):
    """The run whose journal has these records."""

    def kept(records, begun=None, **more):
        path = tmp_path / JOURNAL_FILE
        path.unlink(missing_ok=True)
        with closing(Journal.begin(path, begun or opened(CELL, **more))) as journal:
            for record in records:
                journal.append(record)
        return read_run(path)

    return kept


def test_thousands_of_rounds_keep_a_few_visits_and_count_all(run_of):
    rounds = 5000
    records = (visit(n, n * 0.02, 10.0, 11.0, 9.0 + n / rounds) for n in range(rounds))
    run = run_of(records)
    (cell,) = run.results[0].cells
    assert 8 <= len(cell.visits) <= 16
    assert len(cell.samples) == 3 * len(cell.visits)
    (one,) = run.soak.cells
    assert (one.visits, one.samples, one.checked) == (rounds, 3 * rounds, rounds)
    assert run.soak.compared == rounds * 1000
    assert one.median == pytest.approx(10.0, rel=0.005)
    assert one.worst == 9.0
    assert len(run.soak.worst) <= 10
    assert len(one.means) == SLICES


def test_what_did_not_pass_stays_however_long_it_goes_on(run_of):
    def at(n):
        bad = {"status": "fail", "reason": "wrong", "verified": False} if n == 37 else {}
        return visit(n, n * 0.02, 10.0, **bad)

    run = run_of(map(at, range(3000)))
    assert run.results[0].cells[0].status == "fail"
    (struck,) = run.soak.struck
    assert (struck.moment.round, struck.moment.at, struck.reason) == (38, 0.74, "wrong")
    assert struck.moment.time == "2026-11-24T12:00:00.740Z"


def test_a_flood_of_failures_is_counted(run_of):
    records = (visit(n, n * 0.01, status="error", reason="lost") for n in range(500))
    soak = run_of(records).soak
    assert len(soak.struck) + soak.more == 500
    assert len(soak.struck) <= 100


def test_moments_after_a_break_are_those_of_the_clock(run_of):
    records = [
        visit(0, 10.0, 5.0),
        Resumed("2026-11-24T15:00:00.000Z", ()),
        visit(1, 12.0, status="error", reason="lost"),
    ]
    (struck,) = run_of(records).soak.struck
    assert (struck.moment.at, struck.moment.time) == (12.0, "2026-11-24T15:00:02.000Z")


def hot(celsius, *throttled):
    return (Reading(memory="fake:0", count=1, temperature_max=celsius, throttled=throttled),)


def test_a_limit_on_temperature_ends_it(run_of):
    cool = visit(0, 1.0, 5.0, readings=hot(84.0))
    assert run_of([cool], most=85.0).soak.stopped is None
    soak = run_of([cool, visit(1, 2.0, 5.0, readings=hot(85.0, "heat"))], most=85.0).soak
    assert soak.stopped == "temperature"
    (one,) = soak.devices
    assert one.hottest == 85.0
    assert [(why.reason, why.visits, why.first.round) for why in one.throttled] == [("heat", 1, 2)]


def test_the_slowest_of_a_time_are_the_longest(run_of):
    sheet = replace(opened(CELL).plan[0], unit="s", better="lower")
    figures = enumerate((1.0, 1.0, 4.0, 1.0, 2.0))
    visits = [visit(number, number + 1.0, seconds) for number, seconds in figures]
    worst = run_of(visits, replace(opened(CELL), plan=(sheet,))).soak.worst
    assert [one.figure for one in worst[:2]] == [4.0, 2.0]
    assert worst[0].share == pytest.approx(0.25, rel=0.01)
